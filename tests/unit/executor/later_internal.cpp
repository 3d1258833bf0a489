// What runs later, from inside: settings of git are read as git reads them.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <random>

#include "../../helpers/support.hpp"
#include "later/later_internal.hpp"

using codeexec::GitSetting;
using codeexec::read_git_settings;

namespace {

// What git lists of a text, in the form of `git config -l -z`; false: it refuses the text.
bool ask_git(const std::string& text, std::string& list) {
  codeexec::ProcessOptions options;
  options.argv = {"git", "config", "-l", "-z", "--no-includes", "--file", "-"};
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent"};
  options.work_dir = "/";
  options.input = text;
  const codeexec::ProcessResult r = codeexec::run_process(options);
  list = r.out;
  return r.succeeded();
}

std::string listed(const std::vector<GitSetting>& settings) {
  std::string list;
  for (const GitSetting& setting : settings) {
    const std::size_t star = setting.key.find(".*.");
    std::string key = setting.key;
    if (star != std::string::npos)
      key = key.substr(0, star + 1) + setting.subsection + key.substr(star + 2);
    list += key + '\n' + setting.value + '\0';
  }
  return list;
}

// A key without a value is `true`.
std::string with_values(const std::string& list) {
  std::string result;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = list.find('\0', at);
    const std::string entry = list.substr(at, end - at);
    // A subsection may have a newline in no text that is read.
    result += entry + (entry.find('\n') == std::string::npos ? "\ntrue" : "") + '\0';
    at = end + 1;
  }
  return result;
}

}  // namespace

TEST_CASE("settings of git are read as git reads them, or not at all") {
  std::string list;
  if (!ask_git("[a]\nb = c\n", list)) {
    MESSAGE("SKIPPED: there is no git here");
    return;
  }
  CHECK(list == std::string("a.b\nc\0", 6));
  const char* const pieces[] = {"[core]\n",
                                "[core]",
                                "[Core]\n",
                                "[a \"B\"]\n",
                                "[a \"x\\\"y\"]\n",
                                "[a \"x\\y\"]",
                                "[a.b]\n",
                                "[ a]\n",
                                "[a ]\n",
                                "[a\t\"b\"]",
                                "[a \"b\" ]\n",
                                "[a-1]\n",
                                "[a_b]\n",
                                "[]\n",
                                "[a\"b\"]\n",
                                "key = value\n",
                                "key=value",
                                "key\n",
                                "key",
                                "Key = v\r\n",
                                "key =\n",
                                "key = \"v w\"\n",
                                "key = v ; comment\n",
                                "key = v # x \\\n",
                                "key = \"v ; w\" x\n",
                                "key = a\\\nb\n",
                                "key = a \\\n",
                                "key = \"a\nb\"\n",
                                "key = \\n\\t\\b\\\\\\\"\n",
                                "key = \\x\n",
                                "key = a\"b\"c\n",
                                "key = \"a\n",
                                "key  \t=  v  \t\n",
                                "1key = v\n",
                                "k_y = v\n",
                                "k-y = v\n",
                                "key v\n",
                                "\xEF\xBB\xBF",
                                "\n",
                                "\r\n",
                                "  ",
                                "\t",
                                "# comment\n",
                                "; [core]\n",
                                "#",
                                "\\\n",
                                "\"",
                                "]",
                                "[",
                                "=",
                                "\x01",
                                "\xC3\xA4",
                                "key = \xC3\xA4\n",
                                "key = v\\\r\n",
                                "key = v\x0b\n",
                                "\f",
                                "\v",
                                "[core]\\\nkey = v\n",
                                " = v\n"};
  std::mt19937 random(7);
  std::size_t read = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string text = random() % 4 == 0 ? "" : "[s]\n";
    for (std::size_t count = random() % 6 + 1; count > 0; --count)
      text += pieces[random() % std::size(pieces)];
    CAPTURE(codeexec::printable(text));
    const auto settings = read_git_settings(text);
    if (!settings) continue;
    // What git refuses it obeys in no part.
    if (!ask_git(text, list)) continue;
    ++read;
    CHECK(codeexec::printable(listed(*settings)) == codeexec::printable(with_values(list)));
    for (const GitSetting& setting : *settings) {
      CHECK(setting.begin < setting.end);
      CHECK(setting.end <= text.size());
    }
  }
  CHECK(read > 200);
}

TEST_CASE("what starts programs does not come through, wherever it stands") {
  std::vector<std::string> names;
  const auto safe = [&names](const std::string& before, const std::string& now) {
    names.clear();
    return codeexec::safe_git_settings(
        before, now, [](codeexec::GitPlace, const std::string&) { return true; }, names);
  };
  const std::string before = "[core]\n\tpager = less\n[user]\n\tname = a\n";
  CHECK(safe(before, before) == before);
  CHECK(names.empty());
  CHECK(safe(before, before + "[remote \"o\"]\n\turl = x\n") ==
        before + "[remote \"o\"]\n\turl = x\n");
  CHECK(safe(before, before + "[core]\n\tfsmonitor = x\n") == before + "[core]\n");
  CHECK(names == std::vector<std::string>{"core.fsmonitor"});
  CHECK(safe(before, "[user]\n\tname = b\n") == "[user]\n\tname = b\n[core]\n\tpager = less\n");
  CHECK(names == std::vector<std::string>{"core.pager"});
  CHECK(safe(before, "[core] pager=x\n pager = less\n") == "[core] pager = less\n");
  // The last of several counts, so their order does, too.
  const std::string two = "[core]\n\tpager = a\n\tpager = b\n";
  CHECK(safe(two, "[core]\n\tpager = b\n\tpager = a\n") ==
        "[core]\n\tpager = a\n[core]\n\tpager = b\n");
  // What cannot be read may say anything.
  for (const char* text :
       {"[core", "[a.b]\nc = d\n", "x = y\n", "[a]\nb = \\x\n", "[a]\nb = \"c\n"}) {
    CHECK(safe(before, text) == before);
    CHECK(names.size() == 1);
  }
  CHECK(safe(before, std::string("[user]\nname = a\0", 16)) == before);
  CHECK(safe("[broken", before) == "[broken");
}
