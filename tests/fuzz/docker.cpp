// What a container is made with and what its engine says: .env files, the options in JSON, and the
// engine's answers.                                        sh tests/fuzz/run.sh [seconds] docker
//   The first byte of an input chooses the reader.
#include <cmath>
#include <set>

#include "fuzz.hpp"

namespace {

using codeexec::ErrorCode;
using codeexec::Json;
using fuzz::Variables;

void expect_error(const codeexec::Error& error, std::string_view input) {
  EXPECT_WITH(!error.message.empty() && error.message.find('\n') == std::string::npos, input);
  EXPECT_WITH(codeexec::is_utf8(error.message), input);
}

// The same variables, each value in quotes.
std::string as_file(const Variables& variables) {
  std::string file;
  for (const auto& [name, value] : variables) {
    file += name + "=\"";
    for (const char c : value) {
      const std::size_t which = std::string_view("\n\r\t\"\\$").find(c);
      if (which == std::string_view::npos)
        file += c;
      else
        (file += '\\') += "nrt\"\\$"[which];
    }
    file += "\"\n";
  }
  return file;
}

// A value without quotes, by the rules for it alone.
void read_bare_value(std::string_view line) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  std::string value;
  for (const char c : line)
    if (c != '\0' && c != '\r' && c != '\n') value += c;
  const std::string text = "B=1\nA=" + value + "\nC=2";
  for (std::size_t i = 1; i < value.size(); ++i)
    if (value[i] == '#' && is_blank(value[i - 1])) value.resize(i);
  while (!value.empty() && is_blank(value.back())) value.pop_back();
  while (!value.empty() && is_blank(value.front())) value.erase(0, 1);
  if (!value.empty() && (value[0] == '\'' || value[0] == '"')) return;
  const auto got = codeexec::parse_env_file(text);
  EXPECT_WITH(got && *got == (Variables{{"B", "1"}, {"A", value}, {"C", "2"}}), text);
}

void read_env_file(std::string_view text) {
  read_bare_value(text.substr(0, text.find('\n')));
  const auto variables = codeexec::parse_env_file(text);
  if (!variables) {
    EXPECT_WITH(variables.error().offset <= text.size(), text);
    return expect_error(variables.error(), text);
  }
  std::set<std::string> names;
  for (const auto& [name, value] : *variables) {
    EXPECT_WITH(names.insert(name).second, text);
    EXPECT_WITH(!name.empty() && name.find_first_of("=\n\r \t\"'#") == std::string::npos, text);
    EXPECT_WITH(!(name[0] >= '0' && name[0] <= '9'), text);
    EXPECT_WITH(value.find('\0') == std::string::npos, text);
  }
  const auto again = codeexec::parse_env_file(as_file(*variables));
  EXPECT_WITH(again && *again == *variables, text);
  // Lines without a value, before and after, change nothing, unless the text begins otherwise.
  if (text.substr(0, 3) == "\xef\xbb\xbf") return;
  const auto longer = codeexec::parse_env_file("# '\n\n \t# \"\r\n" + std::string(text) + "\n#\"");
  EXPECT_WITH(longer && *longer == *variables, text);
}

bool is_list(const Json& value, const std::vector<std::string>& got) {
  if (value.size() != got.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!value[i].is_string() || value[i].as_string() != got[i]) return false;
  return true;
}

void read_credentials(const Json& value, std::string_view text) {
  codeexec::ContainerOptions options;
  const auto set = codeexec::credentials_from_json(value, options);
  if (!set) {
    EXPECT_WITH(set.error().code == ErrorCode::invalid_argument, text);
    return expect_error(set.error(), text);
  }
  EXPECT_WITH(is_list(value["mount"], options.credentials), text);
  EXPECT_WITH(is_list(value["env_vars"], options.env_vars), text);
  EXPECT_WITH(is_list(value["env_vars_from_file"], options.env_vars_from_file), text);
  EXPECT_WITH(value["additional_mounts"].size() == options.mounts.size(), text);
  for (const codeexec::Mount& mount : options.mounts) {
    const bool writable = value["additional_mounts"][mount.source]["mode"].as_string() == "rw";
    EXPECT_WITH((mount.permission == codeexec::Permission::write) == writable, text);
  }
  EXPECT_WITH(options.pass_all_env == value["pass_all_env"].as_bool(), text);
  Json other = value;
  other.set("env_var", Json::array({"A"}));
  EXPECT_WITH(!codeexec::credentials_from_json(other, options), text);
}

void read_packages(const Json& value, std::string_view text) {
  codeexec::ContainerOptions options;
  const auto set = codeexec::packages_from_json(value, options);
  if (!set) {
    EXPECT_WITH(set.error().code == ErrorCode::invalid_argument, text);
    return expect_error(set.error(), text);
  }
  const Json& lists = value["preinstall"];
  EXPECT_WITH(is_list(lists["python"], options.python_packages), text);
  EXPECT_WITH(is_list(lists["npm"], options.npm_packages), text);
  EXPECT_WITH(is_list(lists["system"], options.system_packages), text);
  EXPECT_WITH(options.package_timeout.count() >= 0, text);
  EXPECT_WITH(options.packages_required == value["required"].as_bool(), text);
}

void read_answer(const Json& value, std::string_view text) {
  const codeexec::ContainerInfo health = fuzz::read_health(value);
  EXPECT_WITH(health.exists != value.is_null(), text);
  EXPECT_WITH(health.error.find('\n') == std::string::npos, text);
  EXPECT_WITH(!health.running || value["State"]["Running"].as_bool(), text);
  // Whatever it is, it has labels of this machine and of a program of this user.
  EXPECT_WITH(!fuzz::says_orphan(value) || value["Config"]["Labels"].size() >= 2, text);
}

}  // namespace

void fuzz::docker(std::string_view input) {
  Bytes bytes(input);
  const std::size_t reader = bytes.below(8);
  const std::string_view text = bytes.rest();
  if (reader < 3) return read_env_file(text);
  if (reader == 3) {
    // It becomes a number of bytes, or of processes.
    const double amount = read_amount(text);
    EXPECT_WITH(amount >= 0 && amount < 1.8e19, text);
    return;
  }
  const auto value = Json::parse(text);
  if (!value) return;
  if (reader < 6) return read_credentials(*value, text);
  if (reader == 6) return read_packages(*value, text);
  read_answer(*value, text);
}
