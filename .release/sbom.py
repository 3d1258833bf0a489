"""Writes the bill of materials (CycloneDX, JSON) of a static codeexec-mcp, and checks it:

python sbom.py ARCH VERSION BINARY HEADER > FILE       needs the packages of requirements.txt

Versions are read from the files that the compiler has used. The date is $SOURCE_DATE_EPOCH.
"""

import hashlib
import os
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

import ziglang
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

arch, version, binary, header = sys.argv[1:]
zig = Path(ziglang.__file__).parent
licenses = LicenseFactory()
LLVM = "Apache-2.0 WITH LLVM-exception"


def printed_by(*arguments):
    done = subprocess.run([zig / "zig", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def found(pattern, text):
    return re.search(pattern, text)[1]


def component(name, number, license_, kind=ComponentType.LIBRARY, file=None, **more):
    hashes = []
    if file:
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)]
    return Component(
        name=name,
        version=number,
        type=kind,
        licenses=[licenses.make_from_string(license_)],
        bom_ref=f"{name}@{number}",
        hashes=hashes,
        **more,
    )


llvm = found(r"clang version (\S+)", printed_by("c++", "--version"))
zig_version = printed_by("version").strip()
musl = found(r'"(.*)"', (zig / "lib/libc/musl/src/internal/version.h").read_text())
parts = [
    component("codeexec.hpp", version, "MIT", file=header),
    component("musl", musl, "MIT", cpe=f"cpe:2.3:a:musl-libc:musl:{musl}:*:*:*:*:*:*:*"),
    component("libc++", llvm, LLVM),
    component("libc++abi", llvm, LLVM),
    component("libunwind", llvm, LLVM),
    # What zig brings itself: a part of the C library, and compiler_rt.
    component("zig-libc-and-compiler-rt", zig_version, "MIT"),
]
program = component(
    "codeexec-mcp",
    version,
    f"MIT AND {LLVM}",
    ComponentType.APPLICATION,
    binary,
    purl=PackageURL("generic", name="codeexec-mcp", version=version, qualifiers={"arch": arch}),
)
compiler = component(
    "ziglang",
    zig_version,
    "MIT",
    ComponentType.APPLICATION,
    purl=PackageURL("pypi", name="ziglang", version=zig_version),
)

bom = Bom(components=parts)
bom.metadata.component = program
bom.metadata.tools = ToolRepository(components=[compiler])
bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
# Of this binary and no other, and the same each time.
bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, next(iter(program.hashes)).content)
bom.register_dependency(program, parts)
text = JsonV1Dot6(bom).output_as_string(indent=2)
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if wrong:
    sys.exit(f"sbom.py: not CycloneDX: {wrong}")
print(text)
