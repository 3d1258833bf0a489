"""What an agent's commands must be able to do inside the sandbox; run.py runs them.

Each case is a script that starts in an empty workspace of its own and prints `expect` somewhere on
its standard output. `needs` are what it calls: names of programs, or whole shell commands that
succeed where it can run. `closed` are the options that it needs where there are no namespaces.
`shells` are the shells that it runs in; `pid` means once more with --pid-namespace; `extra` ones
are tried where their tools are, and nobody must install those.
"""

from dataclasses import dataclass

BOTH = ("/bin/sh", "/bin/bash")
SH = ("/bin/sh",)
BASH = ("/bin/bash",)


@dataclass(frozen=True)
class Case:
    name: str
    script: str
    expect: str
    needs: tuple = ()
    options: tuple = ()
    closed: tuple = ()  # where there are no namespaces
    network: str = "none"
    shells: tuple = SH
    pid: bool = False
    extra: bool = False
    fails: bool = False  # must fail, with a note that speaks of the network


CASES = []


def works(name, script, expect, needs=(), **more):
    needs = (needs,) if isinstance(needs, str) else tuple(needs)
    CASES.append(Case(name, script.strip("\n"), expect, needs, **more))


# The shell and its redirections -------------------------------------------------------------------

works("here-document", "x=3\ncat <<EOF\nhello $x\nEOF", "hello 3\n", shells=BOTH)
works(
    "big here-document",
    "big=$(head -c 200000 /dev/zero | tr '\\0' x)\nwc -c <<EOF\n$big\nEOF",
    "200001",
    shells=BOTH,
)
works("here-string", "wc -c <<< abc", "4", shells=BASH)
works(
    "process substitution",
    "diff <(echo a) <(echo a) && echo same; echo down | tee >(cat > kept) > /dev/null\n"
    "wait; while ! [ -s kept ]; do sleep 0.01; done; cat kept",
    "same\ndown\n",
    shells=BASH,
)
works("coproc", "coproc cat; echo round >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x trip",
      "round trip\n", shells=BASH)
works("redirection to /dev/stderr", "echo oops > /dev/stderr && echo done", "done\n", shells=BOTH)
works("redirection to /dev/stdout", "echo out > /dev/stdout; echo fd > /dev/fd/1", "out\nfd\n",
      shells=BOTH)
works("cat /dev/stdin", "echo through | cat /dev/stdin", "through\n", shells=BOTH)
works("tee /dev/stderr", "echo twice | tee /dev/stderr", "twice\n", shells=BOTH)
works("devices", "head -c 3 /dev/zero | wc -c; head -c 5 /dev/urandom | wc -c; : > /dev/null\n"
      "head -c 4 /dev/random | wc -c; echo x 2> /dev/null > /dev/full || echo full",
      "3\n5\n4\nfull\n", shells=BOTH)
works("background jobs and wait",
      "(sleep 0.1; echo one) & (sleep 0.2; echo two) & wait; echo done", "one\ntwo\ndone\n",
      shells=BOTH, pid=True)
works("job control", "set -m; sleep 0.1 & wait; echo done", "done\n", shells=BOTH, pid=True)
works("job control: kill %1", "set -m; sleep 600 & kill %1; wait %1; echo $?", "143\n",
      shells=BASH, pid=True)
works("kill and wait", "sleep 600 & kill $!; wait $!; echo $?", "143\n", shells=BOTH, pid=True)
works("trap", "trap 'echo caught' USR1; kill -USR1 $$; echo after", "caught\nafter\n", shells=BOTH,
      pid=True)
works("timeout", "timeout 0.2 sleep 600; echo after $?", "after 124\n", shells=BOTH, pid=True)
works("timeout --foreground", "timeout --foreground 0.2 sleep 600; echo after $?", "after 124\n")
works("setsid", "setsid -w sh -c 'echo own session'; echo after $?", "own session\nafter 0\n",
      needs="setsid", pid=True)
