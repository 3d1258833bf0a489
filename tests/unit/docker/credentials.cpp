// What of the user's own a container gets: variables of a file, and how it is all configured.
#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

#include <algorithm>
#include <chrono>

namespace {

using codeexec::ErrorCode;
using codeexec::Json;
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

// What they come to in the options of a container; what is not there is told in `notes`.
codeexec::Expected<codeexec::ContainerOptions> completed(
    codeexec::ContainerOptions options, std::vector<std::string>* notes = nullptr) {
  if (notes) options.on_progress = [notes](std::string_view note) { notes->emplace_back(note); };
  return codeexec::complete(options);
}

std::string text_of(const Variables& variables) {
  std::string all;
  for (const auto& [name, value] : variables) all += (all.empty() ? "" : "|") + name + "=" + value;
  return all;
}

Json json(std::string_view text) {
  auto value = Json::parse(text);
  REQUIRE_MESSAGE(value, value.error().message);
  return *std::move(value);
}

// The options of a container that a text of a configuration file sets.
codeexec::Expected<codeexec::ContainerOptions> credentials_of(std::string_view text) {
  codeexec::ContainerOptions options;
  if (auto ok = codeexec::credentials_from_json(json(text), options); !ok) return ok.failure();
  return options;
}
codeexec::Expected<codeexec::ContainerOptions> packages_of(std::string_view text) {
  codeexec::ContainerOptions options;
  if (auto ok = codeexec::packages_from_json(json(text), options); !ok) return ok.failure();
  return options;
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

TEST_CASE("env files: odd lines are left out, and told by their numbers") {
  std::vector<std::string> skipped;
  const auto read = parse_env_file("A=1\nodd line\nB='x\nC=2\nD='y' z\nE=3\nF=\"", &skipped);
  REQUIRE(read);
  CHECK(*read == codeexec::Variables{{"A", "1"}, {"C", "2"}, {"E", "3"}});
  REQUIRE(skipped.size() == 4);
  CHECK(has(skipped[0], "line 2 is not NAME=value"));
  const support::TempDir folder;
  codeexec::ContainerOptions wanted;
  wanted.env_file = folder.file(".env", "A=1\nhunter2 line\nB=2\n");
  std::vector<std::string> notes;
  const auto options = completed(wanted, &notes);
  REQUIRE(options);
  CHECK(options->environment == codeexec::Variables{{"A", "1"}, {"B", "2"}});
  REQUIRE(notes.size() == 1);
  CHECK(has(notes[0], "left out: line 2 is not NAME=value"));
  CHECK_FALSE(has(notes[0], "hunter2"));
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
  SUBCASE("as many wrong lines as there can be") {
    std::vector<std::string> skipped;
    CHECK(parse_env_file(repeated("x\n"), &skipped));
    REQUIRE(skipped.size() == 16);
    CHECK(support::begins(skipped[15], "line 16 is not NAME=value"));
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
    for (int i = 0; i < 5000; ++i) {
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
  const auto options = credentials_of(R"({
      "mount": ["ssh_keys", "git_config"],
      "additional_mounts": {"/a": {"bind": "/b", "mode": "rw"}, "~/c": {"bind": "/c"}, "/d": {}},
      "env_file": ".env", "env_vars": ["A"], "env_vars_from_file": ["B", "C"],
      "pass_all_env": true})");
  REQUIRE_MESSAGE(options, options.error().message);
  CHECK(options->credentials == std::vector<std::string>{"ssh_keys", "git_config"});
  CHECK(options->env_file == ".env");
  CHECK(options->env_vars == std::vector<std::string>{"A"});
  CHECK(options->env_vars_from_file == std::vector<std::string>{"B", "C"});
  CHECK(options->pass_all_env);
  REQUIRE(options->mounts.size() == 3);
  CHECK(options->mounts[0].source == "/a");
  CHECK(options->mounts[0].target == "/b");
  CHECK(options->mounts[0].permission == codeexec::Permission::write);
  CHECK(options->mounts[1].source == "~/c");
  CHECK(options->mounts[2].target.empty());

  const auto nothing = credentials_of(R"({"mount": null})");
  REQUIRE(nothing);
  CHECK(nothing->credentials.empty());
  CHECK_FALSE(nothing->pass_all_env);
}

TEST_CASE("W-40: a mount without a mode is read-only") {
  const auto options = credentials_of(R"({"additional_mounts": {"/a": {"bind": "/b"}}})");
  REQUIRE(options);
  REQUIRE(options->mounts.size() == 1);
  CHECK(options->mounts[0].permission == codeexec::Permission::read);
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
    const auto options = credentials_of(one.text);
    REQUIRE_FALSE(options);
    CHECK(options.error().message == one.expected);
    CHECK(options.error().code == ErrorCode::invalid_argument);
  }
}

TEST_CASE("packages of a configuration file") {
  const auto options = packages_of(R"({
      "preinstall": {"python": ["requests>=2.31.0", "a b"], "npm": ["x"], "system": ["vim"]},
      "required": true, "timeout": 1.5})");
  REQUIRE_MESSAGE(options, options.error().message);
  CHECK(options->python_packages == std::vector<std::string>{"requests>=2.31.0", "a b"});
  CHECK(options->npm_packages == std::vector<std::string>{"x"});
  CHECK(options->system_packages == std::vector<std::string>{"vim"});
  CHECK(options->packages_required);
  CHECK(options->package_timeout == std::chrono::milliseconds(1500));
  const auto nothing = packages_of("{}");
  REQUIRE(nothing);
  CHECK(nothing->python_packages.empty());
  CHECK(nothing->package_timeout == codeexec::ContainerOptions().package_timeout);
  const Case cases[] = {
      {R"({"python": []})", "packages has an unknown key 'python'"},
      {R"({"preinstall": {"pip": []}})", "packages.preinstall has an unknown key 'pip'"},
      {R"({"preinstall": {"npm": "x"}})", "packages.preinstall.npm must be a list of strings"},
      {R"({"preinstall": []})", "packages.preinstall must be an object"},
      {R"({"timeout": 0})", "packages.timeout must be seconds, more than 0 and at most 86400"},
      {R"({"timeout": "9"})", "packages.timeout must be seconds, more than 0 and at most 86400"},
  };
  for (const Case& one : cases) {
    const auto wrong = packages_of(one.text);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().message == one.expected);
  }
}

