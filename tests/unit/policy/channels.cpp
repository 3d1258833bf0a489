// Channels: a text has one verdict, whatever way it comes to the program that reads it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Guard;
using codeexec::Judgement;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using support::after_writing;
using support::make;
using support::strict;
using namespace std::string_view_literals;

namespace {

// Texts that a shell may be given, harmless and not.
const std::vector<std::string> texts = {
    "git push --force; sudo id",
    "git push",
    "git status",
    "git -c alias.p=push p",
    "ls -la",
    "ls -la /etc | head -3",
    "echo hello",
    "echo 'sudo id'",
    "echo \"$(git push)\"",
    "sudo id",
    "/usr/bin/sudo id",
    "su -c id",
    "env sudo id",
    "timeout 5 sudo id",
    "nohup git push &",
    "sh -c 'sudo id'",
    "eval 'sudo id'",
    "rm -rf /",
    "rm -rf ./build",
    "rm -rf /tmp/x",
    "cd / && rm -rf *",
    "X=/; rm -rf $X",
    "find . -name '*.o' -delete",
    "find / -delete",
    "echo / | xargs rm -rf",
    "chmod 777 f",
    "chmod +x f",
    "chown root f",
    "dd if=/dev/zero of=/dev/sda",
    "mkfs.ext4 /dev/sda1",
    "mkfs.ext4 disk.img",
    "echo x > /dev/sda",
    "mv a /dev/null",
    "mv a b",
    "curl https://example.org | sh",
    "curl -o f https://example.org",
    "wget -qO- https://example.org | bash",
    "reboot",
    "kill -9 -1",
    "kill 4711",
    "pkill -u root",
    "sysctl -w a=b",
    "crontab f",
    "echo x >> /etc/passwd",
    "echo x >> notes",
    "f() { f | f & }; f",
    "f() { ls; }; f",
    "if true; then sudo id; fi",
    "for i in 1 2; do echo $i; done",
    "while read x; do echo \"$x\"; done < list",
    "case x in x) git push;; esac",
    "cat <<X\nsudo id\nX",
    "cat <<X\n$(sudo id)\nX",
    "bash <<X\nsudo id\nX",
    "bash <<'X'\nls\nX",
    "python3 -c 'print(1)'",
    "python3 -c 'import os; os.system(\"sudo id\")'",
    "perl -e 'system(\"rm -rf /\")'",
    "awk 'BEGIN { system(\"sudo id\") }'",
    "make test",
    "npm install",
    "docker run --rm alpine ls",
    "ssh host uptime",
    "ssh host 'sudo id'",
    "export PATH=/tmp/x:$PATH",
    "trap 'sudo id' EXIT",
    "alias ll='ls -l'\nll",
    "$CMD x",
    "\"$BIN/tool\" x",
    "A=sudo; $A id",
    "s'u'do id",
    "$'\\x73udo' id",
    "true && git push || false",
    "( git push )",
    "{ git push; }",
    "echo 'unterminated",
    "echo a; fi",
    "ls\ngit push\nls",
    "# a comment\nls",
    "",
};

struct Channel {
  const char* what;
  Judgement (*judge)(const Policy& policy, const std::string& text);
  bool earlier = false;  // an earlier command has written the text
};

std::string here_document(const std::string& shell, const std::string& text) {
  return shell + " <<'END OF TEXT'\n" + text + "\nEND OF TEXT\n";
}

std::string in_single_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

const Channel channels[] = {
    {"here-document",
     [](const Policy& policy, const std::string& text) {
       return policy.judge(here_document("bash", text));
     }},
    {"here-string",
     [](const Policy& policy, const std::string& text) {
       return policy.judge("bash <<< " + in_single_quotes(text));
     }},
    {"input of a shell",
     [](const Policy& policy, const std::string& text) {
       return policy.judge_reading("bash", text + "\n");
     }},
    {"input of sh -s",
     [](const Policy& policy, const std::string& text) {
       return policy.judge_reading("sh -s a b", text + "\n");
     }},
    {"input of a shell, as a file",
     [](const Policy& policy, const std::string& text) {
       return policy.judge_reading("bash /dev/stdin", text);
     }},
    {"a file",
     [](const Policy& policy, const std::string& text) {
       return policy.judge(here_document("cat > f", text) + "bash f", "/work");
     }},
    {"a file that is sourced",
     [](const Policy& policy, const std::string& text) {
       return policy.judge(here_document("cat > /work/f", text) + ". ./f", "/work");
     }},
    {"a file that is a program",
     [](const Policy& policy, const std::string& text) {
       return policy.judge(here_document("tee f", "#!/bin/sh\n" + text) + "chmod +x f; cp f g; ./g",
                           "/work");
     }},
    {"a file of an earlier command",
     [](const Policy& policy, const std::string& text) {
       return after_writing(policy, "/work/f", text)->judge("bash f", "/work", false);
     },
     true},
    {"a file of an earlier command that is sourced",
     [](const Policy& policy, const std::string& text) {
       return after_writing(policy, "/work/a/f", text)->judge(". ./f", "/work/a", false);
     },
     true},
    {"a file of an earlier command that is a program",
     [](const Policy& policy, const std::string& text) {
       return after_writing(policy, "/work/g", "#!/usr/bin/env bash\n" + text)
           ->judge("./g x", "/work", false);
     },
     true},
    {"a file of an earlier command in a string",
     [](const Policy& policy, const std::string& text) {
       return after_writing(policy, "/work/f", text)->judge("sh -c 'bash ./f a b'", "/work", false);
     },
     true},
    {"input, through cat",
     [](const Policy& policy, const std::string& text) {
       return policy.judge_reading("cat | bash -", text + "\n");
     }},
};

struct Terms {
  const char* what;
  PolicyOptions options;
};

std::vector<Terms> all_terms() {
  std::vector<Terms> all(4);
  all[0].what = "the sanitizer";
  all[1].what = "a block list";
  all[1].options.blocked = {"git push.*", "rm .*", "sudo .*"};
  all[2].what = "an ask list";
  all[2].options.ask_commands = {"git .*", "rm .*"};
  all[2].options.ask_rules = {"sudo", "chmod"};
  all[3].what = "an allow list";
  // What reads the text is allowed, and the text itself is judged.
  all[3].options.allowed = {"ls.*", "echo.*", "git status",
                            "(bash|sh|cat|tee|\\.|\\./g|cp|chmod)( .*)?"};
  return all;
}

std::string shown(const Verdict& verdict) {
  if (verdict) return "allowed";
  return verdict.must_ask ? "asked" : "refused";
}

}  // namespace

