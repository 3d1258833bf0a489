// Expressions and calls of other languages, as far as they are made of literals.
//
//   "git " + "push"          a text; an unknown part of it is a NUL byte
//   ["git", "push"]          a list
//   x = "git push"           the variable is known from here on, in the order of the text
//   os.system(x)             a call: the last part of its name says what it does
//   getattr(os, "system")(x) the same
//
// An expression is read by one function, which calls itself for what stands in brackets. Deeper
// than max_code_depth brackets are passed over, and what stands in them is read all the same.

#include "policy/code_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr unsigned max_code_depth = 100;

// Functions that read a text as code of their language.
constexpr auto code_functions = NameSet{
    "Function",   "class_eval",  "compile", "eval",         "instance_eval",   "load",
    "loadstring", "module_eval", "repeat",  "runInContext", "runInNewContext", "runInThisContext",
    "timeit"};
// Functions that call the function that an argument names.
constexpr auto calling_functions = NameSet{
    "__send__", "array_map", "call_user_func", "call_user_func_array", "public_send", "send"};
// Functions of Perl and Ruby that start a program for a name with a | in it.
constexpr auto opening_functions =
    NameSet{"binread", "foreach", "open", "read", "readlines", "readpipe"};
// Names behind which an expression begins anew.
constexpr auto statement_names =
    NameSet{"and",    "do",     "else", "end",    "for",   "if",   "in",    "not", "or",
            "rescue", "return", "then", "unless", "until", "when", "while", "with"};
// Methods that leave a text as it is, as far as it counts here.
constexpr auto keeping_methods = NameSet{"chomp",  "decode", "encode",   "freeze", "lstrip",
                                         "rstrip", "strip",  "toString", "to_s",   "trim"};
// Functions that give the path that their arguments make.
constexpr auto path_functions =
    NameSet{"Path", "abspath", "expand_path", "expanduser", "join", "realpath", "resolve"};
// Arguments with a name that are a part of the command.
constexpr auto command_names = NameSet{"args", "cmd", "command"};

std::vector<std::string> blank_parts(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// A text with holes for {}, {name} and %s.
std::string with_holes(std::string_view text, bool percent) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t close =
        text[i] == '{' ? text.substr(i, 64).find('}') : std::string_view::npos;
    const bool letter = percent && text[i] == '%' && i + 1 < text.size();
    if (!percent && close != std::string_view::npos) i += close;
    if (letter) ++i;
    if (letter && text[i] == '%')
      result += '%';
    else
      result += letter || (!percent && close != std::string_view::npos) ? '\0' : text[i];
  }
  return result;
}

class CodeReader {
 public:
  CodeReader(CodeScope& scope, const CodePiece& piece, bool divides)
      : scope_(scope), piece_(piece), lexer_(scope, piece, divides) {
    advance();
  }

  // False: a slash may have hidden something.
  bool read() {
    while (!token_.is(CodeToken::Kind::end)) {
      read_value(0, false);
      if (is_separator() || is_close()) advance();
    }
    return !lexer_.ambiguous();
  }

 private:
  using Values = std::vector<CodeValue>;
  // What an expression has been read to.
  struct Operand {
    CodeValue value = {};
    std::string name = {};  // its last name, which is not called yet
    bool plain = false;     // nothing but that name
  };

  bool is(Language wanted) const { return scope_.is(wanted); }
  void advance() {
    token_ = lexer_.next();
    if (token_.is_mark(';') || token_.is_mark('\n') || token_.is_mark('{') || token_.is_mark('}'))
      prints_ = false;
  }
  bool is_close() const {
    return token_.is_mark(')') || token_.is_mark(']') || token_.is_mark('}');
  }
  bool is_separator() const {
    return token_.is_mark(',') || token_.is_mark(';') || token_.is_mark('\n');
  }
  // A language whose calls may have no parentheses.
  bool calls_bare() const {
    return is(Language::perl) || is(Language::ruby) || is(Language::lua) || is(Language::php);
  }

  CodeValue read_value(unsigned depth, bool in_brackets);
  Operand read_operand(unsigned depth);
  void read_suffix(Operand& operand, unsigned depth);
  Values read_group(char close, unsigned depth);
  Values read_bare_arguments(unsigned depth);
  bool begins_argument() const;
  void take_operator(CodeValue& value, bool& empty, unsigned depth, bool in_brackets, bool& joins);
  void take_pipe(const CodeValue& before, unsigned depth, bool in_brackets);
  void set(const std::string& name, CodeValue value);

