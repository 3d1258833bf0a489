"""Commands in a pod of Kubernetes: the conversation of python_client.py there.

$KUBECONFIG is that of a Kubernetes for tests, of this one node (tests/helpers/kubernetes.sh). The
pod has the programs, the folders and the process table of this machine, as the conversation has to
see the same files on both ends.
"""

import json
import os
import subprocess
import tempfile

import anyio
from python_client import Here, scenario
from python_support import check, finish, until

SERVER = os.environ["CODEEXEC_MCP"]
LABEL = "codeexec/agent=interop"


def pods():
    words = ["kubectl", "get", "pods", "-l", LABEL, "-o", "jsonpath={.items[*].metadata.name}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def template():
    folders = sorted({"/bin", "/etc", "/lib", "/lib64", "/tmp", "/usr", "/var",
                      os.path.dirname(os.path.realpath(SERVER))})
    names = {folder: f"folder-{number}" for number, folder in enumerate(folders)}
    file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
    json.dump({
        "apiVersion": "v1", "kind": "Pod",
        "spec": {
            "restartPolicy": "Never", "hostPID": True, "hostNetwork": True,
            "automountServiceAccountToken": False,
            "containers": [{
                "name": "agent", "image": "localhost/busybox:1", "command": ["sleep", "3600"],
                "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}],
                "volumeMounts": [{"name": names[f], "mountPath": f} for f in folders]}],
            "volumes": [{"name": names[f], "hostPath": {"path": f}} for f in folders]}}, file)
    file.close()
    return file.name


class InPod(Here):
    options = ["--execution-mode", "kubernetes", "--agent-id", "interop",
               "--kubernetes-pod-template", template(), "--place-workspace", "shared",
               "--place-agent-path", os.path.realpath(SERVER)]
    variables = {"KUBECONFIG": os.environ["KUBECONFIG"], "HOME": os.environ["HOME"]}

    async def installs(self, run, project):
        there = await run('grep -c kubepods /proc/self/cgroup')
        check(int(there["stdout"]) > 0, "in a pod", there)
        check(len(pods()) == 1, "in the one pod", pods())
        await super().installs(run, project)

    async def closed(self):
        await until("the pod is gone", lambda: not pods())
        os.unlink(InPod.options[5])


async def main():
    await scenario("Python SDK 2, Kubernetes", "auto", "2026-07-28", InPod())


anyio.run(main)
finish()
