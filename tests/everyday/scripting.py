"""Python: processes and what they share, tests, packages, notebooks."""

from task import Dialogue, task

SHARED = "shared memory"

task("python: pool, locks and queues", r'''
cat > pool.py <<'EOF'
import multiprocessing
def square(i):
    return i * i
def add(lock, total, queue):
    for _ in range(100):
        with lock:
            total.value += 1
    queue.put("done")
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print("sum", sum(pool.map(square, range(10))))
    lock, total = multiprocessing.Lock(), multiprocessing.Value("i", 0, lock=False)
    queue = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=add, args=(lock, total, queue)) for _ in range(3)]
    for worker in workers: worker.start()
    print([queue.get() for _ in workers])
    for worker in workers: worker.join()
    print("total", total.value)
EOF
python3 pool.py
''', "sum 285\n['done', 'done', 'done']\ntotal 300\n", "python3", wants=SHARED)
task("python: ProcessPoolExecutor, spawned", r'''
cat > pool.py <<'EOF'
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
def square(i):
    return i * i
if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        print("sum", sum(pool.map(square, range(10))))
EOF
python3 pool.py
''', "sum 285\n", "python3", wants=SHARED)
task("python: shared memory between processes", r'''
cat > block.py <<'EOF'
import subprocess, sys
from multiprocessing import resource_tracker, shared_memory
if len(sys.argv) > 1:
    other = shared_memory.SharedMemory(sys.argv[1])
    other.buf[1] = other.buf[0] + 1
    other.close()
    resource_tracker.unregister("/" + sys.argv[1], "shared_memory")
else:
    block = shared_memory.SharedMemory(create=True, size=100)
    block.buf[0] = 42
    subprocess.run([sys.executable, "block.py", block.name], check=True)
    print("second", block.buf[1])
    block.close()
    block.unlink()
EOF
python3 block.py
''', "second 43\n", "python3", wants=SHARED)
task("python: Manager with forkserver", r'''
cat > manager.py <<'EOF'
import multiprocessing
def put(shared, i):
    shared[i] = i * i
if __name__ == "__main__":
    multiprocessing.set_start_method("forkserver")
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        workers = [multiprocessing.Process(target=put, args=(shared, i)) for i in range(3)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
        print("shared", sorted(shared.items()))
EOF
python3 manager.py
''', "shared [(0, 0), (1, 1), (2, 4)]\n", "python3", wants="unix sockets")
task("python: subprocesses and asyncio", r'''
python3 - <<'EOF'
import asyncio, subprocess
async def one(i):
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", f"echo {i}", stdout=asyncio.subprocess.PIPE)
    return int((await process.communicate())[0])
async def main():
    print("sum", sum(await asyncio.gather(*map(one, range(8)))))
    print(await asyncio.to_thread(lambda: "thread"))
asyncio.run(main())
print(subprocess.run("exit 3", shell=True).returncode)
EOF
''', "sum 28\nthread\n3\n", "python3")
task("python: asyncio server on a socket file", r'''
python3 - <<'EOF'
import asyncio
async def serve(reader, writer):
    writer.write((await reader.readline()).upper())
    writer.close()
async def main():
    async with await asyncio.start_unix_server(serve, "s"):
        reader, writer = await asyncio.open_unix_connection("s")
        writer.write(b"hello\n")
        print((await reader.read()).decode(), end="")
asyncio.run(main())
EOF
''', "HELLO\n", "python3", wants="unix sockets")
task("python: files in /tmp by name", r'''
python3 - <<'EOF'
import os, tempfile
name = f"/tmp/everyday-{os.getpid()}.log"
with open(name, "w") as file:
    file.write("logged\n")
print(open(name).read(), end="")
os.unlink(name)
with tempfile.TemporaryDirectory(dir="/tmp") as place:
    print(os.path.isdir(place))
EOF
''', "logged\nTrue\n", "python3", wants="/tmp")
task("python: unittest, doctest and profile", r'''
cat > sums.py <<'EOF'
def add(a, b):
    """
    >>> add(1, 2)
    3
    """
    return a + b
EOF
printf 'import unittest, sums\nclass T(unittest.TestCase):\n def test(self):\n' > test_sums.py
printf '  self.assertEqual(sums.add(1, 1), 2)\n' >> test_sums.py
python3 -m unittest 2>&1 && python3 -m doctest -v sums.py | tail -n 1 &&
python3 -m cProfile -o out.prof sums.py && echo stats | python3 -m pstats out.prof |
  grep -c sums.py
''', "Test passed.\n1\n", "python3")
task("python: pytest", r'''
printf 'def test_it(tmp_path, capsys):\n (tmp_path / "f").write_text("x")\n' > test_a.py
python3 -m pytest -q && python3 -m pytest -q --lf --junitxml=report.xml && ls report.xml
''', "1 passed", "python3 -c 'import pytest'")
XDIST = "/usr/bin/python3 -c 'import xdist'"
task("python: pytest-xdist", r'''
for i in 1 2 3 4; do printf 'def test_it(tmp_path):\n assert 1\n' > test_$i.py; done
/usr/bin/python3 -m pytest -q -n 2
''', "4 passed", XDIST)
task("python: pools in tests of pytest-xdist", r'''
cat > test_pool.py <<'EOF'
from concurrent.futures import ProcessPoolExecutor
import pytest
@pytest.mark.parametrize("n", [1, 2])
def test_pool(n):
    with ProcessPoolExecutor(n) as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
EOF
/usr/bin/python3 -m pytest -q -n 2
''', "2 passed", XDIST, wants=SHARED)

