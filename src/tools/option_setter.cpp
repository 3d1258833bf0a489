// From the words of a value to the member that the option sets.
//
// set_option() checks the number of words, then gives each word to the parser of the option's kind:
// set_word() for texts, lists and flags, set_number(), set_choice() and set_json(). A parser
// returns the words "is not ..." of its error, or null when it has set the member.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

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
                            const Option& option) {
  const bool list = option.is_list();
  const bool is_text = option.kind() == Option::text || option.kind() == Option::one_text;
  if (list && words.empty()) return not_given(label, "needs at least one value");
  if (!list && words.size() != 1)
    return make_error(
        ErrorCode::invalid_argument, "% needs exactly one value, and not %%",
        {label, words.size(), words.size() > 1 && is_text ? how_to_quote(label, words) : ""});
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

const char* set_number(std::string_view digits, Option::Kind kind, void* variable) {
  const bool is_size = kind == Option::byte_count || kind == Option::byte_count_or_0;
  const bool may_be_0 =
      kind == Option::whole_or_0 || kind == Option::byte_count_or_0 || kind == Option::seconds_or_0;
  const double number = scaled_number(digits, is_size);
  if (kind == Option::seconds || kind == Option::seconds_or_0) {
    if (!(number > 0 || (number == 0 && may_be_0)) || number > 31536000.0)
      return may_be_0 ? "a number of seconds, at most 31536000"
                      : "a number of seconds greater than 0 and at most 31536000";
    *static_cast<std::chrono::milliseconds*>(variable) =
        std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(number * 1000.0)));
  } else if (kind == Option::decimal) {
    if (!(number >= 0) || number > 1e6) return "a number of processors";
    *static_cast<double*>(variable) = number;
  } else {
    const bool whole = number >= 0 && number <= 1e15 && number == std::floor(number);
    if (!whole || (number < 1 && !may_be_0))
      return is_size    ? may_be_0 ? "a number of bytes, or one with k, m, g or t after it"
                                   : "a number of bytes greater than 0, or one with k, m, g or t "
                                     "after it"
             : may_be_0 ? "a whole number"
                        : "a whole number greater than 0";
    *static_cast<std::uint64_t*>(variable) = static_cast<std::uint64_t>(number);
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

std::string joined_names(Rows<Choice> choices) {
  std::string text;
  for (const Choice& choice : choices) append_all(text, {text.empty() ? "" : ", ", choice.name});
  return text;
}

// `-` is as good as `_`.
Expected<void> set_choice(std::string_view label, std::string word, const Option& option,
                          void* variable) {
  std::replace(word.begin(), word.end(), '-', '_');
  for (const Choice& choice : option.choices()) {
    if (choice.name != word) continue;
    std::memcpy(variable, &choice.value, sizeof choice.value);
    return {};
  }
  return bad_value(
      label, word,
      concat("one of %%", {joined_names(option.choices()), meant_choice(word, option.choices())}));
}

const char* set_word(const std::string& word, const Option& option, void* variable) {
  switch (option.kind()) {
    case Option::text:
      *static_cast<std::string*>(variable) = word;
      return nullptr;
    case Option::one_text:
      *static_cast<std::optional<std::string>*>(variable) = word;
      return nullptr;
    case Option::keyed_text:
    case Option::keyed_texts:
      add_words(*static_cast<std::vector<std::string>*>(variable),
                {concat("%=%", {option.entry_key(), word})});
      return nullptr;
    case Option::texts:
      add_words(*static_cast<std::vector<std::string>*>(variable), {word});
      return nullptr;
    case Option::roots:
      static_cast<std::vector<Root>*>(variable)->push_back({word, Permission::write});
      return nullptr;
    case Option::variables:
      return add_variable(word, *static_cast<Variables*>(variable));
    case Option::other_list:
      return option.parse(word, variable);
    case Option::flag:
    case Option::off_flag:
    case Option::truth:
      if (word != "true" && word != "false") return "true or false";
      if (option.kind() == Option::truth)
        *static_cast<std::optional<bool>*>(variable) = word == "true";
      else
        *static_cast<bool*>(variable) = (word == "true") == (option.kind() == Option::flag);
      return nullptr;
    default:
      return set_number(word, option.kind(), variable);
  }
}

}  // namespace

inline namespace inner {

// A flag may stand without a word. All other options need at least one, but for those that may be
// bare, and only lists take more.
Expected<void> set_option(std::string_view label, const std::vector<std::string>& words,
                          const Option& option, ServerConfig& config) {
  void* const variable = option.variable(config);
  if (option.is_flag()) {
    const std::string& word = words.empty() ? "true" : words[0];
    if (const char* const expected = set_word(word, option, variable))
      return bad_value(label, word, expected);
    if (words.size() > 1) return bad_value(label, words[1], "wanted: it takes no value"sv);
    return {};
  }
  const bool is_bare = words.empty() && option.may_be_bare();
  const bool is_empty = words.size() == 1 && words[0].empty() && option.may_be_empty();
  if (is_bare || is_empty) {
    set_word({}, option, variable);
    return {};
  }
  if (auto ok = check_values(label, words, option); !ok) return ok;
  if (option.kind() == Option::json)
    return set_json(label, words[0], *static_cast<Json*>(variable));
  if (option.kind() == Option::choice) return set_choice(label, words[0], option, variable);
  for (const std::string& word : words)
    if (const char* const expected = set_word(word, option, variable))
      return bad_value(label, word, expected);
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
