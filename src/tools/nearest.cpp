// The name that was meant by one that is not known.
//
//   wanted            known           why
//   alowed_paths      allowed-paths   few letters differ, apart from case, _ and -
//   image             docker-image    it has the same word
//   allow-paths       allowed-paths   each of its words begins one of the other
//
// Names are short: what is longer than they are is near to nothing. So a comparison takes a bounded
// time, whatever was given.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_near = 48;

// In one spelling: small letters, `-` for `_`, and none of them before.
std::string near_spelling(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of("-_"), name.size()));
  std::string plain = in_lower_case(name.substr(0, longest_near + 1));
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

// How many letters are left out, added, changed or swapped with their neighbour. Both texts are at
// most `longest_near`.
std::size_t distance_of(std::string_view a, std::string_view b) {
  std::size_t rows[3][longest_near + 1] = {};  // of the beginnings of a; the last three of them
  for (std::size_t i = 0; i <= a.size(); ++i) {
    std::size_t* const row = rows[i % 3];
    const std::size_t* const before = rows[(i + 2) % 3];
    const std::size_t* const twice_before = rows[(i + 1) % 3];
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        row[j] = i + j;
        continue;
      }
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], twice_before[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

// True if a word begins another one, with one letter wrong in a longer word.
bool begins_word(std::string_view word, std::string_view other) {
  constexpr std::size_t shortest = 3;
  if (word.size() < shortest) return false;
  if (starts_with(other, word)) return true;
  return word.size() > shortest && other.size() >= word.size() &&
         distance_of(word, other.substr(0, word.size() + 1)) <= 1;
}

// How many words of a name begin a word of the other.
std::size_t common_words(std::string_view name, std::string_view other) {
  std::size_t count = 0;
  while (!name.empty()) {
    const std::string_view word = take_part(name, '-');
    bool found = false;
    for (std::string_view rest = other; !rest.empty() && !found;)
      found = begins_word(word, take_part(rest, '-'));
    count += found ? 1 : 0;
  }
  return count;
}

// What other programs call something else, or what is no option here. An advice is for servers that
// have all options and modes that it names.
struct Remedy {
  std::string_view word;  // in the spelling of near_spelling()
  std::string_view advice;
};
constexpr Remedy option_remedies[] = {
    {"c", "use --run COMMAND, or --config FILE"},
    {"v", "use --version"},
    {"cwd", "use --workspace DIR"},
    {"cd", "use --workspace DIR"},
    {"dir", "use --workspace DIR, or --allowed-paths DIR..."},
    {"directory", "use --workspace DIR, or --allowed-paths DIR..."},
    {"root", "use --allowed-paths DIR..."},
    {"roots", "use --allowed-paths DIR..."},
    {"paths", "use --allowed-paths DIR..."},
    {"project", "use --workspace DIR, or --allowed-paths DIR..."},
    {"pwd", "use --workspace DIR"},
    {"workdir", "use --workspace DIR"},
    {"working-dir", "use --workspace DIR"},
    {"work-dir", "use --workspace DIR"},
    {"working-directory", "use --workspace DIR"},
    {"env", "use --set-env NAME=VALUE, or --keep-env NAME"},
    {"e", "use --set-env NAME=VALUE"},
    {"command", "use --run COMMAND, or --allowed-commands PATTERN..."},
    {"exec", "use --run COMMAND"},
    {"execute", "use --run COMMAND"},
    {"mode", "use --execution-mode MODE, or --policy MODE"},
    {"docker", "use --execution-mode docker"},
    {"podman", "use --execution-mode docker --docker-program podman"},
    {"container", "use --execution-mode docker"},
    {"ssh", "use --execution-mode ssh --place-host HOST"},
    {"host", "use --execution-mode ssh --place-host HOST"},
    {"kubernetes", "use --execution-mode kubernetes"},
    {"slurm", "use --execution-mode slurm"},
    {"image", "use --docker-image IMAGE, or --kubernetes-image NAME"},
    {"volume", "use --docker-mount SRC[:DST]"},
    {"memory", "use --limit-memory SIZE, or --docker-memory-limit SIZE"},
    {"no-sandbox", "use --sandbox off"},
    {"no-network", "use --network none"},
    {"offline", "use --network none"},
    {"strict", "use --sandbox strict, or --policy strict"},
    {"whitelist", "use --allowed-commands PATTERN..."},
    {"allowlist", "use --allowed-commands PATTERN..."},
    {"allow", "use --allowed-commands PATTERN..., or --allowed-paths DIR..."},
    {"blacklist", "use --blocked-commands PATTERN..."},
    {"denylist", "use --blocked-commands PATTERN..."},
    {"deny", "use --blocked-commands PATTERN..."},
    {"ask", "use --ask-commands PATTERN..., or --ask-rule NAME..."},
    {"domains", "use --allow-domains NAME..., or --list-domains"},
    {"background", "use --run-in-background-after SECONDS"},
    {"approve", "use --ask-commands PATTERN..."},
    {"install", "use --client-config NAME --write"},
    {"init", "use --client-config NAME --write"},
    {"setup", "use --client-config NAME --write"},
    {"log", "use --audit-file FILE"},
    {"audit", "use --audit-file FILE"},
    {"audit-log", "use --audit-file FILE"},
    {"log-file", "use --audit-file FILE"},
    {"debug", "use --doctor"},
    {"verbose", "use --doctor"},
    {"port", "a client starts the server, and speaks to it on standard input"},
    {"transport", "a client starts the server, and speaks to it on standard input"},
    {"stdio", "a client starts the server, and speaks to it on standard input"},
    {"serve", "without --run and the like it serves"},
    {"server", "without --run and the like it serves"},
    {"start", "without --run and the like it serves"},
};
constexpr Remedy mode_remedies[] = {
    {"podman", "--execution-mode docker --docker-program podman"},
    {"nerdctl", "--execution-mode docker --docker-program nerdctl"},
    {"container", "--execution-mode docker"},
    {"containers", "--execution-mode docker"},
    {"k8s", "--execution-mode kubernetes"},
    {"pod", "--execution-mode kubernetes"},
    {"remote", "--execution-mode ssh --place-host HOST"},
    {"host", "--execution-mode local"},
    {"none", "--execution-mode local"},
    {"sandbox", "--execution-mode local --sandbox strict"},
    {"srt", "--execution-mode local --sandbox strict"},
};

bool has_mode(const ServerConfig& config, std::string_view name) {
  for (const ServerMode& mode : modes_of(config))
    if (mode.name == name) return true;
  return false;
}

// Whether the server has the options and modes that an advice names.
bool can_follow(std::string_view advice, const ServerConfig& config) {
  bool is_mode = false;
  while (!advice.empty()) {
    std::string_view word = take_part(advice, ' ');
    word = word.substr(0, word.find(','));
    const bool is_option = starts_with(word, "--"sv);
    if (is_option && !config.options.find(word.substr(2))) return false;
    // `MODE` stands for any.
    if (is_mode && word != "MODE"sv && !has_mode(config, word)) return false;
    is_mode = is_option && word.substr(2) == mode_option;
  }
  return true;
}

std::string_view advice_about(std::string_view plain, Rows<Remedy> remedies,
                              const ServerConfig& config) {
  for (const Remedy& remedy : remedies)
    if (plain == remedy.word && can_follow(remedy.advice, config)) return remedy.advice;
  return {};
}

}  // namespace

