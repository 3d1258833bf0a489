// What of the user's own a container gets: variables of a file, and how it is all configured.
#include "support.hpp"

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace {

using codeexec::credentials_from_json;
using codeexec::ErrorCode;
using codeexec::Json;
using codeexec::packages_from_json;
using codeexec::parse_env_file;
using support::has;

using Variables = std::vector<std::pair<std::string, std::string>>;

// "A=1|B=2", or "error at OFFSET: MESSAGE".
std::string read(std::string_view text) {
  const auto variables = parse_env_file(text);
  if (!variables)
    return "error at " + std::to_string(variables.error().offset) + ": " +
           variables.error().message;
  std::string all;
  for (const auto& [name, value] : *variables) all += (all.empty() ? "" : "|") + name + "=" + value;
  return all;
}

Json json(std::string_view text) {
  auto value = Json::parse(text);
  REQUIRE_MESSAGE(value, value.error().message);
  return *std::move(value);
}

struct Case {
  std::string_view text;
  std::string_view expected;
};

}  // namespace

TEST_CASE("env file: what it may hold") {
  const Case cases[] = {
      {"", ""},
      {"\n\n", ""},
      {"A=1", "A=1"},
      {"A=1\n", "A=1"},
      {"A=1\nB=2\n", "A=1|B=2"},
      {"A=1\r\nB=2\r\n", "A=1|B=2"},
      {"A=1\r", "A=1"},
      {"\xef\xbb\xbf"
       "A=1",
       "A=1"},
      {"# a comment\nA=1\n  # another, with a = in it\n", "A=1"},
      {"#A=1", ""},
      {"  A=1  ", "A=1"},
      {"\tA\t=\t1\t", "A=1"},
      {"A = 1", "A=1"},
      {"A=", "A="},
      {"A=   ", "A="},
      {"A=\nB=2", "A=|B=2"},
      {"a_1=x\n_=y\nA2B=z", "a_1=x|_=y|A2B=z"},
      // Whatever comes after the first =.
      {"A==", "A=="},
      {"A=b=c", "A=b=c"},
      {"A=a b  c", "A=a b  c"},
      {"URL=https://u:p@h/?q=1&r=2;s", "URL=https://u:p@h/?q=1&r=2;s"},
      {"A=$HOME ${HOME} $(id) `id` %A%", "A=$HOME ${HOME} $(id) `id` %A%"},
      {"A=\\n\\t\\\\", "A=\\n\\t\\\\"},
      {"A=caf\xc3\xa9 \xff", "A=caf\xc3\xa9 \xff"},
      {"A=it's", "A=it's"},
      {"A=say \"x\"", "A=say \"x\""},
      // Comments.
      {"A=1 # one", "A=1"},
      {"A=1\t#one", "A=1"},
      {"A=1#one", "A=1#one"},
      {"A=#one", "A=#one"},
      {"A= #one", "A="},
      {"A = # one", "A="},
      {"A=##", "A=##"},
      {"A=a#b #c #d", "A=a#b"},
      // export
      {"export A=1", "A=1"},
      {"  export\t A=1", "A=1"},
      {"export=1", "export=1"},
      {"export =1", "export=1"},
      {"exportA=1", "exportA=1"},
      {"export export=1", "export=1"},
      // Quotes.
      {"A='1'", "A=1"},
      {"A=\"1\"", "A=1"},
      {"A = '1'  ", "A=1"},
      {"A=''", "A="},
      {"A=\"\"\nB=''", "A=|B="},
      {"A='  x  '", "A=  x  "},
      {"A='a # b'", "A=a # b"},
      {"A='1' # one", "A=1"},
      {"A=\"1\"#one", "A=1"},
      {"A='1'\r\nB=2", "A=1|B=2"},
      {"A='$X \\n \\ \"'", "A=$X \\n \\ \""},
      {"A=\"it's\"", "A=it's"},
      {"A=\"a\\nb\\tc\\rd\"", "A=a\nb\tc\rd"},
      {"A=\"\\\"\\\\\\$\"", "A=\"\\$"},
      {"A=\"\\x\\'\\ \\0\"", "A=\\x\\'\\ \\0"},
      {"A=\"\\\\n\"", "A=\\n"},
      {"A=\"a\\\nb\"", "A=a\\\nb"},
      {"A=\"$HOME ${B} $(id) `id`\"", "A=$HOME ${B} $(id) `id`"},
      {"A='one\ntwo\n'\nB=2", "A=one\ntwo\n|B=2"},
      {"A=\"one\r\ntwo\"\r\nB=2", "A=one\ntwo|B=2"},
      {"A=\"one\rtwo\"", "A=one\rtwo"},
      {"A='\n#no comment\nB=no variable\n' # but this\nC=3",
       "A=\n#no comment\nB=no variable\n|C=3"},
      // The last one counts.
      {"A=1\nB=2\nA=3", "A=3|B=2"},
      {"A=1\nA=", "A="},
  };
  for (const Case& one : cases) {
    const std::string_view text = one.text;
    CAPTURE(text);
    CHECK(read(text) == one.expected);
  }
}

