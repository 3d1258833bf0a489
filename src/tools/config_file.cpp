// The configuration file: a JSON object with a key for each option.
//
// A key is the option's name with `_` for `-`. It may begin with command_line_, and some options
// have another key besides: those are the names that MassGen's configurations use. A pattern of
// commands is a text, or an object with a reason and examples.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A value of the configuration file as the words that the command line would have.
Expected<std::vector<std::string>> config_words(std::string_view label, const Json& value) {
  const auto word = [](const Json& item) {
    return item.is_string() ? item.as_string() : item.dump();
  };
  const auto is_scalar = [](const Json& item) {
    return !item.is_null() && !item.is_array() && !item.is_object() && !item.has_lone_surrogate();
  };
  std::vector<std::string> words;
  if (value.is_array()) {
    for (const Json& item : value.items()) {
      if (!item.is_string() || item.has_lone_surrogate())
        return make_error(ErrorCode::invalid_argument,
                          "%: every item must be a string, and % is not",
                          {label, in_quotes(item.dump())});
      words.push_back(item.as_string());
    }
    return words;
  }
  if (value.is_object()) {  // {"set_env": {"NAME": "value"}}
    for (const Json::Member& member : value.members()) {
      if (!is_scalar(member.value))
        return bad_value(label, member.value.dump(), "a string, number or boolean"sv);
      if (member.name.find('=') != std::string::npos)
        return bad_value(label, member.name, "the name of a variable");
      words.push_back(concat("%=%", {member.name, word(member.value)}));
    }
    return words;
  }
  if (!is_scalar(value)) return bad_value(label, value.dump(), "a value this key can have"sv);
  words.push_back(word(value));
  return words;
}