works("nohup", "nohup echo kept 2> /dev/null", "kept\n", needs="nohup")
works("flock", "flock lock echo locked; flock -n lock echo again", "locked\nagain\n", needs="flock")
works("named pipe", "mkfifo p; echo piped > p & cat p; wait", "piped\n", shells=BOTH)
works("ulimit", "ulimit -n 64 && sh -c 'ulimit -n'", "64\n", shells=BOTH)
works("nice", "nice -n 5 echo polite", "polite\n")
works("pipeline of many", "seq 1000 | grep 7 | sort -rn | uniq | head -n 1 | tr 9 8", "887\n",
      shells=BOTH)
works("command not found", "no_such_program_here; echo $?", "127\n", shells=BOTH)
works("script file", "printf '#!/bin/sh\\necho ran $1\\n' > s; install -m 755 s t; ./t it",
      "ran it\n", shells=BOTH)
works("env -S shebang", "printf '#!/usr/bin/env -S python3 -I\\nprint(6*7)\\n' > s\n"
      "install -m 755 s t; ./t", "42\n", needs="python3")
works("terminal by script", "script -qc 'echo hi; tty' /dev/null", "hi", needs="script",
      closed=("--terminals",), pid=True)

# Files and text -----------------------------------------------------------------------------------

works("find and xargs -P", "mkdir d; for i in 1 2 3 4 5 6 7 8; do echo $i > d/$i; done\n"
      "find d -type f -print0 | xargs -0 -P 4 -n 1 cat | sort | tr -d '\\n'", "12345678",
      shells=BOTH)
works("sort of a big file", "seq 300000 -1 1 > big; sort -n -S 512K big > sorted\n"
      "head -n 1 sorted; tail -n 1 sorted", "1\n300000\n")
works("sed -i", "echo colour > f; sed -i s/ou/o/ f; cat f", "color\n")
works("mktemp", "f=$(mktemp) && d=$(mktemp -d) && echo x > $f && echo y > $d/z && cat $f $d/z\n"
      "case $f in $TMPDIR/*) echo private ;; esac", "x\ny\nprivate\n", shells=BOTH)
works("tar and gzip", "mkdir a; echo data > a/f; tar czf a.tgz a; rm a/f; tar xzf a.tgz; cat a/f\n"
      "echo more > g; gzip g; gunzip -c g.gz; tar cJf a.txz a && tar tf a.txz", "data\nmore\na/\n",
      needs=("tar", "gzip", "xz"))
works("rename across directories", "mkdir a b; echo data > a/f; mv a/f b/g; mv a b/; ls -R b\n"
      "cat b/g", "b:\na\ng\n\nb/a:\ndata\n")
works("rename does not copy", "mkdir a b; echo x > a/f; before=$(stat -c %i a/f); mv a/f b/f\n"
      "[ $before = $(stat -c %i b/f) ] && echo renamed", "renamed\n")
works("links", "echo x > f; mkdir d; ln f d/hard; ln -s ../f d/soft; stat -c %h f; cat d/hard\n"
      "cat d/soft; readlink d/soft", "2\nx\nx\n../f\n")
works("modes, times and copies", "echo x > f; touch -d 2001-02-03 f; cp -a f g; stat -c %y g\n"
      "python3 -c \"import os; os.chmod('g', 0o700); print(oct(os.stat('g').st_mode))\"; cp -r . "
      "../$(basename $PWD)/copy 2> /dev/null; rm -r copy; truncate -s 5 f; stat -c %s f",
      "2001-02-03", needs="python3")
works("empty and remove", "mkdir -p a/b/c; touch a/b/c/f; : > a/b/c/f; rm -r a; ls | wc -l", "0\n")
works("perl", "echo abc > f; perl -pi -e 's/b/B/' f; cat f\n"
      "perl -e 'open(P, \"-|\", \"echo child\"); print <P>; $p = fork; exit 3 if !$p;"
      " waitpid $p, 0; print $? >> 8, \"\\n\"'", "aBc\nchild\n3\n", needs="perl")
works("awk and paste", "seq 4 | paste -sd+ | awk '{ print \"sum\", $0 }'; seq 4 | awk '{ s += $1 } "
      "END { print s }'", "sum 1+2+3+4\n10\n")

# The machine, as far as programs ask --------------------------------------------------------------

