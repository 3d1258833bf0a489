"""Debuggers, tracers and profilers, of one's own processes."""

from task import Dialogue, task

SLEEPER = r'''
printf '#include <fcntl.h>\n#include <unistd.h>\nint inner(int n) { return n + 1; }\n' > t.c
printf 'int main(void) { int n = inner(41); creat("started", 0600);\n' >> t.c
printf 'while (access("stop", F_OK)) pause(); return n; }\n' >> t.c
gcc -g -O0 t.c -o t
'''
task("gdb: a breakpoint and a backtrace", SLEEPER + r'''
touch stop; gdb -q -batch -ex 'break inner' -ex run -ex bt -ex 'print n' -ex continue ./t 2>&1 |
  grep -oE '#1 .* main|= 41|exited with code 052'
''', "= 41\nexited with code 052\n", ("gdb", "gcc"))
task("gdb: attach to a process", SLEEPER + r'''
./t &
until [ -e started ] && grep -q '^State:.S' /proc/$!/status; do sleep 0.01; done
gdb -q -batch -ex bt -p $! 2>&1 | grep -c 'main ()'; touch stop; kill $!
''', "1\n", ("gdb", "gcc", "gdb -q -batch -p $$ 2>&1 | grep -q Thread || test $(id -u) = 0"))
task("gdb: a dialogue in a terminal", (
    "printf 'int main(void) {\\n int n = 41;\\n return n + 1;\\n}\\n' > t.c && gcc -g t.c -o t",
    Dialogue("gdb -q ./t", (("", "gdb\\)"), ("break main", "Breakpoint 1"),
                            ("run", "Breakpoint 1, "), ("next", "return"), ("print n", "41"))),),
     "", ("gdb", "gcc"))
task("strace: a program and its children", r'''
strace -f -o log sh -c 'cat /etc/hostname > /dev/null; true' && grep -c '"/etc/hostname"' log &&
strace -c -o counts true && grep -c total counts
''', "1\n", "strace")
task("strace: attach to a process", r'''
sleep 600 & sleeper=$!; strace -o log -p $sleeper 2> said & tracer=$!
until grep -q attached said || ! kill -0 $tracer; do sleep 0.01; done; kill $sleeper; wait $tracer
grep -c SIGTERM log
''', "2\n", "strace")
task("perf: counts and samples", r'''
perf stat -e task-clock true 2>&1 | grep -c task-clock &&
perf record -q -e cpu-clock -o p.data sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' &&
perf report -i p.data --stdio 2> /dev/null | grep -c 'sh '
''', "1\n", "perf stat -e task-clock true", wants="counters")
task("valgrind: a leak is found", r'''
echo 'int main(void) { return __builtin_malloc(7) == 0; }' > t.c && gcc -g t.c -o t
valgrind -q --leak-check=full ./t 2>&1 | grep -o '7 bytes in 1 blocks'
''', "7 bytes in 1 blocks\n", ("valgrind", "gcc"), heavy=True)
task("python: faulthandler and a core of its own", r'''
python3 -X faulthandler -c 'import os; os.abort()' 2>&1 | grep -o 'Fatal Python error: Aborted'
python3 -X tracemalloc -c 'import tracemalloc; print(tracemalloc.is_tracing())'
''', "Fatal Python error: Aborted\nTrue\n", "python3")
task("ps, top and /proc of one's own", r'''
sleep 600 & until grep -q sleep /proc/$!/comm || ! kill -0 $!; do sleep 0.01; done
ps -o comm= -p $!; top -b -n 1 -p $! | grep -c 'sleep *$';
cat /proc/$!/comm; ls /proc/self/fd > l
free | grep -c Mem; nproc > n && kill $!
''', "sleep\n1\nsleep\n1\n", ("ps", "top", "free"))
