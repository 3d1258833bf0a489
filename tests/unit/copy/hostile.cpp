// Places that lie about a copied workspace: paths that lead out of it, lists in no order, sizes and
// numbers that are wrong, links in the way. A program in Python is the agent, and the other side.

#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::PlaceExecutor;
using codeexec::Result;
using namespace support;

namespace {

// An agent that takes the first copy, ends each command at once and then sends `lies`, an
// expression of bytes.
const char* const lying_agent = R"(
import json, os, struct, sys
i, o = sys.stdin.buffer, sys.stdout.buffer
def frame(kind, number, payload):
    for at in range(0, max(1, len(payload)), 60000):
        part = payload[at:at + 60000]
        o.write(struct.pack('<IBI', len(part), kind, number) + part)
    o.flush()
def head(kind, size, time, text, mode=0):
    return struct.pack('<QQQQ', kind | mode << 8, size, time, len(text)) + text
def gone(path): return head(2, 0, 0, path)
def put(path, mode, content=b'', size=None):
    return head(3, len(content) if size is None else size, 0, path, mode) + (
        b'' if mode >> 12 == 4 else
        (struct.pack('<I', len(content)) + content if content else b'') + struct.pack('<I', 0))
FILE, FOLDER, LINK = 0o100644, 0o040755, 0o120777
done = head(4, 0, 0, b'')
o.write(b'codeexec-place/1\n')
copier, got = 0, b''
while True:
    size, kind, number = struct.unpack('<IBI', i.read(9))
    payload = i.read(size)
    if kind == 1:
        frame(1, 0, json.dumps({'protocol': 1, 'version': '0', 'machine': 'm', 'host': 'h',
            'uid': 1, 'home': '/h', 'ground': '/there'}).encode())
    elif kind == 3 and not copier:
        copier = number
    elif kind == 3:
        frame(13, number, b'{"outcome":0,"exit_code":0,"signal":0,"cpu":1,"memory":1,"left":0,'
            b'"pid":7}')
    elif kind == 4:
        if payload.endswith(b'S'):
            frame(9, number, LIES)
        elif payload.endswith(done):
            frame(9, number, struct.pack('<QQ', 2**64 - 1, 0))
)";

struct Lied {
  Copied place = {};
  Result result = {};

  explicit Lied(const std::string& lies, std::uint64_t files = 1000, std::uint64_t size = 100000) {
    write_file(place.here("file"), "mine\n");
    make_directories(place.here("folder"));
    make_symlink("/tmp", place.here("link"));
    make_symlink(place.folder.path(), place.here("up"));
    std::string text = lying_agent;
    text.replace(text.find("LIES"), 4, lies);
    place.options.transport = {"python3", "-c", text};
    place.options.copy_max_files = files;
    place.options.copy_max_bytes = size;
    const PlaceExecutor there = make_place(place.options);
    result = there.run("true");
  }
  bool is_refused() const { return has(notes_of(result), "has not come back from box"); }
  bool is_untouched() const {
    return read_file(place.here("file")) == "mine\n" && !exists(place.here("x")) &&
           !exists(place.folder / "x") && !exists("/tmp/x-of-codeexec");
  }
};

}  // namespace

TEST_CASE("copy: an honest list is taken") {
  const Lied honest("put(b'folder/x', FILE, b'made') + put(b'made', LINK, b'/etc') + done");
  CHECK_MESSAGE(notes_of(honest.result) == "", notes_of(honest.result));
  CHECK(read_file(honest.place.here("folder/x")) == "made");
}

TEST_CASE("copy: a list that leads out of the workspace, or is none, is refused") {
  for (const char* lies :
       {"put(b'../x', FILE, b'no') + done", "put(b'/tmp/x-of-codeexec', FILE, b'no') + done",
        "put(b'a/../../x', FILE, b'no') + done", "put(b'', FILE, b'no') + done",
        "put(b'.', FOLDER) + done", "put(b'..', FOLDER) + done", "put(b'a//x', FILE) + done",
        "put(b'a\\0b', FILE) + done", "put(b'x/', FILE) + done",
        "put(b'n' * 5000, FILE, b'no') + done", "gone(b'../ws/file') + done",
        // Order, twice, too late.
        "put(b'x2', FILE) + put(b'x1', FILE) + done", "put(b'y', FILE) + put(b'y', FILE) + done",
        "gone(b'a') + gone(b'b') + done", "put(b'y', FILE) + gone(b'file') + done",
        // Sizes.
        "put(b'x', FILE, b'long', 1) + done", "put(b'x', FILE, b'', 10 ** 15) + done",
        "head(3, 99999, 0, b'x', FILE) + struct.pack('<I', 70000) + b'x' * 70000",
        "head(3, 99999, 0, b'x', FILE) + struct.pack('<I', 0x1ffffff)",
        "head(3, 10, 0, b'\\xff' * 65536 * 2)",
        // Modes and kinds.
        "put(b'x', 0o104755) + done", "put(b'x', 0o010644) + done", "put(b'x', 0o060644) + done",
        "put(b'x', 0) + done", "head(9, 0, 0, b'') + done", "head(0, 0, 0, b'') + done",
        "head(1, 0, 0, b'text', 99) + done",
        // A link with two targets.
        "head(3, 1, 0, b'x', LINK) + struct.pack('<I', 1) + b'a' + struct.pack('<I', 1) + b'b'"}) {
    CAPTURE(std::string(lies));
    const Lied lied(lies);
    CHECK_MESSAGE(lied.is_refused(), notes_of(lied.result));
    CHECK(lied.is_untouched());
    CHECK(lied.result.exit_code == 0);
  }
}

TEST_CASE("copy: links in the way are not followed, and what is not agreed stays") {
  for (const char* lies :
       {"put(b'link/x-of-codeexec', FILE, b'no') + done", "put(b'up/x', FILE, b'no') + done",
        "put(b'y', LINK, b'/tmp') + put(b'y/x-of-codeexec', FILE, b'no') + done",
        "put(b'file/x', FILE, b'no') + done", "put(b'folder', FILE, b'no', 2) + done"}) {
    CAPTURE(std::string(lies));
    const Lied lied(lies);
    CHECK(lied.is_untouched());
    CHECK(!lied.is_refused());
  }
  const Lied many("b''.join(put(b'%05d' % n, FILE) for n in range(2000)) + done");
  CHECK(many.is_refused());
  const Lied much("b''.join(put(b'%05d' % n, FILE, b'x' * 5000) for n in range(100)) + done");
  CHECK(much.is_refused());
  const Lied told("head(5, 0, 0, b'because \\x1b[31m') + done");
  CHECK(has(notes_of(told.result), "because \\x1b[31m"));
}
