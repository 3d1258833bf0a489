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
  std::string key(option.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

SharedError bad_value(std::string_view option, std::string_view value, std::string_view expected) {
  return make_error(ErrorCode::invalid_argument, "%: % is not %",
                    {option, in_quotes(value), expected});
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

SharedError not_given(std::string_view label, const char* what) {
  return make_error(ErrorCode::invalid_argument, "% %; leave it out for no limit", {label, what});
}

// An empty list must not quietly mean "no restriction". An empty word is what an unset variable of
// a script leaves, and would mean "no limit" as well.
Expected<void> check_values(std::string_view label, const std::vector<std::string>& words,
                            bool list) {
  if (list && words.empty()) return not_given(label, "needs at least one value");
  if (!list && words.size() != 1)
    return make_error(ErrorCode::invalid_argument, "% needs exactly one value, and not %",
                      {label, words.size()});
  for (const std::string& word : words) {
    if (word.empty()) return not_given(label, "must not be empty");
    if (has_nul(word)) return bad_value(label, word, "free of NUL bytes"sv);
  }
  return {};
}

// These give what a word is not, or null when it is that and was put in its place.

const char* add_variable(std::string_view word, Variables& variables) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return "of the form NAME=VALUE";
  variables.push_back({std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))});
  return nullptr;
}

const char* add_mount(std::string_view rest, std::vector<Mount>& mounts) {
  Mount mount;
  if (ends_with(rest, ":rw"sv)) mount.permission = Permission::write;
  if (ends_with(rest, ":rw"sv) || ends_with(rest, ":ro"sv)) rest.remove_suffix(3);
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  mount.source = rest.substr(0, colon);
  if (colon < rest.size()) mount.target = rest.substr(colon + 1);
  const bool has_target = colon == rest.size() || starts_with(mount.target, "/"sv);
  if (mount.source.empty() || !has_target || mount.target.find(':') != std::string::npos)
    return "of the form SOURCE, SOURCE:/TARGET, or one with :ro or :rw";
  mounts.push_back(std::move(mount));
  return nullptr;
}

const char* set_number(std::string_view digits, Option::Target target) {
  using Kind = Option::Target::Kind;
  const bool is_size = target.kind == Kind::size || target.kind == Kind::size_or_0;
  const bool may_be_0 = target.kind == Kind::whole_or_0 || target.kind == Kind::size_or_0;
  constexpr std::string_view units = "kmgt";
  double unit = 1;
  if (is_size && digits.size() > 1) {
    if ((digits.back() | 0x20) == 'b') digits.remove_suffix(1);
    const std::size_t found = units.find(static_cast<char>(digits.back() | 0x20));
    if (found != std::string_view::npos) {
      digits.remove_suffix(1);
      for (std::size_t i = 0; i <= found; ++i) unit *= 1024;
    }
  }
  const double number = parse_number(digits).value_or(-1) * unit;
  if (target.kind == Kind::seconds) {
    if (!(number > 0) || number > 31536000.0)
      return "a number of seconds greater than 0 and at most 31536000";
    *static_cast<std::chrono::milliseconds*>(target.place) =
        std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(number * 1000.0)));
  } else if (target.kind == Kind::decimal) {
    if (!(number >= 0) || number > 1e6) return "a number of processors";
    *static_cast<double*>(target.place) = number;
  } else {
    const bool whole = number >= 0 && number <= 1e15 && number == std::floor(number);
    if (!whole || (number < 1 && !may_be_0))
      return is_size    ? may_be_0 ? "a number of bytes, or one with k, m, g or t after it"
                                   : "a number of bytes greater than 0, or one with k, m, g or t "
                                     "after it"
             : may_be_0 ? "a whole number"
                        : "a whole number greater than 0";
    *static_cast<std::uint64_t*>(target.place) = static_cast<std::uint64_t>(number);
  }
  return nullptr;
}

Expected<void> set_json(std::string_view label, std::string_view word, Json& json) {
  JsonLimits limits;
  limits.unique_names = true;
  auto value = Json::parse(word, limits);
  if (!value) return with_prefix("%: ", {label}, value.error());
  if (!value->is_object())
    return make_error(ErrorCode::invalid_argument, "%: not a JSON object", {label});
  json = std::move(*value);
  return {};
}

const char* set_word(const std::string& word, Option::Target target) {
  using Kind = Option::Target::Kind;
  void* const place = target.place;
  switch (target.kind) {
    case Kind::text:
      *static_cast<std::string*>(place) = word;
      return nullptr;
    case Kind::texts:
      static_cast<std::vector<std::string>*>(place)->push_back(word);
      return nullptr;
    case Kind::roots:
      static_cast<std::vector<Root>*>(place)->push_back({word, Permission::write});
      return nullptr;
    case Kind::variables:
      return add_variable(word, *static_cast<Variables*>(place));
    case Kind::mounts:
      return add_mount(word, *static_cast<std::vector<Mount>*>(place));
    case Kind::flag:
    case Kind::truth:
      if (word != "true" && word != "false") return "true or false";
      if (target.kind == Kind::flag)
        *static_cast<bool*>(place) = word == "true";
      else
        *static_cast<std::optional<bool>*>(place) = word == "true";
      return nullptr;
    default:
      return set_number(word, target);
  }
}

}  // namespace

inline namespace inner {

Expected<void> set_option(std::string_view label, const std::vector<std::string>& words,
                          Option::Target target) {
  using Kind = Option::Target::Kind;
  if (target.kind == Kind::flag) {
    if (words.empty()) {
      *static_cast<bool*>(target.place) = true;
      return {};
    }
    if (const char* const expected = set_word(words[0], target))
      return bad_value(label, words[0], expected);
    if (words.size() > 1) return bad_value(label, words[1], "wanted: it takes no value"sv);
    return {};
  }
  if (auto ok = check_values(label, words, target.is_list()); !ok) return ok;
  if (target.kind == Kind::json)
    return set_json(label, words[0], *static_cast<Json*>(target.place));
  for (const std::string& word : words)
    if (const char* const expected = set_word(word, target))
      return bad_value(label, word, expected);
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
