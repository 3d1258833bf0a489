# The Conan recipe (Conan 2):
#   conan create tests/packaging/conan                 the header, codeexec::codeexec and ::impl
#   conan create tests/packaging/conan -o "&:server=True"    and bin/codeexec-mcp
# It takes the version and the sources from the checkout that it lies in.
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class CodeexecConan(ConanFile):
    name = "codeexec"
    license = "MIT"
    description = "Run commands for an AI agent, from one C++17 header"
    topics = ("process", "sandbox", "mcp", "agent", "header-only")
    package_type = "application"
    settings = "os", "arch", "compiler", "build_type"
    options = {"server": [True, False]}
    default_options = {"server": False}
    no_copy_source = True

    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._checkout(), "codeexec.hpp"))
        self.version = ".".join(
            re.search(rf"^#define CODEEXEC_VERSION_{part} (\d+)$", header, re.MULTILINE).group(1)
            for part in ("MAJOR", "MINOR", "PATCH")
        )

    def configure(self):
        if not self.options.server:
            self.package_type = "header-library"

    def export_sources(self):
        for pattern in ("codeexec.hpp", "CMakeLists.txt", "LICENSE", "src/*",
                        "examples/mcp_server.cpp"):
            copy(self, pattern, self._checkout(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def package_id(self):
        if not self.info.options.server:
            self.info.settings.clear()

    def validate(self):
        if self.settings.os == "Windows":
            raise ConanInvalidConfiguration("codeexec is not for Windows")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 17)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["CODEEXEC_BUILD_TESTS"] = False
        toolchain.cache_variables["CODEEXEC_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["CODEEXEC_BUILD_SERVER"] = bool(self.options.server)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package's own CMake files have both targets; nothing else need be made up.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "codeexec")]
        self.cpp_info.set_property("pkg_config_name", "codeexec")
        self.cpp_info.bindirs = ["bin"] if self.options.server else []
        self.cpp_info.libdirs = []
        if self.settings.get_safe("os") != "Windows":
            self.cpp_info.system_libs = ["pthread"]