  CodeValue call(const std::string& name, const CodeValue& object, Values arguments);
  CodeValue call_method(const std::string& name, const CodeValue& object, const Values& arguments);
  void start(const std::string& name, const Values& arguments);
  void start_by_mark(const Values& arguments);
  bool starts(std::string_view name) const {
    if (is(Language::awk)) return name == "system"sv;
    return starting_functions.has(name) && !(name == "exec"sv && is(Language::python));
  }
  bool has_effect(std::string_view name) const {
    return starts(name) || removing_functions.has(name) || code_functions.has(name) ||
           calling_functions.has(name) || (is(Language::python) && name == "exec"sv) ||
           ((is(Language::perl) || is(Language::ruby)) && opening_functions.has(name));
  }
  void add_script(const std::string& text) {
    if (scope_.charge(text.size())) scope_.findings.scripts.push_back(text);
  }

  CodeScope& scope_;
  const CodePiece& piece_;
  CodeLexer lexer_;
  CodeToken token_ = {};
  bool prints_ = false;  // in a print statement of awk
};

// From the current token to a separator or a closing bracket. `in_brackets`: the end of a line is
// a blank.
CodeValue CodeReader::read_value(unsigned depth, bool in_brackets) {
  CodeValue value;
  bool joins = false, empty = true;
  for (;;) {
    if (token_.is_mark('\n') && (in_brackets || joins)) {
      advance();
      continue;
    }
    if (token_.is(CodeToken::Kind::end) || is_separator() || is_close()) return value;
    const bool text_before = value.is_text() && !empty;
    const bool beside = text_before && token_.is(CodeToken::Kind::text);
    const bool mark = token_.is(CodeToken::Kind::mark) && !token_.is_mark('(') &&
                      !token_.is_mark('[') && !token_.is_mark('{');
    if (mark) {
      take_operator(value, empty, depth, in_brackets, joins);
      continue;
    }
    Operand operand = read_operand(depth);
    const bool assigns = token_.is_mark(CodeToken::assign) || token_.is_mark(CodeToken::add);
    if (assigns && !operand.name.empty()) {
      const bool adds = token_.is_mark(CodeToken::add);
      advance();
      CodeValue set_to = read_value(depth + 1, in_brackets);
      if (adds) {
        CodeValue sum = operand.value;
        sum.append(std::move(set_to));
        set_to = std::move(sum);
      }
      set(operand.name, set_to);
      value = std::move(set_to);
      value.named = in_brackets && !command_names.has(operand.name);
      return value;
    }
    if (operand.plain && starts(operand.name)) {
      // import run as r, {execSync: e}
      const bool renames = (token_.is(CodeToken::Kind::name) && token_.name == "as"sv) ||
                           (token_.is_mark(':') && is(Language::node));
      if (renames) {
        advance();
        if (token_.is(CodeToken::Kind::name)) set(std::string(token_.name), operand.value);
      }
    }
    if (joins || beside || (is(Language::awk) && !empty))
      value.append(std::move(operand.value));
    else
      value = std::move(operand.value);
    if (operand.plain && statement_names.has(operand.name)) value = CodeValue();
    joins = false;
    empty = false;
    if (!is(Language::awk) || !operand.plain || !is_any(operand.name, "print", "printf")) continue;
    prints_ = empty = true;
    value = CodeValue();
  }
}

// An operator between two operands.
void CodeReader::take_operator(CodeValue& value, bool& empty, unsigned depth, bool in_brackets,
                               bool& joins) {
  const char mark = token_.mark;
  advance();
  joins = mark == CodeToken::joint;
  if (joins) return;
  if (mark == '|' && is(Language::awk)) {
    take_pipe(value, depth, in_brackets);
  } else if (mark == '%' && value.is_text() && is(Language::python)) {
    read_operand(depth);
    value.set_text(with_holes(value.texts[0], true));
    return;
  } else if (mark == '$' && is(Language::awk)) {
    // A field of what it reads, behind a text or before one.
    if (token_.is(CodeToken::Kind::name) || token_.is_mark('(')) read_operand(depth);
    if (empty) value = CodeValue();
    value.append(CodeValue());
    empty = false;
    return;
  } else if (mark == '*' || mark == '\\' || mark == '@' || mark == '&') {
    // *list, \@array, @function, &function
    return;
  }
  value = CodeValue();
}