works("isatty of /dev/null", "python3 -c 'import os; print(os.isatty(os.open(\"/dev/null\", 2)))'\n"
      "[ -t 0 ] < /dev/null || echo no terminal", "False\nno terminal\n", needs="python3",
      shells=BOTH)
# The child is a shell until it has become the program.
works("ps", "sleep 600 & until [ \"$(ps -o comm= -p $!)\" = sleep ]; do sleep 0.01; done\n"
      "ps -o comm= -p $!; kill $!", "sleep\n", needs="ps", pid=True)
works("nproc", "[ $(nproc) -gt 0 ] && echo some", "some\n")
works("free", "free | grep -c Mem:", "1\n", needs="free")
works("df", "df . | wc -l; df -h / > /dev/null && echo root", "2\nroot\n")
works("uptime and proc", "cat /proc/uptime > /dev/null && grep -c . /proc/cpuinfo > /dev/null &&\n"
      "cat /proc/self/status | grep -c ^Pid: && cat /proc/self/limits > /dev/null && echo read",
      "1\nread\n", pid=True)
works("locale", "locale | grep -c LANG=; locale -a | grep -cx C", "1\n1\n", needs="locale")
works("id", "id -u; getent passwd 0 | cut -d: -f1; [ $(id -u) != 0 ] || id -un", "root\n", pid=True)
works("host name and release", "uname -s; cat /etc/os-release > /dev/null && echo release\n"
      "[ -n \"$(hostname)\" ] && echo named", "Linux\nrelease\nnamed\n", needs="hostname")
works("time zones", "TZ=Europe/Berlin date -d 2001-07-01T12:00Z +%H",
      "14\n", needs="test -e /usr/share/zoneinfo/Europe/Berlin")
works("home is writable", "echo x > ~/f && cat ~/f; mkdir -p ~/.cache/y && echo cache",
      "x\ncache\n", shells=BOTH)

# Python -------------------------------------------------------------------------------------------

works("python: subprocess", r'''
python3 - <<'EOF'
import subprocess
print(subprocess.check_output(["echo", "argv"], text=True), end="")
print(subprocess.run("echo shell; exit 3", shell=True).returncode, flush=True)
first = subprocess.Popen(["seq", "3"], stdout=subprocess.PIPE)
print(subprocess.check_output(["wc", "-l"], stdin=first.stdout, text=True), end="")
subprocess.run(["echo", "own session"], start_new_session=True)
try:
    subprocess.run(["sleep", "600"], timeout=0.1)
except subprocess.TimeoutExpired:
    print("too late")
EOF
''', "too late\n", needs="python3", pid=True)
works("python: asyncio with subprocesses", r'''
python3 - <<'EOF'
import asyncio
async def one(i):
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", f"sleep 0.05; echo {i}", stdout=asyncio.subprocess.PIPE)
    return int((await process.communicate())[0])
async def main():
    print("sum", sum(await asyncio.gather(*map(one, range(8)))))
    print(await asyncio.to_thread(lambda: "thread"))
asyncio.run(main())
EOF
''', "sum 28\nthread\n", needs="python3", pid=True)
works("python: threads", r'''
python3 - <<'EOF'
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    print("sum", sum(pool.map(lambda i: i * i, range(100))))
EOF
''', "sum 328350\n", needs="python3")
works("python: sqlite3", r'''
python3 - <<'EOF'
import sqlite3
base = sqlite3.connect("f.db")
print(base.execute("pragma journal_mode=wal").fetchone()[0])
base.execute("create table t(a)")
with base:
    base.executemany("insert into t values(?)", [(i,) for i in range(100)])
print("sum", sqlite3.connect("f.db").execute("select sum(a) from t").fetchone()[0])
EOF
''', "wal\nsum 4950\n", needs="python3 -c 'import sqlite3'")
POOL = r'''
cat > pool.py <<'EOF'
import multiprocessing
def square(i):
    return i * i
def add(lock, total):
    for _ in range(100):
        with lock:
            total.value += 1
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print("sum", sum(pool.map(square, range(10))))
    lock, total = multiprocessing.Lock(), multiprocessing.Value("i", 0, lock=False)
    workers = [multiprocessing.Process(target=add, args=(lock, total)) for _ in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print("total", total.value)
EOF
python3 pool.py
'''
works("python: multiprocessing", POOL, "sum 285\ntotal 300\n", needs="python3",
      closed=("--shared-memory",), pid=True)
