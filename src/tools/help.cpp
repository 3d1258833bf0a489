// --help, --help-all and --list-rules: what the table of options says, for people and for programs.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void add_wrapped(std::string& list, std::string_view text, std::size_t indent) {
  constexpr std::size_t help_width = 80;
  std::size_t column = list.size() - (list.rfind('\n') + 1);
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = take_part(text, ' ');
    if (!is_first && column + 1 + word.size() > help_width) {
      append_all(list, "\n%", {std::string(indent, ' ')});
      column = indent;
    } else if (!is_first) {
      list += ' ';
      ++column;
    }
    list += word;
    column += word.size();
    is_first = false;
  }
  list += '\n';
}

}  // namespace inner

namespace {

// The headings of Option::Group.
constexpr char group_names[] =
    "Where commands run\0Policy\0Sandbox and network\0Limits\0Environment\0Background and tools\0"
    "Records\0"
    "Containers (--execution-mode docker)\0"
    "Other places (--execution-mode ssh, slurm, kubernetes, command)\0"
    "On the command line only\0";

// One option, of the table or of those of the command line only. `option` is null for these.
using VisitRow = FunctionRef<void(std::string_view row, Option::Group group, const Option* option)>;

void visit_rows(VisitRow visit) {
  for (const Option* option = Option::table; option != Option::end(); ++option)
    visit(option->row(), option->group, option);
  for (const Special& special : specials) visit(special.row, Option::command_line, nullptr);
}

std::string_view first_sentence(std::string_view text) { return text.substr(0, text.find(". ")); }

// Adds the lines of one option. In --help it has one, with its default in brackets.
void add_row(std::string& list, std::string_view row, bool all) {
  constexpr std::size_t help_column = 33;
  const std::string_view value = Option::part(row, Option::value);
  const std::string_view usual = Option::part(row, Option::usual);
  const std::string_view help = Option::part(row, Option::help);
  const std::string left =
      concat("  --%%%", {Option::part(row, Option::name), value.empty() ? "" : " ", value});
  list += left;
  if (left.size() + 2 <= help_column)
    list.append(help_column - left.size(), ' ');
  else
    list += all ? concat("\n%", {std::string(help_column, ' ')}) : "  ";
  const char* const form = usual.empty() ? "%" : all ? "% (default: %)" : "% [%]";
  const std::string text = concat(form, {all ? help : first_sentence(help), usual});
  add_wrapped(list, text, help_column);
}

}  // namespace

inline namespace inner {

std::string help_text(bool all) {
  std::string text =
      "codeexec-mcp " CODEEXEC_VERSION_STRING
      " - runs commands for an AI agent, as an MCP server on stdio\n"
      "  codeexec-mcp [options]                  serve, as an MCP client starts it\n"
      "  codeexec-mcp --client-config claude-code --write    add it to a client\n"
      "  codeexec-mcp [options] --run COMMAND    run one, print its result as JSON\n"
      "  codeexec-mcp [options] --check COMMAND  print whether it would be refused\n"
      "  codeexec-mcp [options] --doctor         print what is missing for commands\n"
      "  codeexec-mcp --report LOG... --output PAGE.html    show audit logs\n";
  int last_group = -1;
  visit_rows([&](std::string_view row, Option::Group group, const Option* option) {
    if (!all && (!option || !option->is_often_needed)) return;
    if (group != last_group)
      append_all(text, "%%\n", {all ? "\n" : "", name_in(group_names, group)});
    last_group = group;
    add_row(text, row, all);
  });
  if (!all)
    return text +
           "[default]. --help-all prints all options. Each is also a key of --config FILE,\n"
           "a JSON object, with _ for -: {\"allowed_paths\": [\"/project\"], \"timeout\": 120}\n";
  text +=
      "\nEach option but these last ones is also a key of the configuration file, with _\n"
      "for -. SIZE is a number of bytes, or one with k, m, g or t after it.\n"
      "\nRules, for --disable-rule and --ask-rule:\n  ";
  std::string rules;
  for (const RuleInfo& rule : Policy::rules())
    append_all(rules, {rules.empty() ? "" : " ", rule.name});
  add_wrapped(text, rules, 2);
  return text;
}

std::string help_json() {
  Json list = Json::array();
  visit_rows([&](std::string_view row, Option::Group group, const Option* option) {
    constexpr char member_names[] = "option\0value\0default\0help\0other_key\0";
    Json object = Json::object();
    for (int part = Option::name; part <= Option::other_key; ++part)
      set_member(object, name_in(member_names, part),
                 std::string(Option::part(row, static_cast<Option::Part>(part))));
    set_member(object, "group", name_in(group_names, group));
    set_member(object, "often", option && option->is_often_needed);
    const bool has_choices =
        !option || option->kind == Option::text || option->kind == Option::choice;
    set_member(object, "choices",
               std::string(has_choices ? Option::part(row, Option::detail) : ""sv));
    std::vector<std::string> modes;
    constexpr char mode_names[] =
        "local\0docker\0user-container\0command\0ssh\0slurm\0kubernetes\0";
    for (int mode = 0; option && mode < 7; ++mode)
      if (option->use & 1u << mode) add_words(modes, {name_in(mode_names, mode)});
    set_member(object, "modes", list_of(modes));
    list.push_back(std::move(object));
  });
  return list.dump() + "\n";
}

std::string rules_text() {
  constexpr std::size_t name_width = 22;
  std::string text =
      "The sanitizer's rules in the order of judgement, for --disable-rule. Those with a\n"
      "star have a pattern with --policy compat, too.\n\n";
  for (const RuleInfo& rule : Policy::rules()) {
    std::string left = concat({rule.compat ? "* " : "  ", rule.name});
    left.resize(std::max(left.size() + 1, name_width), ' ');
    text += left;
    add_wrapped(text, rule.description, name_width);
  }
  return text;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
