// The tree of a script: words, commands and lists of them.
//
// In two steps. ShellParser turns text into a tree (ShellSyntax), by the grammar of POSIX.1-2024
// chapter 2 and bash's additions to it. ShellRunner then goes through the tree in the order of
// execution, as a shell would, except that it takes every branch: it keeps the variables, expands
// the words, and reports each simple command. Strings that are run (eval, the payloads of visitors)
// are parsed when the walk comes to them, into the same tree.
//
// Both steps recurse only as deep as Limits::max_depth allows. The parser reads each character at
// most once per level of nesting; it never goes back, except that `((` is looked through first: it
// is arithmetic or a nested subshell. The walk is bounded by Limits: whatever makes many words of
// one, or many commands of one, is charged to them.
//
// Where the shells themselves do not agree on how a text is read, or where a reading would be
// guesswork, that is a syntax error. Where a value cannot be known, it is unknown. The walk may
// report a command that never runs; it must not miss one that does.
#pragma once

#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline constexpr std::uint32_t no_index = 0xffffffff;

// A slice of one of the tables of ShellSyntax.
struct ShellRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// Rows of one of these tables that are not neighbours: each knows the next one.
struct ShellChain {
  std::uint32_t first = no_index;
  std::uint32_t last = no_index;
};

// A piece of a word before expansion.
struct ShellPart {
  enum class Kind : std::uint8_t {
    literal,     // `text`, quotes removed
    unknown,     // an unknown part of a payload
    tilde,       // ~ and ~name at the start; `text` is the name
    parameter,   // $name, ${name...}
    command,     // $( ) and backquotes: `node`
    process,     // <( ) and >( ): `node`
    arithmetic,  // $(( )): `operand`
    again,       // no text: `operand` is a quoted text before it, which bash expands once more
  };
  Kind kind = Kind::literal;
  bool quoted = false;
  // Of ${name...}:
  char operation = 0;                  // one of - = ? + % # / : ^ , @ or 0
  bool colon = false;                  // :- := :? :+
  bool doubled = false;                // %% ## // ^^ ,,
  bool length = false;                 // ${#name}
  bool indirect = false;               // ${!name}
  bool output = false;                 // of process: >( )
  std::uint32_t subscript = no_index;  // a word
  std::uint32_t operand = no_index;    // a word
  std::uint32_t node = no_index;
  std::string_view text = {};  // literal text, or the name
};

// A word before expansion. Positions are bytes of the script.
struct ShellWord {
  ShellRange parts = {};
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool braces = false;  // has an unquoted { that may begin a brace expansion
  bool quoted = false;  // some of it is quoted: no alias; a pattern may be plain text
};

struct ShellAssignment {
  std::string_view name = {};
  std::uint32_t subscript = no_index;
  std::uint32_t value = no_index;  // a word, unless it is an array
  ShellRange elements = {};        // words, in `lists`
  bool array = false;
  bool append = false;    // +=
  bool declared = false;  // an operand of declare or its like
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t next = no_index;
};

struct ShellRedirection {
  shell::Redirection::Kind kind = shell::Redirection::Kind::read;
  bool output = false;  // its operator is >, not <
  int fd = 0;
  std::uint32_t target = no_index;
  std::uint32_t next = no_index;
};

struct ShellNode {
  enum class Kind : std::uint8_t {
    simple,          // words, assignments, redirections
    list,            // nodes
    and_or,          // nodes, each with its `joint`
    pipeline,        // nodes
    subshell,        // nodes: one
    group,           // nodes: one
    if_clause,       // nodes: condition, body, condition, body ... and perhaps a last body
    loop,            // nodes: condition, body
    for_clause,      // name, words, nodes: body; `flag`: has `in`
    arithmetic_for,  // words: one; nodes: body
    case_clause,     // words: the subject, then patterns; nodes: bodies
    function,        // name, nodes: body
    coprocess,       // nodes: one
    condition,       // [[ ]]: words
    arithmetic,      // (( )): words: one
  };
  Kind kind = Kind::simple;
  bool background = false;
  bool flag = false;
  char joint = 0;  // in an and_or: '&' or '|' before it
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  ShellRange words = {};  // in `lists`
  ShellRange nodes = {};  // in `lists`
  ShellChain assignments = {};
  ShellChain redirections = {};
  std::string_view name = {};
};

// Removes the rows behind the first `size`. resize() could also add rows, which is more code.
template <class Row>
void cut(std::vector<Row>& table, std::size_t size) {
  table.erase(table.begin() + static_cast<std::ptrdiff_t>(size), table.end());
}

// Adds a row to the table, behind the others of its chain.
template <class Row>
void add_to_chain(std::vector<Row>& table, const Row& row, ShellChain& chain) {
  const auto index = static_cast<std::uint32_t>(table.size());
  (chain.last == no_index ? chain.first : table[chain.last].next) = index;
  chain.last = index;
  table.push_back(row);
}

// The trees of a script and of the strings it runs.
struct ShellSyntax {
  std::vector<ShellPart> parts = {};
  std::vector<ShellWord> words = {};
  std::vector<ShellAssignment> assignments = {};
  std::vector<ShellRedirection> redirections = {};
  std::vector<ShellNode> nodes = {};
  std::vector<std::uint32_t> lists = {};      // indices of words or of nodes
  std::list<std::string> texts = {};          // what the views of the above point into
  bool pairs_quotes = false;                  // "${x:-'..'}" was read as bash reads it: in pairs
  bool plain_quotes = false;                  // read it as a POSIX shell: the quotes are plain
  std::size_t simple = 0;                     // how many simple commands there are
  std::size_t most_simple = 0;                // how many there may be
  std::vector<std::uint32_t> pending = {};    // lists under construction
  std::vector<ShellPart> pending_parts = {};  // words under construction

  // Makes room for the tree of a script, as far as that is small: most have a line or two.
  void expect(std::size_t bytes) {
    const std::size_t most = std::min(bytes, std::size_t{512});
    parts.reserve(most / 5 + 4);
    words.reserve(most / 6 + 4);
    nodes.reserve(most / 12 + 4);
    lists.reserve(most / 5 + 8);
    pending.reserve(8);
    pending_parts.reserve(4);
  }

  // Keeps a text that is not in the script as it stands.
  std::string_view keep(std::string text) {
    texts.push_back(std::move(text));
    return texts.back();
  }
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