works("python: ProcessPoolExecutor", r'''
cat > pool.py <<'EOF'
from concurrent.futures import ProcessPoolExecutor
def square(i):
    return i * i
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print("sum", sum(pool.map(square, range(10))))
EOF
python3 pool.py
''', "sum 285\n", needs="python3", closed=("--shared-memory",))
works("python: multiprocessing.shared_memory", r'''
python3 - <<'EOF'
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=100)
block.buf[0] = 42
other = shared_memory.SharedMemory(block.name)
print("first", other.buf[0])
other.close()
block.unlink()
EOF
''', "first 42\n", needs="python3", closed=("--shared-memory",))
works("python: multiprocessing.Manager and forkserver", r'''
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
''', "shared [(0, 0), (1, 1), (2, 4)]\n", needs="python3",
      options=("--unix-sockets",), closed=("--shared-memory",), pid=True)
works("python: the system's interface", r'''
python3 - <<'EOF'
import ctypes, getpass, mmap, os, pathlib, platform, pty, select, signal, socket, ssl, tempfile
with tempfile.TemporaryDirectory() as place, open(place + "/f", "wb+") as file:
    file.write(b"x" * 4096)
    file.flush()
    print("mapped", mmap.mmap(file.fileno(), 4096)[0])
(pathlib.Path.home() / "note").write_text("x")
leader, follower = os.openpty()
print("terminal", os.isatty(follower))
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(9).decode())
waiting = select.epoll()
waiting.register(b.fileno(), select.EPOLLIN)
a.send(b"x")
print("ready", len(waiting.poll(5)))
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.pause()
child = os.fork()
if child == 0: os._exit(7)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
memory = os.memfd_create("m")
print("memfd", os.write(memory, b"abc"), ctypes.CDLL(None).getpid() == os.getpid())
print("certificates", ssl.create_default_context() is not None, platform.system())
EOF
''', "mapped 120\nterminal True\npair\nready 1\nalarm\nchild 7\nmemfd 3 True\ncertificates True"
      " Linux\n", needs="python3", closed=("--terminals",), pid=True)
works("python: pty.spawn", r"""python3 -c 'import pty; pty.spawn(["echo", "in a terminal"])'""",
      "in a terminal", needs="python3", closed=("--terminals",))
works("python: inotify", r'''
python3 - <<'EOF'
import ctypes, os
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0)
libc.inotify_add_watch(watch, b".", 0x100)
open("new", "w").close()
print("noticed", b"new" in os.read(watch, 4096))
EOF
''', "noticed True\n", needs="python3")
works("python: unittest", r'''
printf 'import unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(1, 1)\n' \
  > test_it.py
python3 -m unittest 2>&1
''', "\nOK\n", needs="python3")
works("python: pytest", r'''
printf 'def test_it(tmp_path):\n (tmp_path / "f").write_text("x")\n assert 1 + 1 == 2\n' \
  > test_it.py
python3 -m pytest -q
''', "1 passed", needs="python3 -c 'import pytest'")

# A wheel is a zip archive with three files of metadata.
WHEEL = r'''
python3 - <<'EOF'
import zipfile
with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as wheel:
    info = "tiny-1.0.dist-info/"
    wheel.writestr("tiny.py", "print('tiny', __file__)\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\n"
                   "Tag: py3-none-any\n")
    wheel.writestr(info + "RECORD", f"tiny.py,,\n{info}METADATA,,\n{info}WHEEL,,\n{info}RECORD,,\n")
EOF
'''
VENV = "python3 -c 'import ensurepip, venv'"
works("python: venv and pip install of a wheel", WHEEL + r'''
python3 -m venv .venv && .venv/bin/pip install -q --no-deps ./tiny-1.0-py3-none-any.whl
.venv/bin/python -c 'import tiny, sys; print("apart", sys.prefix != sys.base_prefix)'
''', "apart True\n", needs=("python3", VENV))
works("python: pip install --user", WHEEL + r'''
PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install -q --user --no-deps ./tiny-1.0-py3-none-any.whl
python3 -c 'import os, tiny; print(tiny.__file__.startswith(os.environ["HOME"]))'
''', "True\n", needs=("python3", "python3 -m pip --version"))