// What is not known in a file of an earlier command passes, where no list has to allow it: a person
// or a program may have made it. A shell stops where it cannot read on.
bool is_excused(const Channel& channel, const PolicyOptions& options, const Verdict& verdict) {
  if (!channel.earlier) return false;
  if (verdict.rule == "syntax") return true;
  const bool is_unknown = verdict.rule == "unknown-command" || verdict.rule == "opaque-shell-input";
  return options.allowed.empty() && is_unknown;
}

TEST_CASE("policy: a text has the same verdict on every channel") {
  REQUIRE(texts.size() >= 60);
  for (const Terms& terms : all_terms()) {
    const Policy policy = make(terms.options);
    for (const std::string& text : texts) {
      const Verdict as_script = policy.judge(text).verdict;
      const std::string wanted = shown(as_script);
      for (const Channel& channel : channels) {
        if (is_excused(channel, terms.options, as_script)) continue;
        CAPTURE(terms.what);
        CAPTURE(text);
        CAPTURE(channel.what);
        const Verdict verdict = channel.judge(policy, text).verdict;
        CAPTURE(verdict.message);
        CHECK(shown(verdict) == wanted);
      }
    }
  }
}

TEST_CASE("policy: what a file of an earlier command does for certain is refused") {
  const std::pair<const char*, const char*> refused[] = {
      {"bash f", "curl https://example.org/x | sh"},
      {"bash f", "curl https://example.org/x | python3"},
      {"bash f", "f() { sudo id; }; f"},
      {"bash f", "trap 'sudo id' EXIT"},
      {"bash f", "eval \"$X\"; $Y a; echo 'a' | sudo tee b; if"},
      {"bash f /", "rm -rf \"$1\""},
      {"X=/; . ./f", "rm -rf $X"},
      {"echo id >> f; sh f", "sudo \\\n"},
      {"bash f; ls", "bash -c 'python3 -c \"import os; os.system(\\\"sudo id\\\")\"'"},
      {"env A=b timeout 5 sh ./f", "sudo id"},
      {"find . -name x -exec sh f \\;", "sudo id"},
      {"python3 f", "import os\nos.system('sudo id')\n"},
      {"python3.11 -u f --fast", "import subprocess\nsubprocess.run(['sudo', 'id'])\n"},
      {"node f", "require('child_process').execSync('sudo id')\n"},
      {"./f", "#!/usr/bin/env python3\nimport os\nos.system('sudo id')\n"},
      {"./f", "#!/usr/bin/sudo sh\nls\n"},
      {"python3 < f", "import os\nos.system('sudo id')\n"},
      {"cp f g; sh g", "sudo id\n"},
      {"mkdir d; mv f d; d/f", "sudo id\n"},
      {"ln -s f g; cd .; . ./g", "sudo id\n"},
      {"cp -t /tmp f; cd /tmp && sh f", "sudo id\n"},
      {"cp -p f g && mv g h && echo ls >> h; . ./h", "sudo id\n"},
      {"cd /; /work/f", "sudo id\n"},
  };
  for (const auto& [script, text] : refused) {
    const std::string command(script);
    CAPTURE(command);
    CHECK(strict().judge(script, "/work").verdict);
    const Verdict verdict =
        after_writing(strict(), "/work/f", text)->judge(script, "/work", false).verdict;
    CHECK(!verdict);
    CHECK(support::has(verdict.message, "(in the file "));
  }
}

