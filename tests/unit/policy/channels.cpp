// Channels: a text has one verdict, whatever way it comes to the program that reads it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Judgement;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
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
  all[3].options.allowed = {"ls.*", "echo.*", "git status", "(bash|sh|cat|source|\\.)( .*)?"};
  return all;
}

std::string shown(const Verdict& verdict) {
  if (verdict) return "allowed";
  return verdict.must_ask ? "asked" : "refused";
}

}  // namespace

TEST_CASE("policy: a text has the same verdict on every channel") {
  REQUIRE(texts.size() >= 60);
  for (const Terms& terms : all_terms()) {
    const Policy policy = make(terms.options);
    for (const std::string& text : texts) {
      const std::string wanted = shown(policy.judge(text).verdict);
      for (const Channel& channel : channels) {
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
