// The options of a server: what a row of the table says, and the table of one server.
//
// Rows stand in the room that knows what they set: those about running commands on this host in
// tools/option_table.cpp, those of a feature in its own room. They are constant, and the compiler
// checks them: a row names the member that it sets, whose type is the kind of its value.
//
//   constexpr Option rows[] = {
//       Option::of<&ServerConfig::local, &LocalOptions::timeout>("timeout")
//           .value("SECONDS")
//           .usual("60")
//           .in(Option::limits)
//           .often()
//           .help("of a command that asks for none. Fractions are allowed"),
//   };
//   static_assert(are_complete(rows));
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct ServerConfig;

// The shell of a server that was not given one: see --shell.
inline constexpr const char* usual_shell = "auto";

// The rows of a constant array, which this borrows.
template <class Row>
class Rows {
 public:
  constexpr Rows() = default;
  template <std::size_t count>
  constexpr Rows(const Row (&rows)[count]) : first_(rows), count_(count) {}
  constexpr const Row* begin() const { return first_; }
  constexpr const Row* end() const { return first_ + count_; }
  constexpr bool empty() const { return count_ == 0; }

 private:
  const Row* first_ = nullptr;
  std::size_t count_ = 0;
};

// One of the words that an option may have for its value.
struct Choice {
  constexpr Choice(const char* word) : name(word) {}
  // Of an option that sets an enumeration. In the name `_` stands for `-`, too.
  template <class Enum>
  constexpr Choice(std::string_view word, Enum enumerator)
      : name(word), value(static_cast<int>(enumerator)) {}

  std::string_view name;
  int value = 0;
};

// Follows members from an object on, through pointers to objects.
template <class Object>
Object& object_at(Object& object) {
  return object;
}
template <class Object>
Object& object_at(std::shared_ptr<Object>& object) {
  return *object;
}
template <auto first, auto... rest, class Object>
auto& variable_at(Object& object) {
  if constexpr (sizeof...(rest) == 0)
    return object.*first;
  else
    return variable_at<rest...>(object_at(object.*first));
}

// A row of the table of options.
class Option {
 public:
  // The form of a value, which has one parser; see set_option(). A size may have a unit, such as
  // 512m.
  enum Kind : unsigned char {
    text,
    one_text,    // a text that may be there, and given once
    keyed_text,  // KEY=value, of which the row has the KEY
    choice,      // an enumerator
    texts,       // this and those up to other_list are lists
    keyed_texts,
    roots,
    variables,
    other_list,  // of items that its row has the parser of
    seconds,
    seconds_or_0,
    whole,
    whole_or_0,
    byte_count,
    byte_count_or_0,
    decimal,
    flag,
    off_flag,  // makes its variable false
    truth,
    json
  };
  // Where commands run, as a set. An option is an error where it has no effect.
  enum Where : unsigned char {
    local = 1,
    docker = 2,
    users = 4,
    command = 8,
    ssh = 16,
    slurm = 32,
    kubernetes = 64,
    made = slurm | kubernetes,  // by an engine
    installed = ssh | made,     // where the agent is started by its name
    places = command | installed,
    kernel = local | places,  // where a sandbox of ours can be
    commands = local | docker | places,
    containers = docker | users,
    engines = made | containers,  // where places of ours can be listed
    agents = containers | places,
    all = commands | users
  };
  // What help lists an option under: the headings in help.cpp, in their order.
  enum Group : unsigned char {
    location,
    policy,
    confinement,
    limits,
    environment,
    background,
    records,
    contained,
    elsewhere,
    command_line  // no setting, and no key of the configuration file
  };

  // The option of that name, which sets the variable that these members lead to from a ServerConfig
  // on. Its kind is that of the variable.
  template <auto... members>
  static constexpr Option of(std::string_view name) {
    using Variable =
        std::remove_reference_t<decltype(variable_at<members...>(std::declval<ServerConfig&>()))>;
    Option row;
    row.name_ = name;
    row.kind_ = kind_for(static_cast<Variable*>(nullptr));
    row.variable_ = [](ServerConfig& config) -> void* { return &variable_at<members...>(config); };
    return row;
  }

  // A list of items that this parser makes of words. It adds an item, or returns the form that the
  // word does not have.
  template <auto parser, auto... members>
  static constexpr Option of_list(std::string_view name) {
    using List =
        std::remove_reference_t<decltype(variable_at<members...>(std::declval<ServerConfig&>()))>;
    Option row = of<members...>(name);
    row.parse_ = [](std::string_view word, void* list) -> const char* {
      return parser(word, *static_cast<List*>(list));
    };
    return row;
  }