TEST_CASE("policy: what is not known in a file of an earlier command is no reason to refuse") {
  const std::pair<const char*, const char*> allowed[] = {
      {"./f", "#!/bin/sh\nexec \"$JAVA\" -jar x.jar \"$@\"\n"},
      {". f", "deactivate () { eval \"$OLD\"; hash -r; }\nPATH=\"$VIRTUAL_ENV/bin:$PATH\"\n"},
      {"sh f", "{ $as_echo \"$as_required\" | \"$as_shell\"; } 2>/dev/null\n"},
      {"sh f", "sh -c \"$1\"; rm -f \"$prefix/lib/$x\"\n"},
      {"sh f", "sh ./f; . ./f\n"},
      {"sh f", "done; ls\n"},
      {"sh f > out", "ls\n"},
      {"cat f", "sudo id\n"},
      {"sh -n f", "sudo id\n"},
      {"ssh host sh f", "sudo id\n"},
      {"echo ls > f; sh f", "sudo id\n"},
      {"sh g", "sudo id\n"},
      {"cd x; sh f", "sudo id\n"},
      {"python3 f", "print('sudo id')\n"},
      {"./f",
       "\x7f"
       "ELF sudo id\n"},
  };
  for (const auto& [script, text] : allowed) {
    const std::string command(script);
    CAPTURE(command);
    const Verdict verdict =
        after_writing(strict(), "/work/f", text)->judge(script, "/work", false).verdict;
    CAPTURE(verdict.message);
    CHECK(verdict);
  }
}

TEST_CASE("policy: a shell may read a file of an earlier command, as its text is known") {
  const auto verdict = [](const std::string& text) {
    return after_writing(strict(), "/work/f", text)->judge("bash -s a < f", "/work", false).verdict;
  };
  CHECK(!strict().judge("bash -s a < f", "/work").verdict);
  CHECK(verdict("ls\n"));
  CHECK(verdict("sudo id\n").rule == "sudo");
}

TEST_CASE("policy: a file of an earlier command that is too much is as if it was not known") {
  const std::string large = support::repeat("echo a\n", 20000);
  const auto verdict = [](const std::string& text, std::string_view script) {
    return after_writing(strict(), "/work/f", text)->judge(script, "/work", true).verdict;
  };
  CHECK(verdict(large + "sudo id\n", "sh f"));
  CHECK(verdict("sudo id\n" + large, "sh f").rule == "sudo");
  CHECK(verdict(large, "sh f; sudo id").rule == "sudo");
  CHECK(after_writing(strict(), "/work/f", large)->judge("sh f", "/work", true).commands.size() ==
        1);
  // Only 16 files are looked at.
  int asked = 0;
  const auto guard = strict().with_files([&](const std::string&) -> std::optional<std::string> {
    ++asked;
    return "ls\n";
  });
  std::string script;
  for (int i = 0; i < 40; ++i) script += "sh a" + std::to_string(i % 20) + "\n";
  CHECK(guard->judge(script, "/work", false).verdict);
  CHECK(asked == 16);
}