# git ----------------------------------------------------------------------------------------------

GIT = r'''
git config --global user.name A && git config --global user.email a@example.com
git config --global init.defaultBranch main
git init -q a && cd a && echo one > f && git add f && git commit -qm first
'''
works("git: commit, branch, merge, mv", GIT + r'''
git checkout -qb side && git mv f g && git commit -qm moved
git checkout -q main && echo two > h && git add h && git commit -qm second
git merge -q -m merged side && ls && git log --oneline | wc -l && git status --short | wc -l
''', "g\nh\n4\n0\n", needs="git", pid=True)
works("git: clone, gc, fetch", GIT + r'''
cd .. && git clone -q a b && git clone -q --no-hardlinks file://$PWD/a c 2>&1
cd a && echo two >> f && git commit -qam second && git gc -q && git fsck && cd ../b &&
git pull -q && cat f && cd ../c && git fetch -q && git log --oneline origin/main | wc -l
''', "one\ntwo\n2\n", needs="git", pid=True)
works("git: stash, rebase, worktree, archive", GIT + r'''
echo dirty >> f && git stash -q && git checkout -qb side && echo x > x && git add x &&
git commit -qm x && git checkout -q main && echo y > y && git add y && git commit -qm y &&
git rebase -q main side && git worktree add -q ../tree main && git stash pop -q && cat f &&
git log --oneline | wc -l && git archive main | tar t && git tag -a v1 -m v1 && git describe
''', "one\ndirty\n3\nf\ny\nv1\n", needs="git")
works("git: hooks run", GIT + r'''
printf '#!/bin/sh\necho hooked >&2\n' > h && install -m 755 h .git/hooks/pre-commit && rm h
echo two >> f && git commit -qam second 2>&1
''', "hooked\n", needs="git")

# Compilers ----------------------------------------------------------------------------------------

HELLO_C = r'''
printf '#include <stdio.h>\nint main(void) { return puts("hello from C") < 0; }\n' > hello.c
'''
works("gcc", HELLO_C + "gcc -O1 -g -pipe hello.c -o hello && ./hello && gcc hello.c && ./a.out",
      "hello from C\nhello from C\n", needs="gcc")
works("g++", r'''
printf '#include <iostream>\nint main() { std::cout << "hello from C++\\n"; }\n' > hello.cpp
g++ -std=c++17 -O0 hello.cpp -o hello -pthread && ./hello
''', "hello from C++\n", needs="g++")
works("make -j", HELLO_C + r'''
printf 'all: one two\none two:\n\tgcc hello.c -o $@\n\t./$@\n' > Makefile
make -s -j2 && make -q one && echo up to date
''', "hello from C\nhello from C\nup to date\n", needs=("make", "gcc"), pid=True)
works("cmake", HELLO_C + r'''
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(hello C)
add_executable(hello hello.c)
enable_testing()
add_test(NAME hello COMMAND hello)
EOF
cmake -S . -B build > configure.log && cmake --build build > build.log && ./build/hello &&
cd build && ctest > test.log && tail -n 2 Testing/Temporary/LastTest.log | wc -l
''', "hello from C\n2\n", needs=("cmake", "make", "gcc"))
works("shared library and ar", r'''
printf 'int f(void) { return 42; }\n' > f.c
printf '#include <stdio.h>\nint f(void);\nint main(void) { return printf("%%d\\n", f()) < 0; }\n' \
  > m.c
gcc -shared -fPIC f.c -o libf.so && gcc m.c -L. -lf -Wl,-rpath,'$ORIGIN' -o m && ./m
gcc -c f.c && ar rc libg.a f.o && gcc m.c libg.a -o n && ./n
''', "42\n42\n", needs=("gcc", "ar"))

# Node.js ------------------------------------------------------------------------------------------