inline namespace inner {

NearestName::NearestName(std::string_view wanted) : wanted_(near_spelling(wanted)) {}

void NearestName::consider(std::string_view name) {
  const std::string other = near_spelling(name);
  if (wanted_.empty() || wanted_.size() > longest_near || other.size() > longest_near) return;
  const std::size_t distance = distance_of(wanted_, other);
  std::size_t penalty = distance;
  if (distance > std::max<std::size_t>(wanted_.size() / 4, wanted_.size() > 2 ? 1 : 0)) {
    const std::size_t words = common_words(wanted_, other);
    if (words == 0) return;
    penalty += longest_near * (longest_near - words);
  }
  if (penalty >= penalty_) return;
  penalty_ = penalty;
  found_ = name;
}

std::string NearestName::suggestion(std::string_view prefix) const {
  return found_.empty() ? std::string() : concat(": did you mean %%?", {prefix, found_});
}

std::string meant_option(std::string_view name, const ServerConfig& config) {
  const std::string_view advice = advice_about(near_spelling(name), option_remedies, config);
  if (!advice.empty()) return concat({": ", advice});
  NearestName nearest(name);
  for (const Option* const option : config.options) nearest.consider(option->name());
  return nearest.suggestion("--"sv);
}

std::string meant_key(std::string_view key, const ServerConfig& config) {
  const Option* const known = config.options.find(near_spelling(key));
  if (known && known->group() == Option::command_line)
    return ": it is an option of the command line only";
  NearestName nearest(key);
  for (const Option* const option : config.options)
    if (option->group() != Option::command_line) nearest.consider(option->name());
  std::string suggestion = nearest.suggestion();
  std::replace(suggestion.begin(), suggestion.end(), '-', '_');
  return suggestion;
}

std::string meant_mode(std::string_view mode, const ServerConfig& config) {
  const std::string plain = near_spelling(mode);
  const std::string_view advice = advice_about(plain, mode_remedies, config);
  if (!advice.empty()) return concat(" For %, use %.", {plain, advice});
  NearestName nearest(mode);
  for (const ServerMode& known : modes_of(config)) nearest.consider(known.name);
  const std::string meant = nearest.suggestion();
  return meant.empty() ? meant : concat(" D%", {std::string_view(meant).substr(3)});
}

std::string meant_choice(std::string_view word, Rows<Choice> choices) {
  static constexpr auto denials = NameSet{"disable", "disabled", "false", "no", "none", "off"};
  NearestName nearest(word);
  for (const Choice& choice : choices) {
    if ((choice.name == "off"sv || choice.name == "none"sv) && denials.has(word))
      return concat("; write %", {choice.name});
    nearest.consider(choice.name);
  }
  return nearest.suggestion();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