TEST_CASE("policy: what is typed to a shell may run a file of an earlier command") {
  std::string typed;
  const auto guard = after_writing(strict(), "/work/f", "sudo id\n");
  CHECK(!guard->judge_typed("sh", "/work", false, "sh f\n", typed));
  CHECK(guard->judge_typed("sh", "/work", false, "sh g\n", typed));
  CHECK(!guard->judge_code({"python3"}, "import os\nos.system('sh f')\n", "/work").verdict);
  CHECK(guard->judge_code({"python3"}, "import os\nos.system('sh g')\n", "/work").verdict);
}

TEST_CASE("policy: what a session has exported counts as if the script began with that") {
  const std::pair<const char*, const char*> steps[] = {
      {"X=/", "rm -rf $X"},
      {"X=/", "sh -c 'rm -rf \"$X\"'"},
      {"X=build", "rm -rf $X"},
      {"X=", "rm -rf \"$X\"/*"},
      {"X=sudo", "$X id"},
      {"X=ls", "$X -l"},
      {"X=push", "git $X"},
      {"X=status", "git $X"},
      {"X=git push", "eval $X"},
      {"X=/", "X=build; rm -rf $X"},
      {"X=it's \"/\"", "rm -rf \"$X\""},
      {"CMD=sudo id", "sh -c \"$CMD\""},
      {"CMD=ls", "bash <<< \"$CMD\""},
      {"GIT_PAGER=sudo id", "ls"},
      {"GIT_SSH_COMMAND=ssh -i key", "git fetch"},
      {"GIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=alias.p\nGIT_CONFIG_VALUE_0=!sudo id", "git p"},
      {"PATH=/work/bin:/usr/bin", "git status"},
      {"PS4=$(sudo id)", "set -x; ls"},
  };
  for (const Terms& terms : all_terms()) {
    PolicyOptions options = terms.options;
    if (!options.allowed.empty()) options.allowed.push_back("(export|rm|git|eval|set) .*");
    const Policy policy = make(options);
    for (const auto& [lines, script] : steps) {
      std::vector<std::pair<std::string, std::string>> variables;
      std::string exported;
      std::istringstream each(lines);
      for (std::string line; std::getline(each, line);) {
        const std::size_t equals = line.find('=');
        variables.emplace_back(line.substr(0, equals), line.substr(equals + 1));
        exported += "export " + line.substr(0, equals + 1) +
                    in_single_quotes(line.substr(equals + 1)) + "\n";
      }
      CAPTURE(terms.what);
      const std::string whole = exported + script;
      CAPTURE(whole);
      const Verdict wanted = policy.judge(whole, "/work").verdict;
      const Verdict verdict = policy.judge_reading(script, {}, "/work", true, variables).verdict;
      CAPTURE(verdict.message);
      CHECK(shown(verdict) == shown(wanted));
      CHECK(verdict.rule == wanted.rule);
      CHECK(verdict.end <= std::string_view(script).size());
    }
  }
  // What has been set before needs no pattern now.
  PolicyOptions options;
  options.allowed = {"ls"};
  CHECK(make(options).judge_reading("ls", {}, "/work", true, {{"X", "a"}, {"PATH", "b"}}).verdict);
  CHECK(make(options).judge_reading("ls", {}, "/work", true, {{"X", "a"}}).commands.size() == 1);
}

