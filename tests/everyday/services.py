"""Servers and databases: in one command, and in the background for the next one."""

from task import Serve, task

PORT = ("python3 -c 'import socket;"
        " print(socket.create_server((\"127.0.0.1\", 0)).getsockname()[1])'")
# What a server prints is in the file before the line is seen.
SAID = ' | while read -r line; do echo "$line" >> said; echo "$line"; done'
LOOPBACK = dict(network="loopback", wants="loopback")

task("http: a server and its client in one command", r'''
echo page > index.html; mkfifo said; python3 -u -m http.server --bind 127.0.0.1 0 > said 2> log &
read -r _ _ _ _ _ port _ < said; python3 - $port <<'EOF'
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/").read().decode(), end="")
EOF
kill $!
''', "page\n", "python3", **LOOPBACK)
task("http: a server in the background for the next command", (
    Serve("echo page > index.html; python3 -u -m http.server --bind 127.0.0.1 0 " + SAID, "port"),
    "curl -sS http://127.0.0.1:$(sed 's/.*port \\([0-9]*\\) .*/\\1/' said)/"),
    "page\n", ("python3", "curl"), **LOOPBACK)
task("node: a server in the background for the next command", (
    Serve("echo 'const s = require(\"http\").createServer((q, a) => a.end(\"from node\"));"
          "s.listen(0, \"127.0.0.1\", () => { require(\"fs\").writeFileSync(\"port\","
          "String(s.address().port)); console.log(\"ready\") })' > s.js; node s.js", "ready"),
    "node -e 'fetch(`http://127.0.0.1:${require(\"fs\").readFileSync(\"port\")}`)"
    ".then(a => a.text()).then(console.log)'"),
    "from node\n", "node", **LOOPBACK)
task("vite: its server in the background for the next command", (
    Serve("echo '<script type=\"module\" src=\"/main.js\"></script>' > index.html\n"
          "echo 'console.log(\"served\")' > main.js\n"
          "vite --host 127.0.0.1 --port $(" + PORT + ")" + SAID, "Local"),
    "curl -sS $(grep -o 'http://[0-9.:]*' said | head -n 1)/main.js"),
    "served", ("node", "vite", "python3", "curl"), **LOOPBACK)
task("udp, ::1 and many connections", r'''
python3 - <<'EOF'
import socket, threading
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a.bind(("127.0.0.1", 0))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"datagram", a.getsockname())
print(a.recv(99).decode())
server = socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=100)
def serve():
    for _ in range(50):
        connection, _ = server.accept()
        connection.sendall(b"x")
        connection.close()
threading.Thread(target=serve).start()
there = ("::1", server.getsockname()[1])
print(sum(len(socket.create_connection(there).recv(9)) for _ in range(50)))
EOF
''', "datagram\n50\n", "python3", **LOOPBACK)
task("sqlite: a WAL of two processes", r'''
cat > w.py <<'EOF'
import sqlite3, subprocess, sys
base = sqlite3.connect("f.db", timeout=60)
if len(sys.argv) > 1:
    for i in range(20):
        with base:
            base.execute("insert into t values(?)", (i,))
else:
    print(base.execute("pragma journal_mode=wal").fetchone()[0])
    base.execute("create table t(a)")
    writers = [subprocess.Popen([sys.executable, "w.py", "x"]) for _ in range(2)]
    print([one.wait() for one in writers])
    print("sum", base.execute("select sum(a) from t").fetchone()[0])
EOF
python3 w.py
''', "wal\n[0, 0]\nsum 380\n", "python3 -c 'import sqlite3'")
task("sqlite3: its shell, and the next command", (
    "sqlite3 f.db 'pragma journal_mode=wal; create table t(a); insert into t values(42)'",
    "sqlite3 f.db 'select a from t'; sqlite3 f.db .dump > d.sql; sqlite3 g.db < d.sql; ls g.db"),
    "42\ng.db\n", "sqlite3")
