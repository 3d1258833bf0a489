// Workspaces that are copied: the agent of this host has the copy in another folder.

#include "helpers.hpp"

#include <thread>

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::PlaceExecutor;
using codeexec::Result;
using namespace support;

TEST_CASE("copy: it is there when a command starts, and here again when it has ended") {
  Copied place;
  write_file(place.here("file"), "of this host\n");
  make_directories(place.here("deep/er"));
  write_file(place.here("deep/er/tool"), "#!/bin/sh\necho ran\n", 0755);
  const PlaceExecutor there = make_place(place.options);
  Result r =
      there.run("pwd; cat file; deep/er/tool; echo made > new; echo more >> file; rm -r deep");
  REQUIRE_MESSAGE(r.succeeded(), describe(r));
  CHECK(r.notes.empty());
  const std::string copy = there.facts().workspace;
  CHECK(copy != place.workspace());
  CHECK(r.out == copy + "\nof this host\nran\n");
  CHECK(r.work_dir == place.workspace());
  CHECK(read_file(place.here("new")) == "made\n");
  CHECK(read_file(place.here("file")) == "of this host\nmore\n");
  CHECK(!exists(place.here("deep")));
  // What changes here goes there; so does what the file tools do.
  write_file(place.here("file"), "again\n");
  REQUIRE(there.files().write("by-tool", "written\n"));
  ::unlink(place.here("new").c_str());
  r = there.run("cat file by-tool; ls");
  CHECK_MESSAGE(r.out == "again\nwritten\nby-tool\nfile\n", describe(r));
}

TEST_CASE("copy: a started command ends when its changes are here") {
  Copied place;
  const PlaceExecutor there = make_place(place.options);
  Command command = Command::shell("echo made > new; cat; exit 3");
  command.keep_input_open = true;
  const auto execution = there.start(command);
  const Result other = there.run("until [ -e new ]; do sleep 0.01; done; echo other > other");
  CHECK_MESSAGE(other.succeeded(), describe(other));
  CHECK(read_file(place.here("other")) == "other\n");
  // What running commands have changed so far comes, too.
  CHECK(read_file(place.here("new")) == "made\n");
  execution.close_input();
  const Result r = execution.wait();
  CHECK(r.exit_code == 3);
}

namespace {

// What a folder holds, as text: type, rights, content of each path.
std::string tree_of(const std::string& folder) {
  codeexec::ProcessOptions probe;
  probe.argv = {"sh", "-c",
                "cd \"$0\" && find . -mindepth 1 ! -name .keep -printf '%y %m %s %l %P\\n' | sed "
                "-e 's/^d \\([0-7]*\\) [0-9]*/d \\1/' -e 's/^f 4755/f 755/' | LC_ALL=C sort; find "
                ". -type f ! -name .keep "
                "-exec sha256sum {} + | LC_ALL=C sort",
                folder};
  probe.environment = {"PATH=/usr/bin:/bin"};
  probe.max_output = std::size_t{1} << 22;
  const auto r = codeexec::run_process(probe);
  REQUIRE(r.succeeded());
  // Long names are short in messages.
  std::string text = r.out;
  for (std::size_t at = 0; (at = text.find("00000", at)) != std::string::npos;) text.erase(at, 4);
  return text;
}

// Holds a command that goes on until its input ends.
class Held {
 public:
  Held(const PlaceExecutor& there, const std::string& before, const std::string& after = "true")
      : execution_(there.start(command(before, after))) {
    const Stopwatch watch;
    while (!has(execution_.read(codeexec::Stream::out, 0).text, "began") && watch.soon())
      ::poll(nullptr, 0, 2);
  }
  Result end() {
    execution_.close_input();
    return execution_.wait();
  }

 private:
  static Command command(const std::string& before, const std::string& after) {
    Command command = Command::shell(before + "; echo began; cat; " + after);
    command.keep_input_open = true;
    return command;
  }
  codeexec::Execution execution_;
};

}  // namespace