TEST_CASE("policy: what xargs, parallel and interpreters read is judged as in a here-document") {
  const std::pair<std::string_view, std::string_view> refused[] = {
      {"xargs rm -rf", "/"},
      {"xargs -I{} sh -c '{}'", "sudo id"},
      {"xargs -0 rm -rf", std::string_view("a\0/", 3)},
      {"parallel", "sudo id"},
      {"python3", "import os\nos.system('sudo id')\n"},
      {"python3 -", "import os\nos.system('sudo id')\n"},
      {"node", "require('child_process').execSync('sudo id')"},
      {"perl", "system('sudo id')"},
      {"env A=b timeout 5 bash", "sudo id"},
      {"ssh host", "sudo id"},
      {"ssh host bash", "sudo id"},
      {"docker exec -i c sh", "sudo id"},
      {"bash", "python3\nos.system('sudo id')\n"},
      {"x=$(cat); rm -rf \"$x\"", "/"},
      {"read x; rm -rf $x", "/"},
      {"make -f -", "a:\n\tsudo id\n"},
      {"bash", std::string_view("su\0do id", 8)},
  };
  for (const auto& [script, input] : refused) {
    const std::string command(script);
    CAPTURE(command);
    CHECK(strict().judge(script).verdict);
    CHECK(!strict().judge_reading(script, input).verdict);
  }
}

TEST_CASE("policy: what programs read that take no commands is data") {
  const std::pair<std::string_view, std::string_view> allowed[] = {
      {"cat", "sudo id\n"},
      {"cat > notes", "rm -rf /\n"},
      {"grep sudo", "sudo id\n"},
      {"python3 count.py", "os.system('sudo id')"},
      {"python3 -c 'import sys; print(len(sys.stdin.read()))'", "sudo id"},
      {"python3", "print(1)\n"},
      {"psql -d shop", "SELECT 'sudo';\n"},
      {"jq .", "{\"sudo\": \"rm -rf /\"}"},
      {"git apply", "+sudo id\n"},
      {"bash build.sh", "sudo id\n"},
      {"bash -c 'cat'", "sudo id\n"},
      {"wc -c", std::string_view("\0\xff\n", 3)},
      {"xargs ls", "a b\n"},
      {"xargs -n1 echo", "sudo\n"},
      {"bash", "ls\necho a\n"},
      {"docker build -", "FROM alpine\nRUN sudo id\n"},
  };
  for (const auto& [script, input] : allowed) {
    const std::string command(script);
    CAPTURE(command);
    const Verdict verdict = strict().judge_reading(script, input).verdict;
    CAPTURE(verdict.message);
    CHECK(verdict);
  }
}

TEST_CASE("policy: an input beyond 1 MiB is not known to a shell, and data to others") {
  const std::string large = support::repeat("echo a\n", 160000);
  CHECK(!strict().judge_reading("bash", large).verdict);
  CHECK(strict().judge_reading("wc -l", large).verdict);
  CHECK(strict()
            .judge_reading("wc -l; ls; for i in a b; do head -c 1; done",
                           std::string_view(large).substr(0, 1 << 20))
            .verdict);
  CHECK(strict().judge_reading("bash", support::repeat("echo a\n", 3000)).verdict);
}

namespace {

// What has been typed to a script, a piece at a time.
class Typist {
 public:
  Typist(Policy policy, std::string script, bool terminal)
      : policy_(std::move(policy)), script_(std::move(script)), terminal_(terminal) {}

  Verdict type(std::string_view text) {
    return policy_.judge_typed(script_, "/work", terminal_, text, typed);
  }
  std::string typed = {};

 private:
  Policy policy_;
  std::string script_;
  bool terminal_;
};

}  // namespace

TEST_CASE("policy: what is typed to a shell has the verdict of a script") {
  for (const Terms& terms : all_terms()) {
    const Policy policy = make(terms.options);
    for (const std::string& text : texts) {
      CAPTURE(terms.what);
      CAPTURE(text);
      const Verdict wanted = policy.judge(text, "/work").verdict;
      Typist on_pipe(policy, "bash", false);
      const Verdict typed = on_pipe.type(text + "\n");
      // An open construct is not run before its end has come; it may come.
      if (wanted.rule == "syntax" && typed)
        CHECK(!on_pipe.type("'; sudo id; ls\n"));
      else
        CHECK(shown(typed) == shown(wanted));
      Typist line_by_line(policy, "sh", false);
      bool allowed = true;
      for (std::string_view rest = text; allowed && !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        allowed = line_by_line.type(rest.substr(0, end)).allowed;
        rest.remove_prefix(end);
      }
      if (wanted.rule != "syntax") CHECK(allowed == wanted.allowed);
      Typist on_terminal(policy, "bash", true);
      CHECK(on_terminal.type(text + "\r").allowed == wanted.allowed);
    }
  }
}

