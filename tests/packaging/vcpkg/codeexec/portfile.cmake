# An overlay port that takes the sources from the checkout that it lies in:
#   vcpkg install codeexec --overlay-ports=tests/packaging/vcpkg
# A copy for a registry names an archive of a release here instead (vcpkg_from_git, _from_github).
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES server CODEEXEC_BUILD_SERVER)

# The header does not depend on the build type.
set(VCPKG_BUILD_TYPE release)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DCODEEXEC_BUILD_TESTS=OFF
    -DCODEEXEC_BUILD_EXAMPLES=OFF
    -DCODEEXEC_INSTALL=ON
    ${FEATURE_OPTIONS})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME codeexec CONFIG_PATH share/cmake/codeexec)
vcpkg_fixup_pkgconfig()
if("server" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES codeexec-mcp AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/licenses")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