  // The columns of a row. A function with an argument makes a row that has it.
  constexpr std::string_view name() const { return name_; }  // without its dashes
  constexpr Kind kind() const { return kind_; }
  // The name of its value in help; empty: it has none.
  constexpr std::string_view value() const { return value_; }
  constexpr Option& value(std::string_view given) {
    value_ = given;
    return *this;
  }
  // The default, in words.
  constexpr std::string_view usual() const { return usual_; }
  constexpr Option& usual(std::string_view given) {
    usual_ = given;
    return *this;
  }
  // The first sentence is for --help, all of it for --help-all.
  constexpr std::string_view help() const { return help_; }
  constexpr Option& help(std::string_view given) {
    help_ = given;
    return *this;
  }
  // A key of the configuration file that means the same.
  constexpr std::string_view other_key() const { return other_key_; }
  constexpr Option& other_key(std::string_view given) {
    other_key_ = given;
    return *this;
  }
  // The words that a value may be. Of a text they are for help and the completions of shells.
  constexpr Rows<Choice> choices() const { return choices_; }
  constexpr Option& one_of(Rows<Choice> choices) {
    choices_ = choices;
    return *this;
  }
  constexpr Group group() const { return group_; }
  constexpr Option& in(Group group) {
    group_ = group;
    return *this;
  }
  // The modes in which it has an effect; of a row that does not say it, all.
  constexpr Where where() const { return where_; }
  constexpr Option& where(Where modes) {
    where_ = modes;
    return *this;
  }
  // Whether --help has it, too.
  constexpr bool is_often_needed() const { return is_often_needed_; }
  constexpr Option& often() {
    is_often_needed_ = true;
    return *this;
  }
  // A value without words is allowed, or one that is an empty text.
  constexpr bool may_be_bare() const { return may_be_bare_; }
  constexpr Option& bare() {
    may_be_bare_ = true;
    return *this;
  }
  constexpr bool may_be_empty() const { return may_be_empty_; }
  constexpr Option& empty() {
    may_be_empty_ = true;
    return *this;
  }
  // The option of another table that it stands behind in help. Without it a row stands behind the
  // one before it in its own table when they are of one group, else at the end of its group.
  constexpr std::string_view after() const { return after_; }
  constexpr Option& after(std::string_view option) {
    after_ = option;
    return *this;
  }
  // Kinds that the type of a variable does not show.
  constexpr Option& off() {
    kind_ = off_flag;
    return *this;
  }
  constexpr Option& bytes() {
    kind_ = byte_count;
    return *this;
  }
  constexpr Option& bytes_or_0() {
    kind_ = byte_count_or_0;
    return *this;
  }
  constexpr Option& or_0() {
    kind_ = kind_ == seconds ? seconds_or_0 : whole_or_0;
    return *this;
  }
  constexpr std::string_view entry_key() const { return entry_key_; }
  constexpr Option& keyed(std::string_view key) {
    kind_ = keyed_text;
    entry_key_ = key;
    return *this;
  }
  constexpr Option& keyed_list(std::string_view key) {
    kind_ = keyed_texts;
    entry_key_ = key;
    return *this;
  }

  constexpr bool is_list() const { return kind_ >= texts && kind_ <= other_list; }
  constexpr bool is_flag() const { return kind_ == flag || kind_ == off_flag; }
  // Whether a row has what every row needs, and nothing that its kind has no use for.
  constexpr bool is_complete() const {
    const bool has_choices = !choices_.empty();
    return is_name(name_) && !help_.empty() && is_flag() == value_.empty() &&
           (kind_ == other_list) == (parse_ != nullptr) &&
           is_list() == (value_.find("...") != value_.npos) && (kind_ != choice || has_choices) &&
           (!has_choices || kind_ == choice || kind_ == text || kind_ == one_text) &&
           (group_ == command_line || (kind_ != one_text && !may_be_bare_ && !may_be_empty_));
  }

  std::string key() const;  // of the configuration file
  void* variable(ServerConfig& config) const { return variable_(config); }
  // Of an other_list: adds a word. Returns the form that the word does not have, or null.
  const char* parse(std::string_view word, void* list) const { return parse_(word, list); }

