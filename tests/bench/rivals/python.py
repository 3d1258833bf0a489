"""subprocess of Python; the tasks are those of driver.hpp."""
import subprocess
import sys
import time


def run():
    subprocess.run(["/bin/true"], check=True)


def capture():
    done = subprocess.run(["/bin/echo", "hello"], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"hello\n"


def many():
    for one in [subprocess.Popen(["/bin/true"]) for _ in range(200)]:
        assert one.wait() == 0


held = []
for line in iter(sys.stdin.readline, ""):
    task, count = line.split()
    begin = time.perf_counter()
    if task == "hold":
        held.append(b"x" * (int(count) << 20))
    else:
        for _ in range(int(count)):
            {"run": run, "capture": capture, "many": many}[task]()
    print((time.perf_counter() - begin) * 1e6 / int(count), flush=True)