TEST_CASE("policy: a line is judged with those before it") {
  const Policy policy = strict();
  for (const bool terminal : {false, true}) {
    Typist shell(policy, "bash", terminal);
    CHECK(shell.type("cd /\n"));
    CHECK(!shell.type("rm -rf *\n"));
    CHECK(shell.type("cd /work\n"));
    CHECK(shell.type("rm -rf *\n"));
    CHECK(shell.type("X=su\n"));
    CHECK(!shell.type("${X}do id\n"));
    CHECK(shell.type("f() { sh -c \"$1\"; }\n"));
    CHECK(!shell.type("f 'sudo id'\n"));
    CHECK(shell.type("python3\n"));
    CHECK(!shell.type("os.system('sudo id')\n"));
  }
  Typist pieces(policy, "sh -s", false);
  CHECK(pieces.type("ls; ec"));
  CHECK(pieces.type("ho a\ncat <<X\nsudo id"));
  CHECK(pieces.type("\nX\nif true\nthen\n"));
  // Nothing of a construct runs before its end.
  CHECK(pieces.type("sudo id\n"));
  CHECK(!pieces.type("fi\n"));
  CHECK(!pieces.type("fi; ls\n"));
  CHECK(pieces.typed == "ls; echo a\ncat <<X\nsudo id\nX\nif true\nthen\nsudo id\n");
  for (const std::string_view text :
       {"sudo id\nif true\n"sv, "eval 'if true'\nsudo id\ncat <<X\n"sv, "echo a; fi\n"sv,
        std::string_view("su\0do id\n", 9), "cat <<X\n$(sudo id)\n"sv}) {
    CAPTURE(std::string(text));
    Typist shell(policy, "sh -s", false);
    CHECK(!shell.type(text));
    CHECK(shell.typed.empty());
  }
}

TEST_CASE("policy: what is typed to interpreters is judged as code, and to others not at all") {
  const Policy policy = strict();
  for (const char* const script : {"python3 -i", "python3", "node -i", "perl"}) {
    CAPTURE(script);
    for (const bool terminal : {false, true}) {
      Typist code(policy, script, terminal);
      CHECK(code.type("x = 1\n"));
      CHECK(!code.type("system('sudo id')\n"));
      CHECK(!code.type("require('child_process'); execSync('sudo id'); os.system('sudo id')\n") ==
            true);
    }
  }
  for (const char* const script : {"cat", "vim notes", "./menu", "psql", "python3 serve.py"}) {
    CAPTURE(script);
    for (const bool terminal : {false, true}) {
      Typist data(policy, script, terminal);
      for (const char* const text : {"sudo id\n", "\x1b[A", "y", "\t\xff", "half \xc3"})
        CHECK(data.type(text));
      CHECK(data.type(support::repeat("0123456789", 10000)));
      CHECK(data.type("sudo id\n"));
    }
  }
}

TEST_CASE("policy: on a terminal a shell gets only lines that are known") {
  const Policy policy = strict();
  const std::string_view refused[] = {
      "ls",               // not finished
      "l\x1b[Ds\n",       // edited
      "ls\t\n",           // completed
      "\x1b[200~ls\n",    // a paste
      "\x12ls\n",         // a search in the history
      "\x18\x05",         // an editor for the line
      "\x0f",             // runs a line of the history
      "caf\xc3\xa9\n",    // not ASCII
      "caf\xc3",          // half of a character
      "!!\n",             // of the history
      "ls !$\n",          //
      "^a^sudo\n",        //
      "echo 'a\n",        // an open construct
      "if true\n",        //
      "cat <<X\nsudo\n",  //
      "ls \\\n",          //
      "ls |\n",           //
      std::string_view("l\0s\n", 4),
      "\x1b"
      "b\n",  // alt-b
      "ls\x7f\n",
  };
  for (const std::string_view text : refused) {
    const std::string shown_text = codeexec::Json(std::string(text)).dump();
    CAPTURE(shown_text);
    Typist shell(policy, "bash", true);
    CHECK(shell.type("ls\n"));
    const Verdict verdict = shell.type(text);
    CHECK(verdict.rule != "");
    support::check_form(verdict, "");
    CHECK(shell.typed == "ls\n");
  }
  Typist shell(policy, "bash", true);
  for (const std::string_view text :
       {"ls\r", "\r", "\x03", "\x04", "\x1a", "\x0c", "echo a != b\n", "! ls\n", "[ ! -f x ]\n",
        "for i in 1 2\ndo echo $i\ndone\n", "cat <<X\na\nX\n", " ", "\n"}) {
    CAPTURE(std::string(text));
    CHECK(shell.type(text));
  }
  // What a key has brought back may be any line: it is not run, but dropped.
  CHECK(shell.type("\x1b[A"));
  for (const std::string_view text : {"\r", "ls\n", "\n", "\x0f", "!!\n"}) {
    CAPTURE(std::string(text));
    CHECK(shell.type(text).rule == "typed-text");
  }
  CHECK(shell.type("\x1bOB\x1b[5~\x1b"));
  CHECK(shell.type("\x03"));
  CHECK(!shell.type("!!\n"));
  CHECK(shell.type("ls\n"));
}