TEST_CASE("env file: errors tell the line and the place") {
  constexpr std::string_view shape =
      "is not NAME=value, with a NAME of letters, digits and _ that does not begin with a digit";
  const std::pair<std::string_view, std::string> cases[] = {
      {"A", "error at 0: line 1 " + std::string(shape)},
      {"A=1\n\n  =2\n", "error at 7: line 3 " + std::string(shape)},
      {"1A=2", "error at 0: line 1 " + std::string(shape)},
      {"A-B=2", "error at 0: line 1 " + std::string(shape)},
      {"A.B=2", "error at 0: line 1 " + std::string(shape)},
      {"A B=2", "error at 0: line 1 " + std::string(shape)},
      {"\xc3\x84=2", "error at 0: line 1 " + std::string(shape)},
      {"A: 2", "error at 0: line 1 " + std::string(shape)},
      {"export", "error at 0: line 1 " + std::string(shape)},
      {"export A", "error at 0: line 1 " + std::string(shape)},
      {"export 1=2", "error at 0: line 1 " + std::string(shape)},
      {"A\r=2", "error at 0: line 1 " + std::string(shape)},
      {"A=1\nB='x\ny\n", "error at 6: line 2 begins a quote that is not closed"},
      {"A=\"x\\\"", "error at 2: line 1 begins a quote that is not closed"},
      {"A=\"", "error at 2: line 1 begins a quote that is not closed"},
      {"A='x' y", "error at 6: line 1 goes on after the closing quote"},
      {"A='x\ny'z", "error at 7: line 2 goes on after the closing quote"},
      {"A='x''y'", "error at 5: line 1 goes on after the closing quote"},
  };
  for (const auto& [text, expected] : cases) CHECK(read(text) == expected);
  for (const std::string_view text :
       {std::string_view("A=1\nB=\0", 7), std::string_view("A=1\n#\0", 6)})
    CHECK(read(text) == "error at " + std::to_string(text.size() - 1) + ": line 2 has a NUL byte");
  const auto bad = parse_env_file("A");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == ErrorCode::parse);
}

TEST_CASE("W-41: errors never show what a file holds") {
  for (const std::string_view text :
       {"hunter2secret", "A=hunter2\nhunter2secret x", "hunter2-secret=1", "A='hunter2secret",
        "A=\"hunter2\" secret", "export hunter2secret"}) {
    const std::string message = read(text);
    CAPTURE(text);
    CHECK(support::begins(message, "error at "));
    CHECK_FALSE(has(message, "hunter2"));
    CHECK_FALSE(has(message, "secret"));
  }
}

TEST_CASE("env file: hostile input ends soon and is bounded") {
  constexpr std::size_t longest = std::size_t{1} << 20;
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() + part.size() <= longest) text += part;
    return text;
  };
  SUBCASE("the bound") {
    const std::string text = "A=" + std::string(longest - 2, 'x');
    CHECK(read(text).size() == longest);
    const auto more = parse_env_file(text + "x");
    REQUIRE_FALSE(more);
    CHECK(more.error().code == ErrorCode::limit);
  }
  SUBCASE("one name again and again") { CHECK(read(repeated("A=1\n")) == "A=1"); }
  SUBCASE("as many names as there can be") {
    std::string text;
    std::size_t count = 0;
    for (; text.size() + 10 < longest; ++count) text += "A" + std::to_string(count) + "=\n";
    const auto variables = parse_env_file(text);
    REQUIRE(variables);
    CHECK(variables->size() == count);
  }
  SUBCASE("what a reader that goes back would stumble over") {
    for (const std::string_view part : {"\n", " ", "#", " #", "export ", "\"", "'", "=", "\\",
                                        "A=\"\"\n", "A=a#", "\r", "A=\"\\"})
      (void)parse_env_file(repeated(part));
    CHECK(has(read("A=\"" + repeated("\\\\").substr(3)), "line 1 begins a quote"));
    CHECK(read("A=" + repeated("#").substr(2)).size() == longest);
    CHECK(read("A=" + repeated(" #").substr(2)) == "A=");
  }
  SUBCASE("any bytes") {
    support::Random random;
    constexpr std::string_view parts[] = {"A", "=",       "'",  "\"", "\\", "\n",   "\r\n", " ",
                                          "#", "export ", "\t", "1",  "_",  "\xff", "$"};
    for (int i = 0; i < 20000; ++i) {
      std::string text;
      for (std::size_t n = random.below(12); n > 0; --n) text += parts[random.below(15)];
      const auto variables = parse_env_file(text);
      if (!variables) {
        CHECK(variables.error().offset <= text.size());
        continue;
      }
      // What was read, in single quotes, is read as the same.
      std::string written;
      for (const auto& [name, value] : *variables) {
        if (has(value, "'")) continue;
        written += name + "='" + value + "'\n";
      }
      Variables kept;
      for (const auto& variable : *variables)
        if (!has(variable.second, "'")) kept.push_back(variable);
      const auto again = parse_env_file(written);
      CAPTURE(text);
      REQUIRE(again);
      CHECK(*again == kept);
    }
  }
}