// "command" | getline, print | "command"; with |& the same. Elsewhere it is no pipe: a slash may
// have been read wrongly.
void CodeReader::take_pipe(const CodeValue& before, unsigned depth, bool in_brackets) {
  const bool prints = prints_;
  if (token_.is(CodeToken::Kind::name) && token_.name == "getline"sv) {
    if (before.is_text())
      add_script(before.texts[0]);
    else
      scope_.findings.unknown_command = true;
  } else if (!token_.is(CodeToken::Kind::end) && !is_separator() && !is_close()) {
    const CodeValue command = read_value(depth + 1, in_brackets);
    if (!command.is_text()) {
      scope_.findings.unknown_command |= prints;
    } else {
      add_script(command.texts[0]);
      const std::string read = before.is_text() ? before.texts[0] : std::string(1, '\0');
      if (scope_.charge(command.texts[0].size() + read.size()))
        scope_.findings.readers.emplace_back(command.texts[0], read);
    }
  }
}

CodeReader::Operand CodeReader::read_operand(unsigned depth) {
  Operand operand;
  if (token_.is(CodeToken::Kind::mark)) {
    const char open = token_.mark;
    advance();
    if (depth >= max_code_depth) return operand;
    Values values = read_group(open == '(' ? ')' : open == '[' ? ']' : '}', depth + 1);
    CodeValue& value = operand.value;
    if (open == '(' && values.size() == 1) {
      value = std::move(values[0]);
      value.named = false;
    } else if (open == '{') {
      for (CodeValue& each : values)
        if (each.is_list() && !value.is_list()) value = std::move(each);
    } else {
      value.kind = CodeValue::Kind::list;
      for (const CodeValue& each : values) {
        if (each.texts.empty()) value.texts.emplace_back(1, '\0');
        value.texts.insert(value.texts.end(), each.texts.begin(), each.texts.end());
      }
    }
  } else if (token_.is(CodeToken::Kind::name)) {
    operand.name = token_.name;
    operand.plain = true;
    const CodeValue* const known = scope_.value_of(operand.name);
    if (known && scope_.charge(known->texts.empty() ? 0 : known->texts[0].size()))
      operand.value = *known;
    else if (!token_.variable && starts(operand.name))
      operand.value.set_text(operand.name);
    advance();
  } else {
    if (token_.is(CodeToken::Kind::script)) {
      add_script(token_.texts[0]);
    } else {
      operand.value.kind =
          token_.is(CodeToken::Kind::list) ? CodeValue::Kind::list : CodeValue::Kind::text;
      operand.value.texts = std::move(token_.texts);
    }
    advance();
  }
  read_suffix(operand, depth);
  return operand;
}

// What follows an operand: calls, indices and attributes.
void CodeReader::read_suffix(Operand& operand, unsigned depth) {
  CodeValue object;
  for (;;) {
    std::string name = operand.name;
    // A variable that has the name of a function, or "name"(...).
    if (operand.value.is_text() && !has_effect(name) && has_effect(operand.value.texts[0]))
      name = operand.value.texts[0];
    // Only before functions of its own code awk takes no blank.
    const bool is_call =
        !is(Language::awk) || !token_.spaced || is_any(name, "close", "sprintf", "system");
    if (token_.is_mark('(') && !name.empty() && is_call && depth < max_code_depth) {
      advance();
      operand.value = call(name, object, read_group(')', depth + 1));
      object = CodeValue();
      operand.name.clear();
    } else if (calls_bare() && has_effect(name) && begins_argument() && depth < max_code_depth) {
      operand.value = call(name, object, read_bare_arguments(depth + 1));
      operand.name.clear();
    } else if (token_.is_mark('[') && !token_.spaced && depth < max_code_depth) {
      advance();
      const Values index = read_group(']', depth + 1);
      operand.name.clear();
      operand.value = CodeValue();
      if (index.size() == 1 && index[0].is_text() && has_effect(index[0].texts[0]))
        operand.value = index[0];
    } else if (token_.is_mark(CodeToken::attribute)) {
      advance();
      while (token_.is_mark('\n')) advance();
      if (!token_.is(CodeToken::Kind::name)) {
        operand.name.clear();
        continue;
      }
      object = std::move(operand.value);
      operand.name = token_.name;
      operand.value = CodeValue();
      if (starts(operand.name)) operand.value.set_text(operand.name);
      const CodeValue* const known = scope_.value_of(operand.name);
      if (known && operand.value.kind == CodeValue::Kind::unknown) operand.value = *known;
      advance();
      if (is(Language::ruby) && object.is_text() && !token_.is_mark('('))
        operand.value = call_method(operand.name, object, {});
    } else {
      return;
    }
    operand.plain = false;
  }
}