works("node: worker_threads", r'''
cat > main.js <<'EOF'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (!isMainThread) parentPort.postMessage(workerData * workerData);
else Promise.all([1, 2, 3].map(i => new Promise(done =>
  new Worker(__filename, { workerData: i }).on('message', done))))
  .then(all => console.log('squares', all.join()));
EOF
node main.js
''', "squares 1,4,9\n", needs="node", pid=True)
works("node: child_process", r'''
cat > main.js <<'EOF'
const child = require('child_process');
if (process.argv[2]) {
  process.on('message', m => { process.send(m * 2); process.disconnect(); });
} else {
  console.log(child.spawnSync('sh', ['-c', 'cat; exit 3'], { input: 'fed ' }).stdout + 'sync');
  console.log(child.execSync('echo exec').toString().trim());
  child.spawn('seq', ['2']).stdout.on('data', d => console.log('spawn', String(d).length));
  child.exec('exit 5', error => console.log('exit', error.code));
  child.fork(__filename, ['child']).on('message', m => console.log('ipc', m)).send(21);
}
EOF
node main.js | sort
''', "exec\nexit 5\nfed sync\nipc 42\nspawn 4\n", needs="node", pid=True)
works("node: fs.watch", r'''
cat > main.js <<'EOF'
const fs = require('fs');
fs.mkdirSync('d');
const watcher = fs.watch('d', (kind, name) => { console.log('saw', name); watcher.close(); });
fs.writeFileSync('d/new', 'x');
EOF
node main.js
''', "saw new\n", needs="node")
works("node: files, timers, crypto, WebAssembly", r'''
node -e "
const fs = require('fs'), os = require('os');
const place = fs.mkdtempSync(os.tmpdir() + '/x');
fs.promises.writeFile(place + '/f', 'x').then(() => fs.promises.rm(place, { recursive: true }))
  .then(() => setTimeout(() => console.log('timer'), 20));
console.log(require('crypto').randomBytes(8).length, os.cpus().length > 0);
const memory = new WebAssembly.Memory({ initial: 1 });
console.log(memory.buffer.byteLength);
"
''', "8 true\n65536\ntimer\n", needs="node")
works("node: npm install of a directory", r'''
mkdir dep && echo '{"name":"dep","version":"1.0.0","main":"i.js"}' > dep/package.json &&
echo 'module.exports = "from dep"' > dep/i.js &&
echo '{"name":"app","version":"1.0.0","scripts":{"go":"node go.js"}}' > package.json
echo 'console.log(require("dep"))' > go.js
npm install ./dep > log 2>&1 && npm run -s go && ls package-lock.json
''', "from dep\npackage-lock.json\n", needs=("node", "npm"))
works("node: npm pack and global install", r'''
mkdir dep && cd dep && echo '{"name":"dep","version":"1.0.0","bin":"i.js"}' > package.json &&
printf '#!/usr/bin/env node\nconsole.log("installed")\n' > i.js && npm pack -s > log &&
npm install -s -g --prefix ~/.local ./dep-1.0.0.tgz && ~/.local/bin/dep
''', "installed\n", needs=("node", "npm"))

# Other languages: where they are ------------------------------------------------------------------

works("java", r'''
cat > Hello.java <<'EOF'
public class Hello {
  public static void main(String[] words) throws Exception {
    Thread thread = new Thread(() -> System.out.println("thread"));
    thread.start();
    thread.join();
    Process child = new ProcessBuilder("echo", "child").start();
    System.out.print(new String(child.getInputStream().readAllBytes()));
    java.nio.file.Files.writeString(java.nio.file.Path.of("f"), "file\n");
    System.out.print(java.nio.file.Files.readString(java.nio.file.Path.of("f")));
  }
}
EOF
java Hello.java
''', "thread\nchild\nfile\n", needs=("java", "javac"), extra=True, pid=True)
works("go", r'''
mkdir m && cd m && printf 'module m\n\ngo 1.16\n' > go.mod
printf 'package main\n\nfunc main() { println("x"); print(6*7, "\\n") }\n' > main.go
go build -o m . && ./m 2>&1
''', "42\n", needs="go version", extra=True)
works("cargo", r'''
cargo init -q --vcs none --name m m && cd m && cargo run -q
''', "Hello, world!\n", needs=("cargo --version", "rustc --version"), extra=True)
works("ruby", "ruby -e 'puts `echo child`, 6 * 7'", "child\n42\n", needs="ruby", extra=True)
works("php", "php -r 'echo shell_exec(\"echo child\"), 6 * 7;'", "child\n42", needs="php",
      extra=True)

