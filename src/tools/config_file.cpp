// The configuration file.

#include "tools/options_internal.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"

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

// Lists must be written as lists and single values as single values, so that a typing error is not
// taken for something else. What the value should have been, or null.
const char* wanted_shape(Option::Target::Kind kind, const Json& value) {
  using Kind = Option::Target::Kind;
  switch (kind) {
    case Kind::text:
      return value.is_string() ? nullptr : "a string";
    case Kind::flag:
    case Kind::truth:
      return value.is_bool() ? nullptr : "true or false";
    case Kind::size:
    case Kind::size_or_0:
      if (value.is_string()) return nullptr;
      [[fallthrough]];
    case Kind::whole:
    case Kind::whole_or_0:
    case Kind::decimal:
    case Kind::seconds:
      return value.is_number() ? nullptr : "a number";
    case Kind::variables:
      if (value.is_array()) return nullptr;
      [[fallthrough]];
    case Kind::json:
      return value.is_object() ? nullptr : "an object";
    case Kind::texts:
    case Kind::roots:
    case Kind::mounts:
      break;
  }
  return value.is_array() ? nullptr : "a list of strings";
}

}  // namespace

inline namespace inner {

bool contains(const Options& options, const Option* option) {
  return find_in(options, option) != options.end();
}

Expected<void> read_config(const std::string& path, const std::vector<Option>& table,
                           Options& given) {
  auto text = read_whole_file(path, longest_config, "--config:"sv);
  if (!text) return text.failure();
  JsonLimits limits;
  limits.unique_names = true;
  auto config = Json::parse(*text, limits);
  if (!config) return with_prefix("--config: %: ", {in_quotes(path)}, config.error());
  if (!config->is_object())
    return make_error(ErrorCode::parse, "--config: %: not an object", {in_quotes(path)});
  Options seen;  // under whichever of their names
  for (const Json::Member& member : config->members()) {
    std::string_view key = member.name;
    constexpr std::string_view reference_prefix = "command_line_";
    if (starts_with(key, reference_prefix)) key.remove_prefix(reference_prefix.size());
    const auto option = find_where(table, [&](const Option& candidate) {
      return key == key_of(candidate) ||
             (!candidate.other_key.empty() && key == candidate.other_key);
    });
    const std::string label = concat("%: %", {in_quotes(path), printable(member.name)});
    if (option == table.end())
      return make_error(ErrorCode::invalid_argument, "%: unknown key", {label});
    if (contains(seen, &*option))
      return make_error(ErrorCode::invalid_argument, "%: another key sets % already",
                        {label, key_of(*option)});
    seen.push_back(&*option);
    if (contains(given, &*option)) continue;
    if (const char* const shape = wanted_shape(option->target.kind, member.value))
      return bad_value(label, member.value.dump(), shape);
    const bool is_json = option->target.kind == Option::Target::Kind::json;
    auto words = is_json ? Expected<std::vector<std::string>>({member.value.dump()})
                         : config_words(label, member.value);
    if (!words) return words.failure();
    if (auto ok = set_option(label, *words, option->target); !ok) return ok;
  }
  given.insert(given.end(), seen.begin(), seen.end());
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