// The values up to a closing bracket, which is skipped.
CodeReader::Values CodeReader::read_group(char close, unsigned depth) {
  Values values;
  const bool block = close == '}';
  while (!token_.is(CodeToken::Kind::end)) {
    if (is_close()) {
      // One that closes another bracket is left to that.
      if (token_.is_mark(close)) advance();
      return values;
    }
    if (is_separator()) {
      advance();
      continue;
    }
    values.push_back(read_value(depth, !block));
  }
  return values;
}

CodeReader::Values CodeReader::read_bare_arguments(unsigned depth) {
  Values values;
  // system {'program'} 'name', 'argument'
  if (token_.is_mark('{')) read_operand(depth);
  while (!token_.is(CodeToken::Kind::end)) {
    values.push_back(read_value(depth, false));
    if (!token_.is_mark(',')) break;
    do advance();
    while (token_.is_mark('\n'));
  }
  return values;
}

bool CodeReader::begins_argument() const {
  if (token_.is(CodeToken::Kind::name))
    return token_.variable || scope_.value_of(token_.name) ||
           is_any(token_.name, "my", "our", "local") ||
           (token_.name[0] >= 'A' && token_.name[0] <= 'Z');
  if (token_.is(CodeToken::Kind::mark))
    return (token_.spaced && (token_.is_mark('[') || token_.is_mark('*'))) ||
           (is(Language::perl) && token_.is_mark('{'));
  return !token_.is(CodeToken::Kind::end);
}

void CodeReader::set(const std::string& name, CodeValue value) {
  constexpr std::size_t most = 256, longest = 4096;
  std::size_t bytes = 0;
  for (const std::string& text : value.texts) bytes += text.size() + 1;
  if (value.kind == CodeValue::Kind::unknown || bytes > longest) {
    scope_.variables.erase(name);
  } else if (scope_.variables.size() < most && scope_.charge(bytes)) {
    value.named = false;
    scope_.variables[name] = std::move(value);
  }
}

// calls -------------------------------------------------------------------------------------------

CodeValue CodeReader::call(const std::string& name, const CodeValue& object, Values arguments) {
  CodeValue result;
  if (code_functions.has(name) || (is(Language::python) && name == "exec"sv)) {
    for (const CodeValue& each : arguments)
      if (each.is_text()) scope_.add_piece(each.texts[0], piece_);
    return result;
  }
  if (starts(name)) {
    // "command".execute()
    if (arguments.empty() && object.is_text()) add_script(object.texts[0]);
    start(name, arguments);
    return result;
  }
  if (removing_functions.has(name)) {
    for (const CodeValue& each : arguments)
      for (const std::string& text : each.texts)
        if (!each.named && scope_.charge(text.size())) scope_.findings.removed.push_back(text);
    return result;
  }
  if ((is(Language::perl) || is(Language::ruby)) && opening_functions.has(name)) {
    if (name == "readpipe"sv)
      start(name, arguments);
    else
      start_by_mark(arguments);
    return result;
  }
  if (object.is_text() || object.is_list()) return call_method(name, object, arguments);
  if (path_functions.has(name) && !arguments.empty()) {
    std::string path;
    for (const CodeValue& each : arguments)
      append_all(path,
                 {path.empty() ? "" : "/", each.is_text() ? each.texts[0] : std::string(1, '\0')});
    result.set_text(std::move(path));
    return result;
  }
  if ((is(Language::r) && name == "c"sv) || is_any(name, "list", "tuple")) {
    result.kind = CodeValue::Kind::list;
    for (CodeValue& each : arguments) result.append(std::move(each));
    return result;
  }
  // getattr(os, "system"), send(:system, "command")
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_text() || !starts(arguments[i].texts[0])) continue;
    const std::string named = arguments[i].texts[0];
    if (calling_functions.has(name)) {
      arguments.erase(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      start(named, arguments);
    } else if (name == "getattr"sv) {
      result.set_text(named);
    }
    break;
  }
  // shlex.split("command"), Buffer.from("text")
  const bool formats = is(Language::awk) && name == "sprintf"sv && !arguments.empty();
  const bool keeps = is_any(name, "split", "from", "String", "str") && arguments.size() == 1;
  if ((formats || keeps) && arguments[0].is_text()) return call_method(name, arguments[0], {});
  return result;
}

