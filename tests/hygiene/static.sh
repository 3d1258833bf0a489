# The server as one static file (target codeexec-place-static) works where there is nothing else: in
# a folder that is the root of all, with a shell and without one. CODEEXEC_STATIC: that file.
. "$(dirname "$0")/lib.sh"

[ -n "${CODEEXEC_STATIC:-}" ] || {
  skip "the compiler makes no static programs that run here"
  exit 77
}
for tool in busybox python3; do
  command -v $tool > "$OUT/which" || {
    skip "$tool is not installed"
    exit 77
  }
done
# The tree has no libraries.
if ldd "$(command -v busybox)" > "$OUT/ldd.log" 2>&1; then
  skip "busybox is not static (busybox-static)"
  exit 77
fi
rm -rf "$OUT/tree"
mkdir -p "$OUT/tree/work" "$OUT/tree/bin" "$OUT/tree/dev" "$OUT/tree/proc" "$OUT/tree/tmp"
if ! ln "$CODEEXEC_STATIC" "$OUT/tree/server" 2> "$OUT/ln.log"; then
  cp "$CODEEXEC_STATIC" "$OUT/tree/server"
fi
# in_tree COMMAND...: the tree is its root; as root there, whoever this is.
in_tree() { busybox unshare --user --map-root-user busybox chroot "$OUT/tree" "$@"; }
in_tree /server --version > "$OUT/version" 2> "$OUT/version.log" || {
  grep -q 'unshare' "$OUT/version.log" && {
    skip "this kernel gives no root of one's own: $(cat "$OUT/version.log")"
    exit 77
  }
}
version=$(version_of MAJOR).$(version_of MINOR).$(version_of PATCH)
expect "it runs in an empty tree" grep -q " $version\$" "$OUT/version"
in_tree /server --workspace /work --run true > "$OUT/none" 2>&1 || true
expect "without a shell it says what is missing" grep -q "/bin/sh" "$OUT/none"

cp "$(command -v busybox)" "$OUT/tree/bin/busybox"
for applet in sh cat sleep touch; do ln -sf busybox "$OUT/tree/bin/$applet"; done
: > "$OUT/tree/dev/null"
cat > "$OUT/talk.py" << 'PYTHON'
# A conversation by the lines of the protocol: what tools do is the same as elsewhere.
import json, subprocess, sys

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
count = 0


def ask(method, **params):
    global count
    count += 1
    server.stdin.write(json.dumps(
        {"jsonrpc": "2.0", "id": count, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == count:
            return answer["result"]
    sys.exit("the server has ended")


def call(tool, **arguments):
    return ask("tools/call", name=tool, arguments=arguments)["structuredContent"]


def check(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} and not {wanted!r}"


ask("initialize", protocolVersion="2025-11-25", capabilities={},
    clientInfo={"name": "x", "version": "1"})
run = call("execute_command", command="echo one; echo two >&2; exit 3")
check("status", run["exit_code"], 3)
check("streams", (run["stdout"], run["stderr"]), ("one\n", "two\n"))
check("input", call("execute_command", command="cat", stdin="x\n" * 100000)["success"], True)
killed = call("execute_command", command="sleep 600 & sleep 600", timeout=1)
check("timeout", killed["success"], False)
check("the refusal", "sudo" in call("execute_command", command="sudo id")["stderr"], True)
call("execute_command", command="touch seen", work_dir="/work")
check("folder", call("execute_command", command="cat seen; echo *")["stdout"], "seen\n")
shell = call("start_background_shell", command="echo ready; sleep 600")["shell_id"]
check("kill", call("kill_background_shell", shell_id=shell)["shell_id"], shell)
server.stdin.close()
check("end", server.wait(), 0)
PYTHON
expect "its tools work with nothing but a shell beside it" \
  python3 "$OUT/talk.py" busybox unshare --user --map-root-user busybox chroot "$OUT/tree" \
  /server --workspace /work
finish