TEST_CASE("credentials: files of the user, each where the home of a container has it") {
  const support::TempDir home;
  support::EnvironmentGuard variable("HOME", home.path().c_str());
  home.file(".ssh/id", "key");
  home.file("real", "[user]");
  support::make_symlink(home / "real", home / ".gitconfig");
  home.file(".config/gh/hosts.yml", "");
  home.file("own/file", "");
  codeexec::ContainerOptions wanted;
  wanted.credentials = {"ssh_keys", "git_config", "gh_config", "npm_config", "claude_config"};
  wanted.mounts = {{"~/own", "/opt/own", codeexec::Permission::read},
                   {home / "own/file", {}, codeexec::Permission::write}};
  std::vector<std::string> notes;
  const auto options = completed(wanted, &notes);
  REQUIRE_MESSAGE(options, options.error().message);
  std::vector<std::string> mounts;
  for (const codeexec::Mount& mount : options->mounts)
    mounts.push_back(mount.source + " " + mount.target + " " + name(mount.permission));
  CHECK(mounts == std::vector<std::string>{home / "own" + " /opt/own read",
                                           home / "own/file" + " " + (home / "own/file") + " write",
                                           home / ".ssh" + " /home/agent/.ssh read",
                                           home / "real" + " /home/agent/.gitconfig read",
                                           home / ".config/gh" + " /home/agent/.config/gh read"});
  CHECK(notes == std::vector<std::string>{"credentials: npm_config: there is no ~/.npmrc",
                                          "credentials: claude_config: there is no ~/.claude"});
}

TEST_CASE("credentials: mounts that cannot be are errors") {
  const support::TempDir home;
  support::EnvironmentGuard variable("HOME", home.path().c_str());
  const auto message = [](const codeexec::ContainerOptions& wanted) {
    const auto options = completed(wanted);
    return options ? std::string() : options.error().message;
  };
  codeexec::ContainerOptions wanted;
  wanted.credentials = {"ssh"};
  CHECK(message(wanted) ==
        "credentials: mount: 'ssh' is none of ssh_keys, git_config, gh_config, npm_config, "
        "pypi_config, claude_config, codex_config, gemini_config");
  wanted.credentials = {};
  for (const char* source : {"/", "/proc", "/nonexistent", "~", "~/nothing", ""}) {
    CAPTURE(std::string(source));
    wanted.mounts = {{source, "/h", codeexec::Permission::read}};
    CHECK_FALSE(message(wanted).empty());
  }
  wanted.mounts = {{home.path() + "/..", "/../h", codeexec::Permission::read}};
  CHECK_FALSE(message(wanted).empty());
  variable.unset("HOME");
  wanted.mounts = {};
  wanted.credentials = {"ssh_keys"};
  CHECK(has(message(wanted), "HOME"));
}