PROJECT = r'''
mkdir -p tiny/src/tiny && printf 'def main():\n    print("tiny runs")\n' > tiny/src/tiny/__init__.py
cat > tiny/setup.py <<'EOF'
from setuptools import find_packages, setup
setup(name="tiny", version="1.0", package_dir={"": "src"}, packages=find_packages("src"),
      entry_points={"console_scripts": ["tiny=tiny:main"]})
EOF
'''
WHEEL = r'''
python3 - <<'EOF'
import zipfile
with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as wheel:
    info = "tiny-1.0.dist-info/"
    wheel.writestr("tiny.py", "def main(): print('tiny runs')\nif __name__ == '__main__': main()\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\n"
                   "Tag: py3-none-any\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
    wheel.writestr(info + "RECORD", f"tiny.py,,\n{info}METADATA,,\n{info}WHEEL,,\n"
                   f"{info}entry_points.txt,,\n{info}RECORD,,\n")
EOF
'''
VENV = "python3 -c 'import ensurepip, venv'"
task("pip: a venv and a wheel", WHEEL + r'''
python3 -m venv .venv && .venv/bin/pip install -q --no-deps ./tiny-1.0-py3-none-any.whl &&
.venv/bin/tiny && .venv/bin/pip list | grep -c tiny && .venv/bin/pip uninstall -q -y tiny
''', "tiny runs\n1\n", VENV)
task("pip: editable, and a wheel from source", PROJECT + r'''
/usr/bin/python3 -m venv --system-site-packages .venv && . .venv/bin/activate &&
pip install -q --no-build-isolation --no-deps -e ./tiny && tiny &&
pip wheel -q --no-build-isolation --no-deps -w dist ./tiny && ls dist
''', "tiny runs\ntiny-1.0-py3-none-any.whl\n",
     "/usr/bin/python3 -c 'import ensurepip, venv, setuptools, wheel'")
task("pip: requirements from a folder of wheels", WHEEL + r'''
mkdir wheels && mv *.whl wheels && echo 'tiny==1.0' > requirements.txt
python3 -m venv v && v/bin/pip install -q --no-index --find-links wheels -r requirements.txt &&
v/bin/python -m tiny && v/bin/pip freeze
''', "tiny runs\ntiny==1.0\n", VENV, heavy=True)
task("python: the next command finds the .venv", (
    "python3 -m venv --without-pip .venv",
    "python3 -c 'import sys; print(sys.prefix != sys.base_prefix)'"), "True\n", VENV)
task("uv: a venv and a wheel", WHEEL + r'''
uv venv -q --python "$(command -v python3)" && uv pip install -q ./tiny-1.0-py3-none-any.whl &&
.venv/bin/tiny && uv pip list 2> /dev/null | grep -c tiny
''', "tiny runs\n1\n", ("uv", "python3"))
task("uv: a project, its lock and a run", WHEEL + r'''
uv init -q --bare --name app --python "$(command -v python3)" . && mkdir w && mv *.whl w &&
uv add -q ./w/tiny-1.0-py3-none-any.whl && uv run -q tiny && ls uv.lock
''', "tiny runs\nuv.lock\n", ("uv", "python3"))
task("conda: an environment", r'''
conda create -q -y --offline -p ./env > log 2>&1 && conda run -p ./env echo in env
''', "in env\n", "conda", heavy=True)
task("python: an extension in C", r'''
cat > fast.c <<'EOF'
#include <Python.h>
static PyObject* twice(PyObject* self, PyObject* n) {
  return PyLong_FromLong(2 * PyLong_AsLong(n));
}
static PyMethodDef methods[] = {{"twice", twice, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", "", -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
EOF
gcc -shared -fPIC $(python3-config --includes) fast.c -o fast$(python3-config --extension-suffix)
python3 -c 'import fast; print(fast.twice(21))'
''', "42\n", ("gcc", "python3",
               "echo '#include <Python.h>' | gcc $(python3-config --includes) -E -"),
     heavy=True)
task("python: a dialogue with the interpreter", (
    Dialogue("python3 -q", (("", ">>>"), ("print(6 * 7)", "^42"))),), "", "python3")
task("python: pseudo-terminals", r'''
cat > t.py <<'EOF'
import os, pty
leader, follower = os.openpty()
print("terminal", os.isatty(follower), flush=True)
pty.spawn(["echo", "in a terminal"])
EOF
python3 t.py
''', "in a terminal", "python3", wants="terminals")
task("python: pexpect", r'''
/usr/bin/python3 - <<'EOF'
import pexpect
child = pexpect.spawn("sh -c 'printf name?; read x; echo hello $x'", encoding="utf-8")
child.expect("name\\?")
child.sendline("world")
child.expect("hello world")
child.wait()
print("answered", child.exitstatus)
EOF
''', "answered 0\n", "/usr/bin/python3 -c 'import pexpect'", wants="terminals")
task("jupyter: a kernel runs a notebook", r'''
cat > run.py <<'EOF'
import nbformat
from nbclient import NotebookClient
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(6 * 7)")])
NotebookClient(book, kernel_name="python3", timeout=100).execute()
print(book.cells[0].outputs[0].text, end="")
EOF
"$(dirname "$(command -v jupyter)")/python" run.py
''', "42\n", "jupyter", network="loopback", wants="loopback", heavy=True)
task("pip: the index is away", "python3 -m pip download -q --no-deps six -d x",
     needs="python3 -m pip --version", fails="network: none")
task("uv: the index is away", "uv venv -q && uv pip install six", needs=("uv", "python3"),
     fails="network: none")
