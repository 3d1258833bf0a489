"""Says for which systems the wheel is: hatchling only knows the one on which it runs."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + os.environ["CODEEXEC_PLATFORM"]