TEST_CASE("copy: all that a tree may hold goes there and comes back") {
  Copied place;
  const std::string make =
      "mkdir -p 'a b' -- -dash empty 'a.b' a; echo x > 'a b/new\nline'; echo x > -dash/-f; "
      "printf '\\377\\376' > \"$(printf 'bad\\377name')\"; ln -s /etc/passwd outside; "
      "ln -s ../../.. up; ln -s nowhere dangling; ln -s a to-a; echo one > a/x; echo two > a.b/x; "
      "ln a/x hard; python3 -c 'import os; os.chmod(\"a/x\", 0o4755)'; chmod 700 a.b; echo s > "
      "secret; chmod 400 secret; "
      "truncate -s 3000000 sparse; echo end >> sparse; : > zero; mkdir ro; echo r > ro/file; "
      "chmod 555 ro; mkdir -p B; echo b > b; "
      "d=; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do d=$d$(printf '%0250d' $i)/; mkdir -p $d; done; "
      "echo deep > ${d}f";
  SUBCASE("from here") {
    const Result made = make_place(place_options(place.workspace())).run(make);
    REQUIRE_MESSAGE(made.succeeded(), describe(made));
    const PlaceExecutor there = make_place(place.options);
    const Result r = there.run("true");
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK(notes_of(r) == "");
    const std::string want = tree_of(place.workspace());
    CHECK(tree_of(there.facts().workspace) == want);
  }
  SUBCASE("from there") {
    const PlaceExecutor there = make_place(place.options);
    Result r = there.run(make);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK(notes_of(r) == "");
    std::string want = tree_of(there.facts().workspace);
    CHECK(tree_of(place.workspace()) == want);
    struct stat status {};
    REQUIRE(::stat(place.here("sparse").c_str(), &status) == 0);
    CHECK(status.st_blocks * 512 < 2000000);
    REQUIRE(::stat(place.here("a/x").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0755);
    // Types change, all is moved, all goes.
    r = there.run(
        "rm -r a to-a; echo file > a; mkdir to-a; echo in > to-a/x; mv 'a b' moved; "
        "rm b; mkdir b; ln -sfn b B2; rm zero; ln -s a zero; chmod 700 -- -dash; "
        "chmod u+w ro; echo more >> ro/file; chmod 555 ro");
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK(notes_of(r) == "");
    want = tree_of(there.facts().workspace);
    CHECK(tree_of(place.workspace()) == want);
    r = there.run("chmod -R u+w .; rm -rf -- * ");
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK(tree_of(place.workspace()) == "");
  }
}

TEST_CASE("copy: what changed on both sides is told and stays as it is") {
  Copied place;
  for (const char* name : {"both", "same", "gone-here", "gone-there", "mode"})
    write_file(place.here(name), "old\n");
  const PlaceExecutor there = make_place(place.options);
  Held held(there, "true",
            "echo there > both; echo equal > same; echo there > gone-here; rm gone-there; "
            "echo there > both-new");
  write_file(place.here("both"), "here\n");
  write_file(place.here("same"), "equal\n");
  write_file(place.here("both-new"), "here\n");
  write_file(place.here("gone-there"), "here\n");
  ::unlink(place.here("gone-here").c_str());
  Result r = held.end();
  CHECK(has(notes_of(r), "changed both here and there"));
  CHECK(has(notes_of(r), "both"));
  CHECK(has(notes_of(r), "both-new"));
  CHECK(!has(notes_of(r), "same"));
  CHECK(!has(notes_of(r), "gone"));
  CHECK(read_file(place.here("both")) == "here\n");
  CHECK(read_file(place.here("both-new")) == "here\n");
  CHECK(read_file(place.here("gone-here")) == "there\n");
  // A change is stronger than a removal, and each side keeps its own.
  r = there.run("cat both both-new gone-there same");
  CHECK(r.out == "there\nthere\nhere\nequal\n");
  CHECK(notes_of(r) == "");
  // The other one comes when one is removed, on either side.
  r = there.run("rm both");
  CHECK(notes_of(r) == "");
  CHECK(there.run("cat both").out == "here\n");
  ::unlink(place.here("both-new").c_str());
  CHECK(there.run("true").succeeded());
  CHECK(read_file(place.here("both-new")) == "there\n");
  // Told again when it is changed again.
  Held again(there, "true", "echo 2 > mode");
  write_file(place.here("mode"), "3\n");
  r = again.end();
  CHECK(has(notes_of(r), "mode"));
  write_file(place.here("mode"), "4\n");
  r = there.run("cat mode");
  CHECK(r.out == "2\n");
  CHECK(has(notes_of(r), "changed both"));
  write_file(place.here("mode"), "2\n");
  r = there.run("echo 5 > mode");
  CHECK(notes_of(r) == "");
  CHECK(read_file(place.here("mode")) == "5\n");
}

TEST_CASE("copy: a change of the same size within the same moment is found") {
  Copied place;
  const PlaceExecutor there = make_place(place.options);
  for (int i = 0; i < 20; ++i) {
    const char c = static_cast<char>('a' + i);
    write_file(place.here("file"), std::string(1, c));
    const Result r =
        there.run("cat file; t=$(stat -c %y file); printf '" +
                  std::string(1, static_cast<char>('A' + i)) + "' > file; touch -d \"$t\" file");
    CHECK(r.out == std::string(1, c));
    CHECK(read_file(place.here("file")) == std::string(1, static_cast<char>('A' + i)));
  }
}

TEST_CASE("copy: beyond its limits nothing is sent") {
  Copied place;
  for (int i = 0; i < 20; ++i) write_file(place.here("f" + std::to_string(i)), "12345678");
  place.options.copy_max_files = 20;
  CHECK(has(place_error(place.options).message, "more than 20 files (place_copy_files)"));
  place.options.copy_max_files = 100;
  place.options.copy_max_bytes = 100;
  CHECK(place_error(place.options).code == ErrorCode::limit);
  CHECK(has(place_error(place.options).message, "more than 100 bytes (place_copy_size)"));
  place.options.copy_max_bytes = 1000;
  const PlaceExecutor there = make_place(place.options);
  Result r = there.run("true");
  CHECK_MESSAGE(r.succeeded(), describe(r));
  // Of the other side nothing comes.
  r = there.run("echo small > small; head -c 2000 /dev/zero > large");
  CHECK(r.succeeded());
  CHECK(has(notes_of(r), "has not come back from box: it has more than 1000 bytes"));
  CHECK(!exists(place.here("small")));
  r = there.run("rm large");
  CHECK_MESSAGE(notes_of(r) == "", notes_of(r));
  CHECK(read_file(place.here("small")) == "small\n");
  write_file(place.here("large"), std::string(2000, 'x'));
  r = there.run("echo no > ran");
  CHECK(r.outcome == Outcome::not_started);
  CHECK(has(r.message, "place_copy_size"));
  CHECK(!exists(place.here("ran")));
  ::unlink(place.here("large").c_str());
  CHECK(there.run("true").succeeded());
}

TEST_CASE("copy: what is excluded stays where it is") {
  Copied place;
  write_file(place.here(".gitignore"),
             "# comment\n*.o\n!keep.o\n/build/\ndoc/**/out\n\\!x\n\\*y\n");
  for (const char* name : {"sub/build", "build", "doc/a/b/out", "doc/out", "node_modules/x", "s/t"})
    make_directories(place.here(name));
  for (const char* name :
       {"a.o", "keep.o", "build/file", "sub/build/file", "doc/a/b/out/file", "doc/out/file", "!x",
        "*y", "zy", "node_modules/x/file", "s/t/local", "s/t/a.o", "s/t/secret"})
    write_file(place.here(name), "x");
  write_file(place.here("s/.gitignore"), "t/local\n!a.o\nsecret/\n");
  place.options.copy_exclude = {"node_modules/", "/s/t/secret"};
  place.options.copy_gitignore = true;
  const PlaceExecutor there = make_place(place.options);
  Result r =
      there.run("find . -type f | LC_ALL=C sort; echo o > b.o; mkdir build; echo b > build/b");
  CHECK(r.out ==
        "./.gitignore\n./.keep\n./keep.o\n./s/.gitignore\n./s/t/a.o\n./sub/build/file\n"
        "./zy\n");
  CHECK(notes_of(r) == "");
  CHECK(!exists(place.here("b.o")));
  CHECK(!exists(place.here("build/b")));
  CHECK(exists(place.here("build/file")));
  // What becomes ignored is not removed on the other side.
  r = there.run("echo zy >> .gitignore; echo z > zy; cat b.o");
  CHECK(r.out == "o\n");
  CHECK(read_file(place.here("zy")) == "x");
  CHECK(there.run("rm zy").succeeded());
  CHECK(exists(place.here("zy")));
}

TEST_CASE("copy: what is no file, or cannot be read, is left out and told once") {
  Copied place;
  REQUIRE(::mkfifo(place.here("pipe").c_str(), 0600) == 0);
  const PlaceExecutor there = make_place(place.options);
  Result r = there.run("ls; mkfifo fifo");
  CHECK(r.out == "");
  CHECK(has(notes_of(r), "workspace to box: not copied, as it is neither a file"));
  CHECK(has(notes_of(r), "pipe"));
  CHECK(has(notes_of(r), "workspace from box: not copied, as it is neither a file"));
  CHECK(has(notes_of(r), "fifo"));
  r = there.run("echo x > x");
  CHECK_MESSAGE(notes_of(r) == "", notes_of(r));
  CHECK(exists(place.here("x")));
  CHECK(exists(place.here("pipe")));
  CHECK(!exists(place.here("fifo")));
}

TEST_CASE("copy: roots hold for what comes back") {
  Copied place;
  make_directories(place.here("kept"));
  make_directories(place.here("hidden"));
  write_file(place.here("kept/file"), "kept\n");
  write_file(place.here("hidden/file"), "hidden\n");
  place.options.roots = {{place.workspace()},
                         {place.here("kept"), Permission::read},
                         {place.here("hidden"), Permission::none}};
  const PlaceExecutor there = make_place(place.options);
  const Result r = there.run(
      "cat kept/file; ls hidden; python3 -c 'open(\"kept/file\",\"w\").write(\"x\");"
      "open(\"kept/new\",\"w\").write(\"x\")'; echo new > new");
  CHECK(has(r.out, "kept\n"));
  CHECK(!has(r.out, "file\n"));
  CHECK(has(notes_of(r), "where it may only be read: "));
  CHECK(read_file(place.here("kept/file")) == "kept\n");
  CHECK(!exists(place.here("kept/new")));
  CHECK(read_file(place.here("new")) == "new\n");
  place.options.roots = {{place.cache()}, {place.workspace()}};
  CHECK(has(place_error(place.options).message, "outside of the workspace"));
}

TEST_CASE("copy: a session keeps its folder, by the path of this side") {
  Copied place;
  make_directories(place.here("sub"));
  const PlaceExecutor there = make_place(place.options);
  Command command = Command::shell("cd sub && export A=b");
  command.session.emplace();
  Result r = there.run(command);
  CHECK_MESSAGE(r.succeeded(), describe(r));
  CHECK(command.session->work_dir() == place.here("sub"));
  command.script = "pwd; echo $A";
  r = there.run(command);
  CHECK(r.out == there.facts().workspace + "/sub\nb\n");
}

TEST_CASE("copy: a copy that is lost costs the command that ran") {
  if (!has_supervisor()) return;  // between the command and the agent
  Copied place;
  write_file(place.here("file"), "one\n");
  const PlaceExecutor there = make_place(place.options);
  REQUIRE(there.run("true").succeeded());
  const std::string before = there.facts().workspace;
  SUBCASE("with its agent") {
    const Result r =
        there.run("echo lost > lost; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600");
    CHECK(r.outcome == Outcome::unknown);
    CHECK(has(notes_of(r), "has not come back"));
  }
  SUBCASE("alone") {
    const Result r = there.run(
        "echo lost > lost; a=$(cut -d' ' -f4 /proc/$PPID/stat); for s in $(cat "
        "/proc/$a/task/$a/children); do for p in $(cat /proc/$s/task/$s/children); do "
        "tr '\\0' ' ' < /proc/$p/cmdline | grep -q -e --place && kill -9 $p; done; done; true");
    CHECK(has(notes_of(r), "has not come back"));
  }
  SUBCASE("with its folder") {
    const Result r = there.run("cd /; rm -rf \"$OLDPWD\"");
    CHECK(has(notes_of(r), "has not come back"));
    CHECK(exists(place.here("file")));
  }
  CHECK(!exists(place.here("lost")));
  const Result r = there.run("cat file; ls; echo new > new");
  CHECK_MESSAGE(has(r.out, "one\nfile\n"), describe(r));
  CHECK_MESSAGE(has(notes_of(r), "anew"), notes_of(r));
  CHECK(there.facts().workspace != before);
  CHECK(read_file(place.here("new")) == "new\n");
}

TEST_CASE("copy: nothing is left of it") {
  Copied place;
  {
    const PlaceExecutor there = make_place(place.options);
    CHECK(there.run("mkdir -p a/b; echo x > a/b/c; chmod 0 a/b").succeeded());
    CHECK(exists(there.facts().workspace));
  }
  CHECK(tree_of(place.cache()) == "");
}

TEST_CASE("copy: a folder of the same path is taken where it is not there yet") {
  Copied place;
  codeexec::ProcessOptions probe;
  probe.argv = {"unshare", "-rm", "true"};
  probe.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  if (!codeexec::run_process(probe).succeeded()) {
    MESSAGE("SKIPPED: this system lets nobody have a mount namespace");
    return;
  }
  write_file(place.here("file"), "x\n");
  place.options.transport = {"unshare",
                             "-rm",
                             "sh",
                             "-c",
                             "mount -t tmpfs none \"$0\" && exec \"$@\"",
                             place.folder.path(),
                             CODEEXEC_MCP,
                             "--place"};
  const PlaceExecutor there = make_place(place.options);
  const Result r = there.run("pwd; cat file; echo new > new");
  CHECK(r.out == place.workspace() + "\nx\n");
  CHECK(there.facts().workspace == "");
  CHECK(read_file(place.here("new")) == "new\n");
}

TEST_CASE("copy: an empty workspace is not its own copy") {
  Copied place;
  ::unlink(place.here(".keep").c_str());
  SUBCASE("that of one project") {
    {
      const PlaceExecutor there = make_place(place.options);
      const Result r = there.run("pwd; ls -A; echo result > file");
      CHECK_MESSAGE(r.succeeded(), describe(r));
      CHECK(there.facts().workspace != "");
      CHECK(r.out == there.facts().workspace + "\n");
      CHECK(notes_of(r) == "");
    }
    CHECK(read_file(place.here("file")) == "result\n");
  }
  SUBCASE("that of two at the same moment") {
    // The mark of the other project is in the workspace until its agent begins.
    const PlaceExecutor there = make_place(place.options);
    codeexec::PlaceOptions other = place.options;
    const std::string seen = place.folder / "seen";
    const std::string go = place.folder / "go";
    other.transport = {
        "sh",
        "-c",
        "ls -A \"$0\" > \"$1\"; : > \"$1.done\"; until [ -e \"$2\" ]; do sleep 0.01; "
        "done; shift 2; exec \"$@\"",
        place.workspace(),
        seen,
        go};
    for (const std::string& word : place.options.transport) other.transport.push_back(word);
    std::thread connecting([&other] { CHECK(make_place(other).run("ls -A").out == ""); });
    CHECK(support::appears(seen + ".done"));
    CHECK(has(read_file(seen), ".codeexec-part-"));
    const Result r = there.run("ls -A; echo result > file");
    CHECK_MESSAGE(r.out == "", describe(r));
    CHECK(notes_of(r) == "");
    ::unlink(place.here("file").c_str());
    write_file(go, "");
    connecting.join();
    CHECK(there.run("ls -A").out == "");
  }
  CHECK(exists(place.workspace()));
  CHECK(tree_of(place.cache()) == "");
}

TEST_CASE("copy: a disk that is full is one clear line, and leaves whole files") {
  codeexec::ProcessOptions probe;
  probe.argv = {"unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"};
  probe.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  if (!codeexec::run_process(probe).succeeded()) {
    MESSAGE("SKIPPED: this system lets nobody have a mount namespace");
    return;
  }
  Copied place;
  place.options.transport = {
      "unshare",
      "-rm",
      "sh",
      "-c",
      "mount -t tmpfs -o size=1m none \"$0\" && XDG_CACHE_HOME=$0 exec \"$@\"",
      place.cache(),
      CODEEXEC_MCP,
      "--place"};
  write_file(place.here("small"), "small\n");
  write_file(place.here("large"), std::string(3000000, 'x'));
  const PlaceExecutor there = make_place(place.options);
  Result r = there.run("echo ran");
  CHECK(r.outcome == Outcome::not_started);
  CHECK(has(r.message, "workspace to box: not copied: "));
  CHECK(has(r.message, "large"));
  CHECK(has(r.message, "No space left on device"));
  ::unlink(place.here("large").c_str());
  r = there.run("ls; cat small");
  CHECK_MESSAGE(r.out == "small\nsmall\n", describe(r));
}
