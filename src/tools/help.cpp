// --help, --help-all and --list-rules: what the table of options says, for people and for programs.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
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

struct GroupHeading {
  Option::Group group;
  std::string_view text;
};
constexpr GroupHeading headings[] = {
    {Option::location, "Where commands run"},
    {Option::policy, "Policy"},
    {Option::confinement, "Sandbox and network"},
    {Option::limits, "Limits"},
    {Option::environment, "Environment"},
    {Option::background, "Background and tools"},
    {Option::records, "Records"},
    {Option::contained, "Containers (--execution-mode docker)"},
    {Option::elsewhere, "Other places (--execution-mode ssh, slurm, kubernetes, command)"},
    {Option::command_line, "On the command line only"},
};

// Lines of --help about an option, for servers that have it.
struct UsageLine {
  std::string_view option;
  std::string_view text;
};
constexpr UsageLine usage_lines[] = {
    {"client-config", "  codeexec-mcp --client-config claude-code --write    add it to a client\n"},
    {"run", "  codeexec-mcp [options] --run COMMAND    run one, print its result as JSON\n"},
    {"check", "  codeexec-mcp [options] --check COMMAND  print whether it would be refused\n"},
    {"doctor", "  codeexec-mcp [options] --doctor         print what is missing for commands\n"},
    {"report", "  codeexec-mcp --report LOG... --output PAGE.html    show audit logs\n"},
};

std::string_view first_sentence(std::string_view text) { return text.substr(0, text.find(". ")); }

// Adds the lines of one option. In --help it has one, with its default in brackets.
void add_lines_of(std::string& list, const Option& option, const ServerConfig& config, bool all) {
  constexpr std::size_t help_column = 33;
  const std::string help = full_help(option, config);
  const std::string left =
      concat("  --%%%", {option.name(), option.value().empty() ? "" : " ", option.value()});
  list += left;
  if (left.size() + 2 <= help_column)
    list.append(help_column - left.size(), ' ');
  else
    list += all ? concat("\n%", {std::string(help_column, ' ')}) : "  ";
  const char* const form = option.usual().empty() ? "%" : all ? "% (default: %)" : "% [%]";
  const std::string text =
      concat(form, {all ? std::string_view(help) : first_sentence(help), option.usual()});
  add_wrapped(list, text, help_column);
}

}  // namespace

inline namespace inner {

std::string_view group_name(Option::Group group) {
  return find_where(headings, [&](const GroupHeading& row) { return row.group == group; })->text;
}

std::string help_text(const ServerConfig& config, bool all) {
  std::string text =
      "codeexec-mcp " CODEEXEC_VERSION_STRING
      " - runs commands for an AI agent, as an MCP server on stdio\n"
      "  codeexec-mcp [options]                  serve, as an MCP client starts it\n";
  for (const UsageLine& line : usage_lines)
    if (config.options.find(line.option)) text += line.text;
  const bool has_more = !all && config.options.find("help-all");
  std::optional<Option::Group> last_group;
  for (const Option* const option : config.options) {
    if (has_more && !option->is_often_needed()) continue;
    if (option->group() != last_group)
      append_all(text, "%%\n", {all ? "\n" : "", group_name(option->group())});
    last_group = option->group();
    add_lines_of(text, *option, config, all);
  }
  if (!all)
    return concat(
        "%[default]. %Each is also a key of --config FILE,\n"
        "a JSON object, with _ for -: {\"allowed_paths\": [\"/project\"], \"timeout\": 120}\n",
        {text, has_more ? "--help-all prints all options. " : ""});
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