 private:
  constexpr Option() = default;

  static constexpr bool is_name(std::string_view text) {
    for (const char c : text)
      if (c != '-' && !(c >= 'a' && c <= 'z')) return false;
    return !text.empty();
  }

  static constexpr Kind kind_for(std::string*) { return text; }
  static constexpr Kind kind_for(std::optional<std::string>*) { return one_text; }
  static constexpr Kind kind_for(std::vector<std::string>*) { return texts; }
  static constexpr Kind kind_for(std::vector<Root>*) { return roots; }
  static constexpr Kind kind_for(Variables*) { return variables; }
  template <class Item>
  static constexpr Kind kind_for(std::vector<Item>*) {
    return other_list;
  }
  static constexpr Kind kind_for(std::chrono::milliseconds*) { return seconds; }
  static constexpr Kind kind_for(std::uint64_t*) { return whole; }
  static constexpr Kind kind_for(double*) { return decimal; }
  static constexpr Kind kind_for(bool*) { return flag; }
  static constexpr Kind kind_for(std::optional<bool>*) { return truth; }
  static constexpr Kind kind_for(Json*) { return json; }
  template <class Enum, class = std::enable_if_t<std::is_enum_v<Enum>>>
  static constexpr Kind kind_for(Enum*) {
    static_assert(sizeof(Enum) == sizeof(int), "set_choice() writes an int");
    return choice;
  }

  std::string_view name_ = {};
  std::string_view value_ = {};
  std::string_view usual_ = {};
  std::string_view help_ = {};
  std::string_view other_key_ = {};
  std::string_view entry_key_ = {};
  std::string_view after_ = {};
  Rows<Choice> choices_ = {};
  void* (*variable_)(ServerConfig&) = nullptr;
  const char* (*parse_)(std::string_view word, void* variable) = nullptr;
  Kind kind_ = text;
  Group group_ = location;
  Where where_ = all;
  bool is_often_needed_ = false;
  bool may_be_bare_ = false;
  bool may_be_empty_ = false;
};

// For a static_assert: whether each row is as it must be, and no two have one name.
template <std::size_t count>
constexpr bool are_complete(const Option (&rows)[count]) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!rows[i].is_complete()) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (rows[i].name() == rows[j].name()) return false;
  }
  return true;
}

// The options of one server, in the order of help.
class OptionTable {
 public:
  // A row takes the place of one before that has its name.
  void add(Rows<Option> rows);
  // The row of that name, or null.
  const Option* find(std::string_view name) const;
  // The setting of that key of the configuration file, or null.
  const Option* find_key(std::string_view key) const;

  using Iterator = std::vector<const Option*>::const_iterator;
  Iterator begin() const { return rows_.begin(); }
  Iterator end() const { return rows_.end(); }

 private:
  void insert(const Option& row, const Option* before);

  std::vector<const Option*> rows_ = {};
  // Of each row the name of the option that it was put behind, or nothing.
  std::vector<std::string_view> anchors_ = {};
};

using Options = std::vector<const Option*>;

bool contains(const Options& options, const Option* option);

// "OPTION: 'VALUE' is not EXPECTED".
SharedError bad_value(std::string_view option, std::string_view value, std::string_view expected);

// Puts the words that follow an option on the command line, or stand in the configuration, where
// they belong. `label` is how the user wrote the option. Errors: invalid_argument, which names it.
Expected<void> set_option(std::string_view label, const std::vector<std::string>& words,
                          const Option& option, ServerConfig& config);

// Finds the one of several names that another one was likely meant to be. Takes a time that does
// not grow with what was given.
class NearestName {
 public:
  explicit NearestName(std::string_view wanted);
  void consider(std::string_view name);
  // ": did you mean NAME?", with the prefix before the name; empty: none is near.
  std::string suggestion(std::string_view prefix = {}) const;

 private:
  const std::string wanted_;
  std::string found_ = {};
  std::size_t penalty_ = std::size_t(-1);  // of the one that was found
};

// What to write in place of an unknown option, key of the configuration file, execution mode, or
// word that is none of the choices: the end of a message, or nothing.
std::string meant_option(std::string_view name, const ServerConfig& config);
std::string meant_key(std::string_view key, const ServerConfig& config);
std::string meant_mode(std::string_view mode, const ServerConfig& config);
std::string meant_choice(std::string_view word, Rows<Choice> choices);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