// A method of a text or of a list.
CodeValue CodeReader::call_method(const std::string& name, const CodeValue& object,
                                  const Values& arguments) {
  CodeValue result = object;
  result.named = false;
  if (object.is_list()) {
    if (name != "join"sv || object.texts.empty()) return result;
    const bool given = !arguments.empty() && arguments[0].is_text();
    std::string text;
    for (std::size_t i = 0; i < object.texts.size(); ++i)
      append_all(text, {i && given ? arguments[0].texts[0] : "", object.texts[i]});
    result.set_text(std::move(text));
    return result;
  }
  const std::string& text = object.texts[0];
  if (name == "split"sv) {
    result.kind = CodeValue::Kind::list;
    result.texts = blank_parts(text);
  } else if (name == "join"sv && !arguments.empty() && arguments[0].is_list()) {
    std::string joined;
    for (std::size_t i = 0; i < arguments[0].texts.size(); ++i)
      append_all(joined, {i ? text : "", arguments[0].texts[i]});
    result.set_text(std::move(joined));
  } else if (name == "sprintf"sv) {
    result.set_text(with_holes(text, true));
  } else if (name == "format"sv) {
    result.set_text(with_holes(text, false));
  } else if (!keeping_methods.has(name) && !is_any(name, "from", "String", "str")) {
    result.set_text(text + '\0');
  }
  return result;
}

// A function that starts a program: its first argument is a script, or the program, or a list of
// that and its arguments.
void CodeReader::start(const std::string& name, const Values& arguments) {
  std::size_t i = 0;
  const bool leads = starts_with(name, "spawn"sv) || starts_with(name, "open"sv);
  while (i < arguments.size() && (arguments[i].named || (leads && arguments[i].texts.empty()))) ++i;
  if (i >= arguments.size() || arguments[i].texts.empty()) {
    scope_.findings.unknown_command |= is(Language::awk) && i < arguments.size();
    return;
  }
  const CodeValue& first = arguments[i];
  std::vector<std::string> words = first.texts;
  if (first.is_text()) {
    add_script(words[0]);
    for (bool more = true; more && ++i < arguments.size();) {
      const CodeValue& each = arguments[i];
      more = each.is_text() && !each.named;
      if (each.named) continue;
      words.insert(words.end(), each.texts.begin(), each.texts.end());
    }
    if (words.size() == 1) return;
    // What execv() and its like start is named twice.
    const bool twice =
        starts_with(name, "exec"sv) || starts_with(name, "spawn"sv) || starts_with(name, "posix"sv);
    if (twice && base_name(words[0]) == base_name(words[1])) words.erase(words.begin());
  } else if (words.size() == 1) {
    add_script(words[0]);
  }
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size() + 1;
  if (scope_.charge(bytes)) scope_.findings.commands.push_back(std::move(words));
}

// open(F, "command |"), open(F, "-|", "command", "argument"), IO.read("|command")
void CodeReader::start_by_mark(const Values& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_text()) continue;
    std::string_view text = arguments[i].texts[0];
    text.remove_prefix(std::min(text.find_first_not_of(" +"), text.size()));
    while (ends_with(text, " "sv)) text.remove_suffix(1);
    if (is_any(text, "-|", "|-")) {
      Values rest(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      return start("system", rest);
    }
    if (starts_with(text, "|"sv)) return add_script(std::string(text.substr(1)));
    if (ends_with(text, "|"sv)) return add_script(std::string(text.substr(0, text.size() - 1)));
  }
}

}  // namespace

inline namespace inner {

void CodeValue::set_text(std::string text) {
  kind = Kind::text;
  texts.clear();
  texts.push_back(std::move(text));
}

void CodeValue::append(CodeValue&& next) {
  if (is_list() || next.is_list()) {
    if (!is_list()) texts.insert(texts.begin(), std::string(1, '\0'));
    texts.insert(texts.end(), next.texts.begin(), next.texts.end());
    kind = Kind::list;
  } else if (is_text() || next.is_text()) {
    if (!is_text()) set_text(std::string(1, '\0'));
    if (next.is_text())
      texts[0] += next.texts[0];
    else
      texts[0] += '\0';
  }
}

bool CodeScope::charge(std::size_t bytes) {
  const bool fits = bytes < budget;
  budget = fits ? budget - bytes : 0;
  return fits;
}

void CodeScope::add_piece(std::string_view text, const CodePiece& from, bool page) {
  constexpr unsigned deepest = 8;
  if (from.depth >= deepest || text.find_first_of("(`'\"|"sv) == std::string_view::npos ||
      !charge(text.size()))
    return;
  pieces.push_back({std::string(text), from.depth + 1, page});
}

const CodeValue* CodeScope::value_of(std::string_view name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

void read_piece(CodeScope& scope, const CodePiece& piece) {
  if (!CodeReader(scope, piece, false).read()) CodeReader(scope, piece, true).read();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
