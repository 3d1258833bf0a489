// From a value to the place of an option.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code_internal.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string key_of(const Option& option) {
  std::string key = option.name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Error bad_value(std::string_view option, std::string_view value, std::string_view expected) {
  return make_error(ErrorCode::invalid_argument,
                    {option, ": ", quoted(value), " is not ", expected});
}

}  // namespace inner

namespace {

// A plain decimal number such as 60, 0.5 or 1e3; independent of the locale.
std::optional<double> parse_number(std::string_view text) {
  const auto value = Json::parse(text);
  const bool blanks = text != without_blanks(text);
  if (blanks || !value || !value->is_number()) return {};
  return value->as_number();
}

}  // namespace

inline namespace inner {

Expected<void> OptionSetter::operator()(std::string* target) const {
  if (auto ok = single(); !ok) return ok;
  *target = words_[0];
  return {};
}

Expected<void> OptionSetter::operator()(std::vector<std::string>* target) const {
  if (auto ok = some(); !ok) return ok;
  target->insert(target->end(), words_.begin(), words_.end());
  return {};
}

Expected<void> OptionSetter::operator()(std::vector<Root>* target) const {
  if (auto ok = some(); !ok) return ok;
  for (const std::string& path : words_) target->push_back({path, Permission::write});
  return {};
}

Expected<void> OptionSetter::operator()(Variables* target) const {
  if (auto ok = some(); !ok) return ok;
  for (const std::string& word : words_) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return bad_value(label_, word, "of the form NAME=VALUE");
    target->emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return {};
}

Expected<void> OptionSetter::operator()(std::chrono::milliseconds* target) const {
  if (auto ok = single(); !ok) return ok;
  constexpr const char* expected = "a number of seconds greater than 0 and at most 31536000";
  const std::optional<double> seconds = parse_number(words_[0]);
  if (!seconds || !(*seconds > 0) || *seconds > 31536000.0)
    return bad_value(label_, words_[0], expected);
  *target = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000.0)));
  return {};
}

Expected<void> OptionSetter::operator()(std::uint64_t* target) const {
  return (*this)(Amount{target, false, false});
}

Expected<void> OptionSetter::operator()(Amount amount) const {
  if (auto ok = single(); !ok) return ok;
  constexpr std::string_view units = "kmgt";
  std::string_view digits = words_[0];
  double unit = 1;
  if (amount.is_size && digits.size() > 1) {
    if ((digits.back() | 0x20) == 'b') digits.remove_suffix(1);
    const std::size_t found = units.find(static_cast<char>(digits.back() | 0x20));
    if (found != std::string_view::npos) {
      digits.remove_suffix(1);
      for (std::size_t i = 0; i <= found; ++i) unit *= 1024;
    }
  }
  const double number = parse_number(digits).value_or(-1) * unit;
  const bool whole = number >= 0 && number <= 1e15 && number == std::floor(number);
  if (!whole || (number < 1 && !amount.may_be_0))
    return bad_value(label_, words_[0],
                     concat({amount.is_size ? "a number of bytes" : "a whole number",
                             amount.may_be_0 ? "" : " greater than 0",
                             amount.is_size ? ", or one with k, m, g or t after it" : ""}));
  *amount.target = static_cast<std::uint64_t>(number);
  return {};
}

Expected<void> OptionSetter::operator()(double* target) const {
  if (auto ok = single(); !ok) return ok;
  const std::optional<double> number = parse_number(words_[0]);
  if (!number || !(*number >= 0) || *number > 1e6)
    return bad_value(label_, words_[0], "a number of processors");
  *target = *number;
  return {};
}

Expected<void> OptionSetter::operator()(std::optional<bool>* target) const {
  if (auto ok = single(); !ok) return ok;
  return (*this)(&target->emplace());
}

Expected<void> OptionSetter::operator()(std::vector<Mount>* target) const {
  if (auto ok = some(); !ok) return ok;
  for (const std::string& word : words_) {
    Mount mount;
    std::string_view rest = word;
    if (ends_with(rest, ":rw")) mount.permission = Permission::write;
    if (ends_with(rest, ":rw") || ends_with(rest, ":ro")) rest.remove_suffix(3);
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    mount.source = std::string(rest.substr(0, colon));
    if (colon < rest.size()) mount.target = std::string(rest.substr(colon + 1));
    const bool has_target = colon == rest.size() || starts_with(mount.target, "/");
    if (mount.source.empty() || !has_target || mount.target.find(':') != std::string::npos)
      return bad_value(label_, word, "of the form SOURCE, SOURCE:/TARGET, or one with :ro or :rw");
    target->push_back(std::move(mount));
  }
  return {};
}

Expected<void> OptionSetter::operator()(Json* target) const {
  if (auto ok = single(); !ok) return ok;
  JsonLimits limits;
  limits.unique_names = true;
  auto value = Json::parse(words_[0], limits);
  if (!value) return with_prefix({label_, ": "}, value.error());
  if (!value->is_object())
    return make_error(ErrorCode::invalid_argument, {label_, ": not a JSON object"});
  *target = std::move(*value);
  return {};
}

Expected<void> OptionSetter::operator()(bool* target) const {
  if (!words_.empty() && words_[0] != "true" && words_[0] != "false")
    return bad_value(label_, words_[0], "true or false");
  if (words_.size() > 1) return bad_value(label_, words_[1], "wanted: it takes no value");
  *target = words_.empty() || words_[0] == "true";
  return {};
}

Expected<void> OptionSetter::single() const {
  if (words_.size() == 1) return no_blanks();
  return make_error(ErrorCode::invalid_argument,
                    {label_, " needs exactly one value, and not ", std::to_string(words_.size())});
}

Expected<void> OptionSetter::some() const {
  if (!words_.empty()) return no_blanks();
  return make_error(ErrorCode::invalid_argument,
                    {label_, " needs at least one value; leave it out for no limit"});
}

Expected<void> OptionSetter::no_blanks() const {
  for (const std::string& word : words_) {
    if (word.empty())
      return make_error(ErrorCode::invalid_argument,
                        {label_, " must not be empty; leave it out for no limit"});
    if (has_nul(word)) return bad_value(label_, word, "free of NUL bytes");
  }
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