TEST_CASE("credentials: which variable is stronger, and what is masked") {
  const support::TempDir folder;
  codeexec::ContainerOptions wanted;
  wanted.env_file = folder.file(
      ".env",
      "FILE_ONLY=of-the-file\nBOTH=file\nNAMED=file-too\nDEBUG=true\nPORT=8080\nPIN=123\n"
      "TOKEN_NUMBER=123456\n");
  support::EnvironmentGuard variables;
  variables.set("CODEEXEC_TEST_X", "never");
  variables.set("BOTH", "of-the-host");
  variables.set("NAMED", "named-of-host");
  variables.unset("UNSET");
  std::vector<std::string> notes;
  SUBCASE("the whole file") {
    const auto options = completed(wanted);
    REQUIRE_MESSAGE(options, options.error().message);
    CHECK(text_of(options->environment) ==
          "BOTH=file|DEBUG=true|FILE_ONLY=of-the-file|NAMED=file-too|PIN=123|PORT=8080|"
          "TOKEN_NUMBER=123456");
    CHECK(options->secrets ==
          std::vector<std::string>{"file", "of-the-file", "file-too", "123456"});
    CHECK(options->env_file.empty());
  }
  SUBCASE("some of the file") {
    wanted.env_vars_from_file = {"FILE_ONLY"};
    const auto options = completed(wanted);
    REQUIRE_MESSAGE(options, options.error().message);
    CHECK(text_of(options->environment) == "FILE_ONLY=of-the-file");
    wanted.env_vars_from_file = {"FILE_ONLY", "OTHER"};
    const auto missing = completed(wanted);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().message ==
          "credentials: env_vars_from_file: 'OTHER' is not in the env_file");
  }
  SUBCASE("named ones of the host") {
    wanted.env_vars_from_file = {"NAMED"};
    wanted.env_vars = {"NAMED", "UNSET"};
    const auto options = completed(wanted, &notes);
    REQUIRE_MESSAGE(options, options.error().message);
    CHECK(text_of(options->environment) == "NAMED=named-of-host");
    CHECK(options->secrets == std::vector<std::string>{"named-of-host"});
    CHECK(notes == std::vector<std::string>{"credentials: env_vars: UNSET is not set on the host"});
  }
  SUBCASE("all of the host") {
    wanted.pass_all_env = true;
    const auto options = completed(wanted);
    REQUIRE_MESSAGE(options, options.error().message);
    const std::string all = "|" + text_of(options->environment) + "|";
    CHECK(has(all, "|BOTH=of-the-host|"));
    CHECK(has(all, "|NAMED=named-of-host|"));
    CHECK(has(all, "|FILE_ONLY=of-the-file|"));
    CHECK_FALSE(has(all, "CODEEXEC_TEST_X"));
  }
  SUBCASE("what the operator sets comes last") {
    codeexec::ContainerOptions given = wanted;
    given.environment = {{"BOTH", "own"}};
    const auto options = codeexec::complete(given);
    REQUIRE_MESSAGE(options, options.error().message);
    CHECK(options->environment.back() == std::make_pair(std::string("BOTH"), std::string("own")));
  }
}

TEST_CASE("W-41: all of the host's variables, but for those that are its own affair") {
  support::EnvironmentGuard variables;
  const auto value_of = [](const codeexec::ContainerOptions& options, const std::string& name) {
    for (const auto& [variable, value] : options.environment)
      if (variable == name) return value;
    return std::string();
  };
  const std::vector<std::string> of_host = {"PATH",
                                            "HOME",
                                            "PWD",
                                            "OLDPWD",
                                            "SHELL",
                                            "USER",
                                            "LOGNAME",
                                            "TMPDIR",
                                            "LD_PRELOAD_X",
                                            "TERM",
                                            "SHLVL",
                                            "HOSTNAME",
                                            "DOCKER_HOST",
                                            "XDG_RUNTIME_DIR",
                                            "SSH_AUTH_SOCK",
                                            "DBUS_SESSION_BUS_ADDRESS",
                                            "CODEEXEC_X",
                                            "BASH_ENV",
                                            "ENV",
                                            "PYTHONPATH",
                                            "_"};
  for (const std::string& name : of_host) variables.set(name.c_str(), "of-the-host");
  variables.set("API_TOKEN", "tok-12345");
  variables.set("LANG", "xx_YY.UTF-8");
  variables.set("JAVA_HOME", "/usr");
  variables.set("GONE", "/nonexistent/folder");
  variables.set("PATHS", "a:b:c");
  codeexec::ContainerOptions wanted;
  wanted.pass_all_env = true;
  const auto options = completed(wanted);
  REQUIRE_MESSAGE(options, options.error().message);
  for (const std::string& name : of_host) {
    CAPTURE(name);
    CHECK(value_of(*options, name) == "");
  }
  CHECK(value_of(*options, "API_TOKEN") == "tok-12345");
  CHECK(value_of(*options, "LANG") == "xx_YY.UTF-8");
  const auto is_secret = [&](const std::string& value) {
    return std::count(options->secrets.begin(), options->secrets.end(), value) == 1;
  };
  CHECK(is_secret("tok-12345"));
  CHECK(is_secret("/nonexistent/folder"));
  CHECK(is_secret("a:b:c"));
  CHECK_FALSE(is_secret("xx_YY.UTF-8"));
  CHECK_FALSE(is_secret("/usr"));
  CHECK_FALSE(is_secret("of-the-host"));
}