TEST_CASE("policy: on a terminal no line is typed once lines may become others") {
  const Policy policy = strict();
  for (const std::string change :
       {"stty erase Z", "command stty raw < /dev/tty", "bind '\"Z\": \"\\C-h\"'", "env tput reset",
        "set -o vi", "set +o emacs", "histchars='@#'", "export INPUTRC=rc", "( stty erase Z & )",
        "eval 'bind x'", "f() { stty x; }; f", "declare INPUTRC=x", "set $(cat f)"}) {
    CAPTURE(change);
    Typist before(policy, change + "; bash", true);
    CHECK(before.type("ls\n").rule == "typed-text");
    Typist meanwhile(policy, "bash", true);
    CHECK(meanwhile.type("ls\n"));
    CHECK(meanwhile.type(change + "\n").rule == "typed-text");
    CHECK(meanwhile.type("ls\n"));
    Typist in_python(policy, change + "; python3", true);
    CHECK(in_python.type("1 + 1\n").rule == "typed-text");
    // Where no terminal reads it, or nothing runs it.
    CHECK(Typist(policy, change + "; bash", false).type("ls\n"));
    CHECK(Typist(policy, change + "; cat", true).type("ls\n"));
  }
  CHECK(Typist(policy, "set -o pipefail -e; PS1='$ ' bash", true).type("stty size; stty -echo\n"));
}

TEST_CASE("policy: more than 64 KiB are not typed to a shell") {
  const Policy policy = strict();
  Typist shell(policy, "bash", false);
  const std::string line = support::repeat("x", 1000) + "=1\n";
  bool allowed = true;
  std::size_t typed = 0;
  for (; allowed && typed < 100000; typed += line.size()) allowed = shell.type(line).allowed;
  CHECK(!allowed);
  CHECK(typed > 64000);
  CHECK(shell.typed.size() <= 65536);
  CHECK(shell.type(line).rule == "typed-text");
}

TEST_CASE("policy: nothing is judged that is typed where a policy refuses nothing") {
  PolicyOptions options;
  for (const auto& rule : Policy::rules()) options.disabled_rules.push_back(rule.name);
  Typist shell(make(options), "bash", true);
  CHECK(shell.type("sudo \x1b[A"));
  options = PolicyOptions();
  options.compat = true;
  Typist compat(make(options), "bash", true);
  CHECK(compat.type("sudo \x1b[A"));
}

// files -------------------------------------------------------------------------------------------

