"""The sandbox in a container with the engine's default profile, where no namespaces can be made.

usage: container.py --program STATIC_CODEEXEC_MCP [--image NAME]

Runs checks of degrade.py in it, as root and as an ordinary user: strict starts there, with a
network and without, and what its report calls enforced holds; without a sandbox the same attempts
succeed.
CODEEXEC_TEST_DOCKER=1 says that DOCKER_HOST is an engine for tests, with the images of
tests/helpers/engine.sh.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

CHECKS = ("check_controls", "check_nothing_denied")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--image", default="codeexec-test/debian:latest")
    options = parser.parse_args()
    if not os.environ.get("CODEEXEC_TEST_DOCKER"):
        print("SKIPPED: inside.container: no container engine for tests "
              "(CODEEXEC_TEST_DOCKER is not set)")
        return 77
    if not os.path.exists(options.program):
        print(f"FAILED: there is no {options.program}: build the target codeexec-place-static")
        return 1
    failed = False
    # The engine sees what was mounted when it was started, and the build folder may not be that.
    with tempfile.TemporaryDirectory(prefix="codeexec-container-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(options.program, folder + "/codeexec-mcp")
        for name in ("degrade.py", "support.py"):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), folder)
        for user in ("0", "1000"):
            script = ("if unshare -U true 2> /dev/null; then echo 'it can make namespaces'; "
                      "exit 3; fi; exec python3 /test/degrade.py "
                      "--program /test/codeexec-mcp \"$@\"")
            answer = subprocess.run(
                ["docker", "run", "--rm", "--network", "none", "--user", user, "--env",
                 "HOME=/tmp", "--volume", folder + ":/test:ro", options.image, "sh", "-c", script,
                 "sh", *CHECKS], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace")
            # What needs namespaces is left out here, which is the purpose.
            text = answer.stdout.replace("SKIPPED: ", "left out: ")
            print(f"user {user}:\n{text}", end="")
            failed = failed or answer.returncode != 0 or " passed, 0 failed" not in text
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
