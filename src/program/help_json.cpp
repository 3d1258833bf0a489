// --help-all --json: the table of options for programs.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string help_json(const ServerConfig& config) {
  Json list = Json::array();
  for (const Option* const option : config.options) {
    const bool is_setting = option->group() != Option::command_line;
    std::vector<std::string> modes;
    for (const ServerMode& mode : modes_of(config))
      if (is_setting && (option->where() & mode.use)) add_words(modes, {mode.name});
    // The profile is as good as a mode.
    if (is_setting && config.containers && (option->where() & Option::users))
      add_words(modes, {"user-container"});
    Json object = Json::object();
    set_member(object, "option", std::string(option->name()));
    set_member(object, "value", std::string(option->value()));
    set_member(object, "default", std::string(option->usual()));
    set_member(object, "help", full_help(*option, config));
    set_member(object, "other_key", std::string(option->other_key()));
    set_member(object, "group", std::string(group_name(option->group())));
    set_member(object, "often", option->is_often_needed());
    set_member(object, "choices", joined(choices_of(*option, config), ", "sv));
    set_member(object, "modes", list_of(modes));
    list.push_back(std::move(object));
  }
  return list.dump() + "\n";
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