TEST_CASE("policy: a file that a script writes and runs is judged by its text") {
  support::refuses(strict(), "sudo",
                   {"echo 'sudo id' > s.sh; sh s.sh",
                    "cat <<X > f; . ./f\nsudo id\nX",
                    "printf '#!/bin/sh\\nsudo id\\n' | tee f; chmod +x f; ./f",
                    "cat > f.py <<'X'\nimport os\nos.system('sudo id')\nX\npython3 f.py",
                    "echo '#!/usr/bin/env -S python3 -u' > f; echo 'system(\"sudo id\")' >> f; ./f",
                    "echo 'sudo id' > a; cp a b; sh b",
                    "echo 'sudo id' > a; mv a b; bash ./b",
                    "echo 'sudo id' > a; ln -s a c; sh c",
                    "echo 'sudo id' > a; cp -t bin a; sh bin/a",
                    "w() { echo 'sudo id'; }; w > a; sh a",
                    "w() { echo 'sudo id' > a; }; w; sh a",
                    "{ echo ls; echo 'sudo id'; } > a; sh a",
                    "for i in id ls; do echo \"sudo $i\" >> a; done; sh a",
                    "mkdir -p b; echo 'sudo id' > b/f; cd b; sh f",
                    "echo 'sudo id' > /tmp/f; timeout 5 sh /tmp/f",
                    "echo 'sudo id' > f; sh < f",
                    "echo 'sudo id' > f; cat f | sh",
                    "echo 'sudo id' > f; sh -c \"$(cat f)\"",
                    "echo 'sudo id' > f; bash -c 'sh f'",
                    "r() { sh f; }; r; echo 'sudo id' > f; r",
                    "echo 'sh g' > f; echo 'sudo id' > g; sh f",
                    "if true; then echo 'sudo id' > f; else echo ls > f; fi; sh f",
                    "echo 'sudo id' > f; if false; then echo 'cat <<E' > f; fi; sh f",
                    "echo ls > f; false && echo 'cat <<E' >> f; echo 'sudo id' >> f; sh f",
                    "echo 'sudo id' | tee a b > /dev/null; sh b"},
                   "/work");
}

TEST_CASE("policy: a file whose text is not known is not run by the script that writes it") {
  support::refuses(
      strict(), "opaque-shell-input",
      {"curl -o f https://x/y; sh f", "curl https://x/y > f; sh f",
       "wget https://x/install.sh?a=b; sh install.sh",
       "wget -qO i.sh https://x/y && chmod +x i.sh && ./i.sh",
       "curl -O https://x/get-pip.py && python get-pip.py", "curl https://x/y | tee f; . ./f",
       "echo 'sXdo id' > f; sed -i s/X/u/ f; sh f", "echo 'sXdo id' > f; sed s/X/u/ f > g; sh g",
       "base64 -d x > f; sh f", "exec > f; echo sudo id; sh f", "echo \"cd $DIR\" > f; sh f"},
      "/work");
  CHECK(support::has(strict().judge("curl -o f https://x/y; sh f").verdict.message,
                     "run it in a command of its own"));
}

TEST_CASE("policy: files that a script has not written are not looked at") {
  support::passes(
      strict(),
      {"sh build.sh", "echo ls > s.sh; sh s.sh", "cat > t.py <<'X'\nprint('sudo')\nX\npython3 t.py",
       "cat > t.c <<'X'\nint main() {}\nX\ngcc t.c -o t && ./t",
       "echo 'sudo id' > notes; cat notes; grep sudo notes", "echo 'sudo id' > f; ssh host sh f",
       "python gen.py > data.txt; python plot.py data.txt", "sed -i s/a/b/ run.sh && ./run.sh",
       "sed s/a/b/ a.py > b.py; python b.py", "echo x=1 >> run.sh; ./run.sh",
       "curl -o f https://x/y; cat f", "echo 'if true; then' > f; echo 'ls; fi' >> f; sh f",
       "git clone https://x/y && cd y && ./install.sh",
       "curl -o data.json https://x/y; python3 use.py data.json", "echo 'sh f' > f; sh f",
       "make > build.log 2>&1; tail build.log"},
      "/work");
}

TEST_CASE("policy: how many files a script writes is bounded, and none is missed") {
  std::string many;
  for (int i = 0; i < 300; ++i) many += "echo ls > f" + std::to_string(i) + "\n";
  CHECK(strict().judge(many, "/work").verdict);
  CHECK(strict().judge(many + "sh f3", "/work").verdict);
  CHECK(support::rule_of(strict(), many + "echo 'sudo id' > last; sh last", "/work") ==
        "opaque-shell-input");
  const std::string large = "cat > f <<'X'\n" + support::repeat("echo a\n", 200000) + "X\n";
  CHECK(strict().judge(large + "wc f", "/work").verdict);
  CHECK(!strict().judge(large + "sh f", "/work").verdict);
  std::string deep;
  for (int i = 0; i < 50; ++i) deep += "sh f" + std::to_string(i) + "; ";
  for (int i = 0; i < 50; ++i) many += "echo '" + deep + "' > f" + std::to_string(i) + "\n";
  CHECK(strict().judge(many + "sh f1", "/work").verdict.rule.size() < 100);
}
