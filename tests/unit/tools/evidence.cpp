// What is done to an audit log is found: by the program that writes it, by its key, by its last
// hash, and by the log of the system.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::ProcessResult;
using support::begins;
using support::check_refused;
using support::lines_of;
using support::parsed;
using support::read_file;
using support::run_program;
using support::Strings;
using support::TempDir;
using support::write_file;

namespace {

std::string text_of(const Strings& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string output_of(const Strings& argv) {
  codeexec::ProcessOptions options;
  options.argv = argv;
  const ProcessResult r = codeexec::run_process(options);
  REQUIRE(r.exit_code == 0);
  return r.out;
}

// SHA-256 by the system's own program.
std::string sha256_of(const std::string& text) {
  const TempDir place;
  return output_of({"sha256sum", place.file("text", text)}).substr(0, 64);
}

// What somebody writes who knows the format and has no key.
std::string forged(const std::string& previous, const std::string& command) {
  const std::string body = "{\"previous\":\"" + previous +
                           "\",\"time\":\"2026-01-01T00:00:00.000Z\",\"host\":\"h\",\"pid\":1,"
                           "\"tool\":\"\",\"command\":\"" +
                           command +
                           "\",\"work_dir\":\"/\",\"allowed\":true,\"outcome\":\"exited\","
                           "\"exit_code\":0,\"duration_ms\":1,\"cpu_ms\":1,\"stdout_bytes\":0,"
                           "\"stderr_bytes\":0";
  return body + ",\"hash\":\"" + sha256_of(body) + "\"}";
}

std::string hash_in(const std::string& line) {
  const Json record = parsed(line);
  return record[record["hmac"].is_string() ? "hmac" : "hash"].as_string();
}

// A log that a program writes to, with a copy of what an attacker may do to it between two records.
struct Log {
  TempDir place = {};
  std::string file = place / "logs/audit";
  std::string key = place.file("key", "0123456789abcdef0123456789abcdef\n", 0600);
  LocalOptions options = {};
  std::unique_ptr<LocalExecutor> here = {};

  explicit Log(bool keyed = false) {
    REQUIRE(::mkdir((place / "logs").c_str(), 0700) == 0);
    REQUIRE(::mkdir((place / "work").c_str(), 0700) == 0);
    options.workspace = place / "work";
    options.audit_file = file;
    if (keyed) options.audit_key = key;
    auto made = LocalExecutor::create(options);
    REQUIRE(made);
    here = std::make_unique<LocalExecutor>(std::move(*made));
  }
  void run(const std::string& word) const { CHECK(here->run("echo " + word).notes.empty()); }
  Strings lines() const { return lines_of(read_file(file)); }
  ProcessResult verify(Strings more = {}) const {
    more.insert(more.begin(), {"--verify-audit", file});
    return run_program(more);
  }
};

void check_found(const ProcessResult& r, const std::string& what) {
  CAPTURE(r.out);
  CHECK(r.exit_code == 1);
  CHECK(contains(r.out, what));
}

// While a program writes to it --------------------------------------------------------------------

struct Manipulation {
  const char* name;
  // What becomes of these lines; all of them were written by the program that goes on.
  std::string (*of)(const Strings& lines);
  const char* found;
};

const char* const by_notice = "says that the log was replaced, shortened or changed";

const Manipulation while_running[] = {
    {"the end is cut off",
     [](const Strings& l) {
       return text_of({l[0], l[1]});
     },
     by_notice},
    {"the last record is replaced by one of the same length",
     [](const Strings& l) {
       std::string last = l[2];
       const std::size_t at = last.find("\"exit_code\":0");
       last[at + 12] = '1';
       const std::string body = last.substr(0, last.find(",\"hash\""));
       return text_of({l[0], l[1], body + ",\"hash\":\"" + sha256_of(body) + "\"}"});
     },
     by_notice},
    {"the end is cut off and filled up to its length",
     [](const Strings& l) {
       const std::string whole = text_of(l);
       std::string text = text_of({l[0], l[1]}) + forged(hash_in(l[1]), "echo other");
       text.resize(whole.size() - 1, ' ');
       return text + "\n";
     },
     "is cut, or is no record of this log"},
    {"a new log from the first record on",
     [](const Strings&) {
       Strings made = {forged("", "echo a")};
       for (int i = 0; i < 4; ++i) made.push_back(forged(hash_in(made.back()), "echo b"));
       return text_of(made);
     },
     by_notice},
    {"a record in the middle is taken out and the rest chained anew",
     [](const Strings& l) {
       std::string last = l[2];
       last.replace(last.find(hash_in(l[1])), 64, hash_in(l[0]));
       const std::string body = last.substr(0, last.find(",\"hash\""));
       return text_of({l[0], body + ",\"hash\":\"" + sha256_of(body) + "\"}"});
     },
     by_notice},
    {"a record in the middle is taken out",
     [](const Strings& l) {
       return text_of({l[0], l[2]});
     },
     "does not follow the line before it"},
    {"a record in the middle is changed",
     [](const Strings& l) {
       std::string middle = l[1];
       middle[middle.find("echo") + 5] = 'x';
       return text_of({l[0], middle, l[2]});
     },
     "was changed after it had been written"},
    {"two records are exchanged",
     [](const Strings& l) {
       return text_of({l[1], l[0], l[2]});
     },
     "does not follow the line before it"},
    {"a record is repeated",
     [](const Strings& l) {
       return text_of({l[0], l[1], l[1], l[2]});
     },
     "does not follow the line before it"},
    {"a second chain goes off from the first record",
     [](const Strings& l) {
       return text_of({l[0], forged(hash_in(l[0]), "echo fork"), l[1], l[2]});
     },
     "does not follow the line before it"},
    {"half a record", [](const Strings& l) { return text_of(l) + l[2].substr(0, 100); },
     "is cut, or is no record of this log"},
};

}  // namespace

TEST_CASE("an audit log that is changed while a program writes to it says so") {
  for (const Manipulation& one : while_running) {
    CAPTURE(one.name);
    const Log log;
    for (const char* word : {"one", "two", "three"}) log.run(word);
    REQUIRE(log.verify().exit_code == 0);
    const std::string changed = one.of(log.lines());
    // In place: the file stays the one that the program has open.
    {
      std::ofstream out(log.file, std::ios::trunc);
      out << changed;
    }
    log.here->run("echo four");
    check_found(log.verify(), one.found);
    CHECK(contains(read_file(log.file), "echo four"));
  }
}

TEST_CASE("an old audit log in the place of the one that is written says so") {
  const Log log;
  log.run("one");
  log.run("two");
  const std::string old = log.place.file("logs/old", read_file(log.file));
  log.run("three");
  REQUIRE(::rename(old.c_str(), log.file.c_str()) == 0);
  const codeexec::Result next = log.here->run("echo four");
  REQUIRE(next.notes.size() == 1);
  CHECK(contains(next.notes[0], "removed or replaced"));
  check_found(log.verify(), by_notice);
}

TEST_CASE("an audit log that is moved away is none that was changed") {
  const Log log;
  log.run("one");
  REQUIRE(::rename(log.file.c_str(), (log.place / "logs/old").c_str()) == 0);
  log.here->run("echo two");
  log.run("three");
  CHECK(log.verify().exit_code == 0);
  CHECK(run_program({"--verify-audit", log.place / "logs/old"}).exit_code == 0);
}

TEST_CASE("two programs that write to one audit log make one chain") {
  const Log log;
  auto other = LocalExecutor::create(log.options);
  REQUIRE(other);
  for (int i = 0; i < 5; ++i) {
    log.run("one");
    CHECK(other->run("echo two").notes.empty());
  }
  CHECK(log.verify().exit_code == 0);
  CHECK(log.lines().size() == 10);
}

// When no program writes to it --------------------------------------------------------------------

TEST_CASE("with a key nobody else can write to an audit log") {
  const Log log(true);
  for (const char* word : {"one", "two", "three"}) log.run(word);
  const Strings lines = log.lines();
  const ProcessResult fine = log.verify({"--audit-key", log.key});
  CHECK(fine.exit_code == 0);
  CHECK(fine.out == log.file + ": 3 records as they were written; the last hash is " +
                        hash_in(lines[2]) + "\n");
  // RFC 2104, by another program.
  const std::string body = lines[1].substr(0, lines[1].find(",\"hmac\""));
  const std::string made =
      output_of({"python3", "-c",
                 "import hmac, sys; print(hmac.new(open(sys.argv[1], 'rb').read(), "
                 "sys.argv[2].encode(), 'sha256').hexdigest())",
                 log.key, body});
  CHECK(made == hash_in(lines[1]) + "\n");

  const auto check = [&](const Strings& changed, const char* found) {
    CAPTURE(found);
    write_file(log.file, text_of(changed));
    check_found(log.verify({"--audit-key", log.key}), found);
  };
  Strings made_up = {forged("", "echo a")};
  made_up.push_back(forged(hash_in(made_up[0]), "echo b"));
  check(made_up, "no record of it was written with the key");
  check({lines[0], lines[1], forged(hash_in(lines[1]), "echo c")}, "was written without the key");
  std::string named = forged(hash_in(lines[1]), "echo d");
  named.replace(named.rfind("\"hash\""), 6, "\"hmac\"");
  check({lines[0], lines[1], named}, "was written with another key");
  // Without the key the chain is looked at, and what could not be is said.
  write_file(log.file, text_of(lines));
  const ProcessResult blind = log.verify();
  CHECK(blind.exit_code == 0);
  CHECK(contains(blind.out,
                 ": 3 records as they were written, of which 3 need --audit-key to be "
                 "checked; the last hash is "));
  const std::string other = log.place.file("other", "fedcba9876543210");
  check_found(log.verify({"--audit-key", other}), "was written with another key");
  check_refused(log.verify({"--audit-key", log.place.file("short", "secret")}),
                "codeexec-mcp: --audit-key: ");
}

TEST_CASE("an audit log that got a key later, and programs that go on with it") {
  const Log plain;
  plain.run("one");
  LocalOptions options = plain.options;
  options.audit_key = plain.key;
  auto keyed = LocalExecutor::create(options);
  REQUIRE(keyed);
  CHECK(keyed->run("echo two").notes.empty());
  CHECK(keyed->run("echo three").notes.empty());
  CHECK(plain.verify({"--audit-key", plain.key}).exit_code == 0);
  const std::string long_key = plain.place.file("long", std::string(100, 'k'));
  options.audit_key = long_key;  // longer than a block of the hash
  options.audit_file = plain.place / "logs/other";
  auto longer = LocalExecutor::create(options);
  REQUIRE(longer);
  CHECK(longer->run("echo two").notes.empty());
  CHECK(run_program({"--verify-audit", options.audit_file, "--audit-key", long_key}).exit_code ==
        0);
}

TEST_CASE("the last hash that somebody kept finds an audit log that was cut or replaced") {
  const Log log;
  for (const char* word : {"one", "two", "three"}) log.run(word);
  const Strings lines = log.lines();
  const std::string last = hash_in(lines[2]);
  CHECK(log.verify({"--last-hash", last}).exit_code == 0);
  log.run("four");
  CHECK(log.verify({"--last-hash", last}).exit_code == 0);
  write_file(log.file, text_of({lines[0], lines[1]}));
  CHECK(log.verify().exit_code == 0);
  check_found(log.verify({"--last-hash", last}), "no record of it has the given last hash");
  check_refused(run_program({"--last-hash", last}), "codeexec-mcp: --last-hash is for");
}

TEST_CASE("a key of the audit log that commands could read is refused") {
  const TempDir place;
  LocalOptions options;
  options.workspace = place.path();
  options.audit_key = place.file("key", "0123456789abcdef");
  CHECK(LocalExecutor::create(options).error().message == "audit_key: it needs an audit_file");
  const TempDir elsewhere;
  options.audit_file = elsewhere / "audit";
  CHECK(contains(LocalExecutor::create(options).error().message, "lies where commands may read"));
  options.workspace = elsewhere.path();
  options.roots = {{elsewhere.path()}, {place.path(), codeexec::Permission::read}};
  CHECK(contains(LocalExecutor::create(options).error().message, "lies where commands may read"));
  options.audit_key = place / "missing";
  CHECK(begins(LocalExecutor::create(options).error().message, "audit_key: "));
}

TEST_CASE("--verify-audit prints no control characters of names and records") {
  const TempDir place;
  const std::string file = place / "a\x1b[31m\xc2\x9b\n";
  run_program({"--audit-file", file, "--run", "echo one"});
  const std::string whole = read_file(file);
  write_file(file, whole + "\x1b]0;title\x07\n");
  const ProcessResult r = run_program({"--verify-audit", file});
  CHECK(r.exit_code == 1);
  for (const char c : r.out) CHECK(((c >= ' ' && c < '\x7f') || c == '\n'));
  CHECK(lines_of(r.out).size() == 2);
}

// The log of the system ---------------------------------------------------------------------------

namespace {

// A daemon of the system's log: its socket, which tests read.
class Daemon {
 public:
  Daemon(const std::string& path, int type) : fd_(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) {
    REQUIRE(fd_.get() >= 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    if (type == SOCK_STREAM) REQUIRE(::listen(fd_.get(), 1) == 0);
  }
  void accept() {
    fd_.reset(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(fd_.get() >= 0);
  }
  std::string receive() {
    pollfd wanted = {fd_.get(), POLLIN, 0};
    REQUIRE(::poll(&wanted, 1, support::patience_ms) == 1);
    std::string text(100000, '\0');
    const ssize_t got = ::recv(fd_.get(), text.data(), text.size(), 0);
    REQUIRE(got >= 0);
    text.resize(static_cast<std::size_t>(got));
    return text;
  }

 private:
  codeexec::UniqueFd fd_;
};

// The JSON of a message, whose header must be that of RFC 5424.
Json message_of(const std::string& text, const std::string& priority) {
  CAPTURE(text);
  const std::size_t at = text.find(" audit - {");
  REQUIRE(at != std::string::npos);
  const Json record = parsed(text.substr(at + 9));
  CHECK(text.substr(0, at) == "<" + priority + ">1 " + record["time"].as_string() + " " +
                                  record["host"].as_string() + " codeexec " +
                                  std::to_string(::getpid()));
  return record;
}

}  // namespace

TEST_CASE("each record goes to the log of the system, with its hash in the file") {
  Log log;
  const std::string path = log.place / "socket";
  log.options.audit_syslog = path;
  CHECK(contains(LocalExecutor::create(log.options).error().message, "audit_syslog: "));
  auto daemon = std::make_unique<Daemon>(path, SOCK_DGRAM);
  auto here = LocalExecutor::create(log.options);
  REQUIRE(here);
  CHECK(here->run("echo one").notes.empty());
  const Json one = message_of(daemon->receive(), "86");
  CHECK(one["command"] == Json("echo one"));
  CHECK(one["hash"] == Json(hash_in(log.lines()[0])));
  CHECK(one["stdout_bytes"] == Json(4));
  CHECK_FALSE(one["stdout"].is_string());
  CHECK(here->run("sudo id").notes.empty());
  CHECK(message_of(daemon->receive(), "84")["allowed"] == Json(false));
  CHECK(here->run("echo " + std::string(9000, 'x')).notes.empty());
  const Json longer = message_of(daemon->receive(), "86");
  CHECK(longer["command"].as_string().size() == 2048);
  CHECK(longer["command_bytes"] == Json(9005));

  // A daemon that is not there is a note; one that comes back is found.
  daemon.reset();
  const auto lost = here->run("echo lost");
  REQUIRE(lost.notes.size() == 1);
  CHECK(begins(lost.notes[0], "the audit record could not be sent to '" + path + "': "));
  REQUIRE(::unlink(path.c_str()) == 0);
  daemon = std::make_unique<Daemon>(path, SOCK_DGRAM);
  CHECK(here->run("echo back").notes.empty());
  const Json back = message_of(daemon->receive(), "86");
  CHECK(back["command"] == Json("echo back"));
  CHECK(back["lost"] == Json(1));

  // One that reads nothing stops no command.
  codeexec::Result full;
  for (int i = 0; i < 5000 && full.notes.empty(); ++i) full = here->run("sudo id");
  REQUIRE(full.notes.size() == 1);
  CHECK(begins(full.notes[0], "the audit record could not be sent to "));
}

TEST_CASE("the log of the system may be a stream, and the only audit log") {
  const TempDir place;
  const std::string path = place / "socket";
  Daemon daemon(path, SOCK_STREAM);
  LocalOptions options;
  options.workspace = place.path();
  options.audit_syslog = path;
  auto here = LocalExecutor::create(options);
  REQUIRE(here);
  daemon.accept();
  CHECK(here->run("echo one").notes.empty());
  const std::string text = daemon.receive();
  CHECK(text.back() == '\n');
  const Json record = message_of(text.substr(0, text.size() - 1), "86");
  CHECK(record["command"] == Json("echo one"));
  CHECK_FALSE(record["hash"].is_string());
  options.audit_syslog = std::string(200, 'x');
  CHECK(contains(LocalExecutor::create(options).error().message, "is too long"));
}