TEST_CASE("W-41: no error shows a value") {
  const support::TempDir folder;
  const auto message = [](const codeexec::ContainerOptions& wanted) {
    const auto options = completed(wanted);
    REQUIRE_FALSE(options);
    return options.error().message;
  };
  codeexec::ContainerOptions wanted;
  wanted.env_vars = {"TOKEN=hunter2"};
  CHECK(message(wanted) ==
        "credentials: env_vars: 'TOKEN' must be a name alone, without = and a value");
  wanted.env_vars = {};
  wanted.env_vars_from_file = {"A"};
  CHECK(message(wanted) == "credentials: env_vars_from_file needs an env_file");
  wanted.env_file = folder.file(".env", "B=1\nhunter2\n");
  CHECK(has(message(wanted), "'A' is not in the env_file"));
  CHECK_FALSE(has(message(wanted), "hunter2"));
  wanted.env_file = folder / "missing";
  CHECK(has(message(wanted), "credentials: env_file '"));
  wanted.env_file = folder.path();
  CHECK(has(message(wanted), "credentials: env_file '"));
  wanted.env_vars_from_file = {};
  wanted.env_file = folder.file("long", "A='" + std::string(140000, 'x') + "'");
  CHECK(message(wanted) == "credentials: environment: 'A' has too long a value");
  std::string many;
  for (int i = 0; i < 10; ++i)
    many += "A" + std::to_string(i) + "=" + std::string(100000, 'x') + "\n";
  wanted.env_file = folder.file("many", many);
  REQUIRE(completed(wanted));
  support::EnvironmentGuard variables;
  wanted.env_vars = {"CODEEXEC_TEST_LONG"};
  variables.set("CODEEXEC_TEST_LONG", std::string(100000, 'y').c_str());
  CHECK(has(message(wanted), "credentials: the variables have more than 1048576 bytes"));
}

TEST_CASE("credentials in a container") {
  if (!std::getenv("CODEEXEC_TEST_DOCKER")) {
    MESSAGE("SKIPPED: no container engine for tests (CODEEXEC_TEST_DOCKER is not set)");
    return;
  }
  const support::TempDir folder;
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder.directory("work");
  options.container.image = "codeexec-test/busybox:latest";
  options.container.image_policy = codeexec::ImagePolicy::never;
  options.container.agent = support::engine_agent;
  options.container.env_file =
      folder.file(".env", "TOKEN='it''s'\nKEY=\"one\ntwo $HOME '\"\nBOTH=of-the-file\n");
  options.container.environment = {{"BOTH", "own"}};
  CHECK(codeexec::ContainerExecutor::create(options));
  options.container.env_file =
      folder.file(".env", "TOKEN=hunter22\nKEY=\"one\ntwo $HOME '\"\nBOTH=of-the-file\n");
  support::AuditLog audit;
  options.on_audit = audit.callback();
  auto executor = codeexec::ContainerExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  const codeexec::Result result =
      executor->run("echo $TOKEN; printf %s \"$KEY\" | wc -c; echo $BOTH; echo hunter22 >&2");
  CHECK_MESSAGE(result.succeeded(), result.summary() << result.message);
  CHECK(result.out == "[redacted]\n15\nown\n");
  CHECK(result.err == "[redacted]\n");
  CHECK(has(result.command, "[redacted]"));
  for (const Json& record : audit.take()) CHECK_FALSE(has(record.dump(), "hunter22"));
  // Nor does the engine know of it.
  codeexec::ProcessOptions inspect;
  inspect.argv = {"docker", "inspect", executor->container_name()};
  for (const char* name : {"PATH", "HOME", "DOCKER_HOST"})
    if (const char* value = std::getenv(name))
      inspect.environment.push_back(std::string(name) + "=" + value);
  const codeexec::ProcessResult inspected = codeexec::run_process(inspect);
  CHECK(inspected.succeeded());
  CHECK_FALSE(has(inspected.out, "hunter22"));
  CHECK(executor->remove());
}
