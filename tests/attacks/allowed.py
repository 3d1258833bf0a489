"""A: what must work: a sandbox that refuses everything would pass all others."""

from cases import attack
from judges import shown, succeeded
from network import sends

attack("A01", "write in the workspace", shown("^hello$"), "echo hello > f; cat f", allowed=True)
attack("A02", "read where may be read", shown("^canary$"), 'cat "$RO/canary"', allowed=True)
attack("A03", "read the system", shown("^root:"), "cat /etc/passwd; ls /usr/bin > /dev/null",
       allowed=True)
attack("A04", "a private home and TMPDIR", shown("^private$"),
       'echo private > "$HOME/f" && cat "$HOME/f" && t=$(mktemp) && echo x > "$t"', allowed=True)
attack("A05", "pairs of sockets", succeeded, '"$A" pair', allowed=True)
attack("A06", "pipes, processes and signals of one's own", shown("^143$"),
       'echo x | cat | cat > /dev/null; sleep 50 & kill $!; wait $!; echo $?', allowed=True)
attack("A07", "move between directories of the workspace", shown("^x$"),
       "mkdir a b; echo x > a/f; mv a/f b/g; ln b/g a/h; cat a/h", allowed=True)
attack("A08", "run a program in memory", shown("^canary$"),
       '"$A" memory-program reopen-read "$RO/canary"', allowed=True)
attack("A09", "run a program of the workspace", shown("^canary$"),
       'cp "$A" tool; ./tool reopen-read "$RO/canary"', allowed=True)
sends("A10", "the network of the host when it is asked for", '"$A" tcp "$TCP"', network="host",
      allowed=True)
attack("A11", "a loopback of one's own", succeeded, '"$A" own-loopback', network="loopback",
       allowed=True)
attack("A12", "setsid and timeout", shown("^in time$"), "timeout 5 setsid -w echo in time",
       allowed=True)
attack("A13", "chmod, times and attributes in the workspace", shown("^600 978307200$"),
       'echo x > f; chmod 600 f; TZ=UTC touch -d 2001-01-01 f; stat -c "%a %Y" f', allowed=True)
attack("A14", "a terminal", shown("^tty$"),
       "script -qec 'test -t 0 && echo tty' /dev/null < /dev/null | tr -d '\\r'",
       options=["--terminals"], allowed=True, no_control="there may be no script(1)")
# These need namespaces, as the network does.
attack("A15", "a terminal of one's own", shown("^tty$"),
       "script -qec 'test -t 0 && echo tty' /dev/null < /dev/null | tr -d '\\r'",
       network="loopback", allowed=True, no_control="there may be no script(1)")
attack("A16", "shared memory and pools", shown("^\\[1, 2\\] 7$"),
       "python3 -c 'import multiprocessing, multiprocessing.shared_memory as m; "
       "s = m.SharedMemory(create=True, size=9); s.buf[0] = 7; t = m.SharedMemory(s.name); "
       "print(multiprocessing.Pool(2).map(abs, [-1, 2]), t.buf[0]); t.close(); s.unlink()'",
       network="loopback", allowed=True, no_control="there may be no python3")
attack("A17", "a /tmp of one's own", shown("^x$"),
       'echo x > "/tmp/$UNIQUE" && cat "/tmp/$UNIQUE" && rm "/tmp/$UNIQUE"', network="loopback",
       allowed=True)