TEST_CASE("credentials of a configuration file") {
  const auto options = credentials_from_json(json(R"({
      "mount": ["ssh_keys", "git_config"],
      "additional_mounts": {"/a": {"bind": "/b", "mode": "rw"}, "~/c": {"bind": "/c"}, "/d": {}},
      "env_file": ".env", "env_vars": ["A"], "env_vars_from_file": ["B", "C"],
      "pass_all_env": true})"));
  REQUIRE_MESSAGE(options, options.error().message);
  CHECK(options->mounts == std::vector<std::string>{"ssh_keys", "git_config"});
  CHECK(options->env_file == ".env");
  CHECK(options->env_vars == std::vector<std::string>{"A"});
  CHECK(options->env_vars_from_file == std::vector<std::string>{"B", "C"});
  CHECK(options->pass_all_env);
  REQUIRE(options->additional_mounts.size() == 3);
  CHECK(options->additional_mounts[0].source == "/a");
  CHECK(options->additional_mounts[0].target == "/b");
  CHECK(options->additional_mounts[0].permission == codeexec::Permission::write);
  CHECK(options->additional_mounts[1].source == "~/c");
  CHECK(options->additional_mounts[2].target.empty());

  const auto nothing = credentials_from_json(json(R"({"mount": null})"));
  REQUIRE(nothing);
  CHECK(nothing->mounts.empty());
  CHECK_FALSE(nothing->pass_all_env);
}

TEST_CASE("W-40: a mount without a mode is read-only") {
  const auto options =
      credentials_from_json(json(R"({"additional_mounts": {"/a": {"bind": "/b"}}})"));
  REQUIRE(options);
  REQUIRE(options->additional_mounts.size() == 1);
  CHECK(options->additional_mounts[0].permission == codeexec::Permission::read);
}

TEST_CASE("credentials of a configuration file: what is wrong is named") {
  const Case cases[] = {
      {"[]", "credentials must be an object"},
      {R"({"mounts": []})", "credentials has an unknown key 'mounts'"},
      {R"({"mount": "ssh_keys"})", "credentials.mount must be a list of strings"},
      {R"({"mount": ["a", 1]})", "credentials.mount must be a list of strings"},
      {R"({"mount": ["a\u0000b"]})", "credentials.mount must be a list of strings"},
      {R"({"env_file": ["x"]})", "credentials.env_file must be a string"},
      {R"({"env_vars": {"A": "1"}})", "credentials.env_vars must be a list of strings"},
      {R"({"pass_all_env": "true"})", "credentials.pass_all_env must be true or false"},
      {R"({"additional_mounts": []})", "credentials.additional_mounts must be an object"},
      {R"({"additional_mounts": {"/a": "/b"}})",
       "credentials.additional_mounts.'/a' must be an object"},
      {R"({"additional_mounts": {"/a": {"bind": "/b", "mode": "wr"}}})",
       "credentials.additional_mounts.'/a'.mode must be \"ro\" or \"rw\""},
      {R"({"additional_mounts": {"/a": {"target": "/b"}}})",
       "credentials.additional_mounts.'/a' has an unknown key 'target'"},
  };
  for (const Case& one : cases) {
    const auto options = credentials_from_json(json(one.text));
    REQUIRE_FALSE(options);
    CHECK(options.error().message == one.expected);
    CHECK(options.error().code == ErrorCode::invalid_argument);
  }
}

TEST_CASE("packages of a configuration file") {
  const auto options = packages_from_json(json(R"({
      "preinstall": {"python": ["requests>=2.31.0", "a b"], "npm": ["x"], "system": ["vim"]},
      "required": true, "timeout": 1.5})"));
  REQUIRE_MESSAGE(options, options.error().message);
  CHECK(options->python == std::vector<std::string>{"requests>=2.31.0", "a b"});
  CHECK(options->npm == std::vector<std::string>{"x"});
  CHECK(options->system == std::vector<std::string>{"vim"});
  CHECK(options->required);
  CHECK(options->timeout == std::chrono::milliseconds(1500));
  const auto nothing = packages_from_json(json("{}"));
  REQUIRE(nothing);
  CHECK(nothing->empty());
  const Case cases[] = {
      {R"({"python": []})", "packages has an unknown key 'python'"},
      {R"({"preinstall": {"pip": []}})", "packages.preinstall has an unknown key 'pip'"},
      {R"({"preinstall": {"npm": "x"}})", "packages.preinstall.npm must be a list of strings"},
      {R"({"preinstall": []})", "packages.preinstall must be an object"},
      {R"({"timeout": 0})", "packages.timeout must be seconds, more than 0 and at most 86400"},
      {R"({"timeout": "9"})", "packages.timeout must be seconds, more than 0 and at most 86400"},
  };
  for (const Case& one : cases) {
    const auto wrong = packages_from_json(json(one.text));
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().message == one.expected);
  }
}