# What some machines have --------------------------------------------------------------------------

works("rsync", "mkdir a && echo x > a/f && rsync -a a/ b && cat b/f", "x\n", needs="rsync",
      extra=True)
works("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f ~/key && ls ~", "key\nkey.pub\n",
      needs=("ssh-keygen", "id -un"), extra=True)
works("openssl", "openssl rand -hex 4 | wc -c; openssl genrsa -out k 1024 2> log && ls k", "9\nk\n",
      needs="openssl", extra=True)
works("zip", "echo x > f; zip -q z f; rm f; unzip -q z; cat f", "x\n", needs=("zip", "unzip"),
      extra=True)
works("jq", "echo '{\"a\": 42}' | jq .a", "42\n", needs="jq", extra=True)
works("vim", "echo abc > f; vim -es -c 's/b/B/' -c wq f; cat f", "aBc\n", needs="vim", extra=True)
# It would have its socket in /tmp.
works("tmux", "export TMUX_TMPDIR=$TMPDIR; tmux new -d 'echo inside > f' &&\n"
      "while ! [ -s f ]; do sleep 0.02; done; cat f", "inside\n", needs="tmux", extra=True,
      options=("--unix-sockets", "--terminals"))
works("sqlite3", "sqlite3 f.db 'create table t(a); insert into t values(42); select * from t'",
      "42\n", needs="sqlite3", extra=True)
# A network of the command's own -------------------------------------------------------------------

SERVER = r'''
echo page > index.html
python3 -u -m http.server --bind 127.0.0.1 0 > log 2>&1 &
while kill -0 $! && ! grep -q 'port [0-9]' log; do sleep 0.02; done
port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' log)
'''
works("loopback: http.server and urllib", SERVER + r'''
python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:$port/').read().decode())"
python3 -c "import urllib.request as u; print(u.urlopen('http://localhost:$port/').status)"
kill $!
''', "page\n\n200\n", needs="python3", network="loopback", shells=BOTH, pid=True)
works("loopback: curl", SERVER + "curl -s http://127.0.0.1:$port/; kill $!", "page\n",
      needs=("python3", "curl"), network="loopback")
works("loopback: node", r'''
node -e "
const server = require('http').createServer((_, answer) => answer.end('served'));
server.listen(0, '127.0.0.1', () => fetch('http://127.0.0.1:' + server.address().port)
  .then(answer => answer.text()).then(text => { console.log(text); server.close(); }));
console.log(require('os').networkInterfaces().lo[0].address);
"
''', "127.0.0.1\nserved\n", needs="node -e fetch", network="loopback")
works("loopback: ::1 and UDP", r'''
python3 - <<'EOF'
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.create_server((address, 0), family=family)
    client = socket.create_connection(server.getsockname()[:2])
    client.send(b"tcp")
    print(server.accept()[0].recv(9).decode())
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((address, 0))
    socket.socket(family, socket.SOCK_DGRAM).sendto(b"udp", receiver.getsockname())
    print(receiver.recv(9).decode())
EOF
''', "tcp\nudp\ntcp\nudp\n", needs=("python3", "grep -q . /proc/net/if_inet6"), network="loopback")
# Without a network: what the caller is told -------------------------------------------------------


def offline(name, script, needs, **more):
    works("offline: " + name, script, "", needs, fails=True, **more)


offline("pip install", "python3 -m venv v && v/bin/pip install requests", ("python3", VENV))
offline("npm install", "npm install left-pad", "npm")
offline("curl", "curl http://example.com", "curl", pid=True)
offline("git clone", "git clone https://example.com/x.git", "git")
offline("urllib", "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")'",
        "python3")
offline("node fetch", "node -e 'require(\"http\").get(\"http://example.com\")'", "node")