// A pattern that is written as an object: {"pattern": "git push.*", "reason": "ask first",
// "match": ["git push -f"], "not_match": ["git pull"]}, or with {"prefix": ["git", "push"]} in
// place of the pattern. Gives the pattern; the rest is kept in the policy.
Expected<std::string> take_pattern(std::string_view label, const Json& object,
                                   PolicyOptions& policy) {
  const auto is_text = [](const Json& item) {
    return item.is_string() && !item.has_lone_surrogate() && !item.as_string().empty();
  };
  std::string pattern;
  for (const Json& word : object["prefix"sv].items()) {
    if (!pattern.empty()) pattern += ' ';
    for (const char c : word.as_string()) {
      if ("\\^$.|?*+()[]{}"sv.find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  if (!pattern.empty()) pattern += "( .*)?";
  if (is_text(object["pattern"sv])) pattern = object["pattern"sv].as_string();
  for (const Json::Member& member : object.members()) {
    const bool one = is_any(member.name, "pattern", "reason");
    const bool several = is_any(member.name, "prefix", "match", "not_match");
    if (!one && !several)
      return make_error(ErrorCode::invalid_argument,
                        "%: unknown key % of a pattern; there are pattern, prefix, reason, match "
                        "and not_match",
                        {label, in_quotes(member.name)});
    bool fits = one ? is_text(member.value) : member.value.is_array();
    if (several)
      for (const Json& item : member.value.items()) fits = fits && is_text(item);
    if (!fits)
      return make_error(ErrorCode::invalid_argument, "%: % of a pattern must be %",
                        {label, member.name, one ? "a string" : "a list of strings"});
  }
  const bool given = object.find("pattern") != nullptr;
  if (pattern.empty() || given == (object.find("prefix") != nullptr))
    return make_error(ErrorCode::invalid_argument,
                      "%: a pattern needs either a pattern or a prefix, and % has not",
                      {label, in_quotes(object.dump())});
  if (object.find("reason")) policy.reasons.push_back({pattern, object["reason"sv].as_string()});
  for (const Json& example : object["match"sv].items())
    policy.must_match.push_back({pattern, example.as_string()});
  for (const Json& example : object["not_match"sv].items())
    policy.must_not_match.push_back({pattern, example.as_string()});
  return pattern;
}

// The same list with the texts of its patterns.
Expected<Json> take_patterns(std::string_view label, const Json& list, PolicyOptions& policy) {
  Json texts = Json::array({});
  for (const Json& item : list.items()) {
    if (!item.is_object()) {
      texts.push_back(item);
      continue;
    }
    auto pattern = take_pattern(label, item, policy);
    if (!pattern) return pattern.failure();
    texts.push_back(*std::move(pattern));
  }
  return texts;
}

// Returns the shape that the value should have, or null when it has it. Lists must be written as
// lists and single values as single values, so that a typing error is not taken for something else.
const char* wanted_shape(Option::Kind kind, const Json& value) {
  switch (kind) {
    case Option::text:
    case Option::keyed_text:
    case Option::choice:
      return value.is_string() ? nullptr : "a string";
    case Option::flag:
    case Option::off_flag:
    case Option::truth:
      return value.is_bool() ? nullptr : "true or false";
    case Option::byte_count:
    case Option::byte_count_or_0:
      if (value.is_string()) return nullptr;
      [[fallthrough]];
    case Option::whole:
    case Option::whole_or_0:
    case Option::decimal:
    case Option::seconds:
    case Option::seconds_or_0:
      return value.is_number() ? nullptr : "a number";
    case Option::variables:
      if (value.is_array()) return nullptr;
      [[fallthrough]];
    case Option::json:
      return value.is_object() ? nullptr : "an object";
    default:
      return value.is_array() ? nullptr : "a list of strings";
  }
}

// Takes one key of the file, unless the command line has set it. `seen` are those before it.
Expected<void> take_key(const std::string& path, const Json::Member& member, ServerConfig& config,
                        Options& seen) {
  std::string_view key = member.name;
  constexpr std::string_view reference_prefix = "command_line_";
  if (starts_with(key, reference_prefix)) key.remove_prefix(reference_prefix.size());
  const Option* const option = config.options.find_key(key);
  const std::string label = concat("%: %", {in_quotes(path), printable(member.name)});
  if (!option)
    return make_error(ErrorCode::invalid_argument, "%: unknown key%",
                      {label, meant_key(key, config)});
  if (contains(seen, option))
    return make_error(ErrorCode::invalid_argument, "%: another key sets % already",
                      {label, option->key()});
  seen.push_back(option);
  if (contains(config.invocation.given, option)) return {};
  if (const char* const shape = wanted_shape(option->kind(), member.value))
    return bad_value(label, member.value.dump(), shape);
  if (option->kind() == Option::json)
    return set_option(label, {member.value.dump()}, *option, config);
  const bool patterns =
      is_any(option->name(), "allowed-commands", "blocked-commands", "ask-commands");
  auto value = patterns ? take_patterns(label, member.value, config.local.policy) : member.value;
  if (!value) return value.failure();
  auto words = config_words(label, *value);
  if (!words) return words.failure();
  return set_option(label, *words, *option, config);
}

}  // namespace

inline namespace inner {

bool contains(const Options& options, const Option* option) {
  return find_in(options, option) != options.end();
}

Expected<void> read_config(const std::string& path, ServerConfig& config) {
  auto text = read_whole_file(path, longest_config, "--config:"sv);
  if (!text) return text.failure();
  JsonLimits limits;
  limits.unique_names = true;
  auto object = Json::parse(*text, limits);
  if (!object)
    return with_prefix("--config: %: ", {in_quotes(path)},
                       json_file_error(*text, object.error()).error());
  if (!object->is_object())
    return make_error(ErrorCode::parse, "--config: %: not an object", {in_quotes(path)});
  Options seen;  // under whichever of their names
  for (const Json::Member& member : object->members())
    if (auto ok = take_key(path, member, config, seen); !ok) return ok;
  Options& given = config.invocation.given;
  given.insert(given.end(), seen.begin(), seen.end());
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