POSTGRES = r'''
export PGDATA=$PWD/db LC_ALL=C.UTF-8; initdb -A trust -U me > log 2>&1 || { cat log >&2; exit 1; }
'''
SQL = ('-U me -d postgres -Atc "create table t(a int);'
       ' insert into t select generate_series(1, 100); select sum(a) from t"')
task("postgres: initdb, a server on a port, a query", POSTGRES + r'''
port=$(PORT); pg_ctl -w -l server.log -o "-p $port -h 127.0.0.1 -k ''" start > log || {
  cat log server.log >&2; exit 1; }
psql -h 127.0.0.1 -p $port SQL; pg_ctl -m fast stop > log
'''.replace("PORT", PORT).replace("SQL", SQL), "5050\n", ("initdb", "pg_ctl", "psql", "python3"),
     network="loopback", wants=("loopback", "System V memory"), only="user", heavy=True)
task("postgres: a server on a socket file", POSTGRES + r'''
pg_ctl -w -l server.log -o "-h '' -k $PWD" start > log || { cat log server.log >&2; exit 1; }
psql -h "$PWD" SQL; pg_ctl -m fast stop > log
'''.replace("SQL", SQL), "5050\n", ("initdb", "pg_ctl", "psql"),
     wants=("unix sockets", "System V memory"), only="user", heavy=True)
task("postgres: a server in the background for the next command", (
    Serve(POSTGRES + "echo $(" + PORT + ") > port; exec postgres -p $(cat port) -h 127.0.0.1 -k ''"
          " -c logging_collector=off 2>&1", "ready to accept connections"),
    "psql -h 127.0.0.1 -p $(cat port) " + SQL), "5050\n",
    ("initdb", "postgres", "psql", "python3"), network="loopback",
    wants=("System V memory", "loopback"), only="user", heavy=True)
REDIS = "redis-server --bind 127.0.0.1 --save '' --port "
task("redis: a server and its client in one command", r'''
port=$(PORT); mkfifo said; REDIS $port > said & while read -r line; do case $line in
  *Ready*) break ;; esac; done < said; redis-cli -p $port set a 42; redis-cli -p $port get a
kill $!
'''.replace("PORT", PORT).replace("REDIS", REDIS), "OK\n42\n",
     ("redis-server", "redis-cli", "python3"), **LOOPBACK)
task("redis: a server in the background for the next command", (
    Serve("echo $(" + PORT + ") > port; exec " + REDIS + "$(cat port)", "Ready to accept"),
    "redis-cli -p $(cat port) set a 42 && redis-cli -p $(cat port) get a"),
    "OK\n42\n", ("redis-server", "redis-cli", "python3"), **LOOPBACK)
task("redis: a server on a socket file", r'''
mkfifo said; redis-server --port 0 --unixsocket $PWD/s --save '' > said & while read -r line; do
  case $line in *ready*) break ;; *ermission*) echo "$line" >&2; exit 1 ;; esac; done < said
redis-cli -s $PWD/s set a 42; redis-cli -s $PWD/s get a; kill $!
''', "OK\n42\n", ("redis-server", "redis-cli"), wants="unix sockets")
task("socat: two ends of a socket file", r'''
socat UNIX-LISTEN:$PWD/s EXEC:'tr a-z A-Z' &
until [ -S s ] || ! kill -0 $! 2> log; do sleep 0.01; done
echo hello | socat - UNIX-CONNECT:$PWD/s,retry=1000,interval=0.01  # it is made before it listens
''', "HELLO\n", "socat", wants="unix sockets")
task("flask: a server in the background for the next command", (
    Serve("printf 'from flask import Flask\\napp = Flask(__name__)\\n@app.get(\"/\")\\n"
          "def index(): return \"from flask\"\\n' > app.py; python3 -m flask run --port $("
          + PORT + ") 2>&1" + SAID, "Running on"),
    "curl -sS $(grep -o 'http://[0-9.:]*' said | head -n 1)"),
    "from flask", ("python3 -c 'import flask'", "curl"), heavy=True, **LOOPBACK)
