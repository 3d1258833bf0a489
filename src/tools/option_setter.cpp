// From the words of a value to the member that the option sets.
//
// set_option() checks the number of words, then gives each word to the parser of the option's kind:
// set_word() for texts, lists and flags, set_number(), set_choice() and set_json(). A parser
// returns the words "is not ..." of its error, or null when it has set the member.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code_internal.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string_view Option::part(std::string_view row, Part wanted) {
  std::string_view left = row;
  for (int i = 0; i < wanted; ++i) take_part(left, '\n');
  return take_part(left, '\n');
}

std::string Option::key() const {
  std::string key(part(name));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Option::Target Option::target(ServerConfig& config) const {
  return {kind, reinterpret_cast<char*>(&config) + offset, part(detail)};
}

const Option* find_option(FunctionRef<bool(const Option&)> passes) {
  for (const Option* option = Option::table; option != Option::end(); ++option)
    if (passes(*option)) return option;
  return nullptr;
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

// Words that were likely meant to be one.
std::string how_to_quote(std::string_view label, const std::vector<std::string>& words) {
  constexpr std::size_t longest = 200;
  const std::string all = joined(words, " "sv);
  if (all.size() > longest || all.find('\'') != std::string::npos) return ": quote it as one word";
  return concat(": quote it as one word: % '%'", {label, printable(all)});
}

// An empty list must not quietly mean "no restriction". An unset variable of a script leaves an
// empty word, which must not mean "no limit" either.
Expected<void> check_values(std::string_view label, const std::vector<std::string>& words,
                            const Option::Target& target) {
  const bool list = target.is_list();
  if (list && words.empty()) return not_given(label, "needs at least one value");
  if (!list && words.size() != 1)
    return make_error(
        ErrorCode::invalid_argument, "% needs exactly one value, and not %%",
        {label, words.size(),
         words.size() > 1 && target.kind == Option::text ? how_to_quote(label, words) : ""});
  for (const std::string& word : words) {
    if (word.empty()) return not_given(label, "must not be empty");
    if (has_nul(word)) return bad_value(label, word, "free of NUL bytes"sv);
  }
  return {};
}

// The parsers: each returns the form that a word does not have, or null when it has set the value.

const char* add_variable(std::string_view word, Variables& variables) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return "of the form NAME=VALUE";
  variables.push_back({std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))});
  return nullptr;
}

// SOURCE[:TARGET][:ro|:rw], as in `docker run --volume`.
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

// A number, times the unit behind it: k, m, g and t, each 1024 times the one before. Negative if
// the text is no number.
double scaled_number(std::string_view digits, bool may_have_unit) {
  constexpr std::string_view units = "kmgt";
  double unit = 1;
  if (may_have_unit && digits.size() > 1) {
    if ((digits.back() | 0x20) == 'b') digits.remove_suffix(1);
    const std::size_t found = units.find(static_cast<char>(digits.back() | 0x20));
    if (found != std::string_view::npos) {
      digits.remove_suffix(1);
      for (std::size_t i = 0; i <= found; ++i) unit *= 1024;
    }
  }
  return parse_number(digits).value_or(-1) * unit;
}

const char* set_number(std::string_view digits, const Option::Target& target) {
  const bool is_size = target.kind == Option::bytes || target.kind == Option::bytes_or_0;
  const bool may_be_0 = target.kind == Option::whole_or_0 || target.kind == Option::bytes_or_0;
  const double number = scaled_number(digits, is_size);
  if (target.kind == Option::seconds) {
    if (!(number > 0) || number > 31536000.0)
      return "a number of seconds greater than 0 and at most 31536000";
    *static_cast<std::chrono::milliseconds*>(target.place) =
        std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(number * 1000.0)));
  } else if (target.kind == Option::decimal) {
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

// The object is checked later, by the option that takes it apart.
Expected<void> set_json(std::string_view label, std::string_view word, Json& json) {
  JsonLimits limits;
  limits.unique_names = true;
  auto value = Json::parse(word, limits);
  if (!value) return with_prefix("%: ", {label}, json_file_error(word, value.error()).error());
  if (!value->is_object())
    return make_error(ErrorCode::invalid_argument, "%: not a JSON object", {label});
  json = std::move(*value);
  return {};
}

// The names stand in the order of the enumeration; `-` is as good as `_`.
Expected<void> set_choice(std::string_view label, std::string word, const Option::Target& target) {
  std::replace(word.begin(), word.end(), '-', '_');
  std::string_view left = target.detail;
  for (int value = 0; !left.empty(); ++value) {
    if (take_part(left, ',') == word) {
      std::memcpy(target.place, &value, sizeof value);
      return {};
    }
    if (!left.empty()) left.remove_prefix(1);
  }
  return bad_value(label, word,
                   concat("one of %%", {target.detail, meant_choice(word, target.detail)}));
}

const char* set_word(const std::string& word, const Option::Target& target) {
  void* const place = target.place;
  switch (target.kind) {
    case Option::text:
      *static_cast<std::string*>(place) = word;
      return nullptr;
    case Option::keyed_text:
    case Option::keyed_texts:
      add_words(*static_cast<std::vector<std::string>*>(place),
                {concat("%=%", {target.detail, word})});
      return nullptr;
    case Option::texts:
      add_words(*static_cast<std::vector<std::string>*>(place), {word});
      return nullptr;
    case Option::roots:
      static_cast<std::vector<Root>*>(place)->push_back({word, Permission::write});
      return nullptr;
    case Option::variables:
      return add_variable(word, *static_cast<Variables*>(place));
    case Option::mounts:
      return add_mount(word, *static_cast<std::vector<Mount>*>(place));
    case Option::flag:
    case Option::off:
    case Option::truth:
      if (word != "true" && word != "false") return "true or false";
      if (target.kind == Option::truth)
        *static_cast<std::optional<bool>*>(place) = word == "true";
      else
        *static_cast<bool*>(place) = (word == "true") == (target.kind == Option::flag);
      return nullptr;
    default:
      return set_number(word, target);
  }
}

}  // namespace

inline namespace inner {

// A flag may stand without a word. All other options need at least one, and only lists take more.
Expected<void> set_option(std::string_view label, const std::vector<std::string>& words,
                          const Option::Target& target) {
  if (target.kind == Option::flag || target.kind == Option::off) {
    const std::string& word = words.empty() ? "true" : words[0];
    if (const char* const expected = set_word(word, target))
      return bad_value(label, word, expected);
    if (words.size() > 1) return bad_value(label, words[1], "wanted: it takes no value"sv);
    return {};
  }
  if (auto ok = check_values(label, words, target); !ok) return ok;
  if (target.kind == Option::json)
    return set_json(label, words[0], *static_cast<Json*>(target.place));
  if (target.kind == Option::choice) return set_choice(label, words[0], target);
  for (const std::string& word : words)
    if (const char* const expected = set_word(word, target))
      return bad_value(label, word, expected);
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
