// Texts that a shell reads as a script: those of sh, eval, source, trap and alias, and of options.
//
// A text that is known is a payload: the walk reads it next. A text that is not known may be
// anything, and is refused. A form with holes is an exception, as in `ssh host "cd $DIR && make"`:
// the known parts of its texts are judged, and the others pass.
//
//   bash -c 'rm -rf /'      run_string    the text is a word
//   echo 'rm -rf /' | sh    read_input    the text comes in
//   bash /dev/stdin         read_input    the same, by a name
//   bash build.sh           run_named     a file: allowed, unless its text is known, as the script
//                                         or an earlier command has written it
//   ssh -o ProxyCommand=x   run_option    the text is in an option
//   tmux send-keys 'ls' C-m run_guess     the text may have any holes

#include "policy/subject_internal.hpp"

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// One text, with the words from `first` on as $0, $1 ... `file`: of an earlier command.
// `redirected`: it is a file that standard input is.
void read_commands(Subject& subject, const Form& form, std::size_t first, bool same_shell,
                   const shell::Input& input, std::string_view file = {}, bool redirected = false) {
  const bool is_file = &input != form.input;
  if (input.kind == shell::Input::Kind::inherited) return;
  Form fed = form.reading(input.kind == shell::Input::Kind::known);
  fed.lenient = form.lenient && (is_file || !is_fed(subject));
  if (input.kind == shell::Input::Kind::unknown || is_unknown(input.text) || input.glob)
    subject.refuse_opaque(fed, form.words[0], "what it reads is not known before it runs"sv);
  if (input.kind == shell::Input::Kind::unknown || !subject.judged.charge_bytes(input.text.size()))
    return;
  shell::Payload payload;
  payload.text = std::string(input.text);
  payload.input = *form.input;
  payload.file = is_file;
  payload.path = std::string(is_file ? file : form.file);
  payload.input.script = payload.input.script || !is_file || redirected;
  payload.same_shell = same_shell;
  payload.tolerant = form.code || input.piece;
  payload.holes = form.holes;
  if (first < form.size && !same_shell) payload.arguments.push_back(shell::Word(form.words[0]));
  for (std::size_t i = first; i < form.size && !same_shell; ++i)
    payload.arguments.push_back(shell::Word(form.words[i]));
  subject.payloads.push_back(std::move(payload));
}

// A file of an earlier command that standard input is: bash < f. False: it is not known.
bool read_redirected(Subject& subject, const Form& form, std::size_t first, bool same_shell) {
  const shell::Word* const target = input_file(subject, form);
  bool found = false;
  if (target)
    each_text(subject, *target, [&](const shell::Input& text, std::string_view file) {
      found = true;
      read_commands(subject, form, first, same_shell, text, file, true);
    });
  return found;
}

}  // namespace

inline namespace inner {

void run_words(Subject& subject, const Form& form, std::string_view script, std::size_t first,
               const shell::Word& word) {
  if (is_unknown(script))
    subject.refuse_opaque(form, word, "part of it is not known before it runs"sv);
  std::string text(script);
  for (std::size_t i = first; i < form.size; ++i) {
    text += ' ';
    append_quoted(text, form.words[i].text);
  }
  subject.add_payload(form, text, false);
}

void run_string(Subject& subject, const Form& form, const Part& part, std::size_t first_argument) {
  const Form unknown = form.reading(!is_blank_or_unknown(part.text));
  if (is_unknown(part.text) || part.glob())
    subject.refuse_opaque(unknown, *part.word, "the script is not known before it runs"sv);
  subject.add_payload(form, part.text, false, first_argument);
}

void run_option(Subject& subject, const Form& form, const Part& part) {
  // ProxyCommand=..., exec=..., SYSTEM:...
  std::string_view text = part.text;
  const std::size_t at = text.find_first_of("=: ");
  const std::string key = in_lower_case(text.substr(0, at));
  if (at != std::string_view::npos &&
      (is_any(key, "exec", "system", "shell") || ends_with(key, "command"sv))) {
    // Behind a comma, socat has options.
    const bool address = text[at] == ':';
    text.remove_prefix(at + 1);
    if (address) text = text.substr(0, text.find(','));
  }
  if (form.holes) return run_guess(subject, form, text);
  run_string(subject, form, {text, part.word});
}

void run_guess(Subject& subject, const Form& form, std::string_view script) {
  // git and less have marks before it.
  const std::size_t begin = script.find_first_not_of("|!- ");
  if (begin == std::string_view::npos) return;
  Form guessed = form;
  guessed.holes = true;
  subject.add_payload(guessed, script.substr(begin), false);
}

void read_input(Subject& subject, const Form& form, std::size_t first, bool same_shell) {
  const shell::Input& input = *form.input;
  subject.judged.note_reader(input, Reader::shell);
  // Another shell has it as its script, and it is judged as that.
  if (input.kind != shell::Input::Kind::inherited && !input.script &&
      !read_redirected(subject, form, first, same_shell))
    read_commands(subject, form, first, same_shell, input);
}

}  // namespace inner

namespace {

// Where the text of a script that is named comes from.
enum class ScriptSource { unknown, input, file };

ScriptSource check_script_file(Subject& subject, const Form& form, const shell::Word& word) {
  const std::string text = join_shell_path(subject.command.work_dir.text, word.text);
  if (is_any(text, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")) return ScriptSource::input;
  if (word.process && word.printed) return ScriptSource::file;
  const std::string_view name = base_name(text);
  const bool known_name = name.size() < text.size() && !name.empty() && !is_unknown(name);
  const bool descriptor = starts_with(text, "/dev/fd/"sv) ||
                          (starts_with(text, "/proc/"sv) && text.find("/fd/") != std::string::npos);
  if (word.process && subject.output.find(subject.judged, word).known) {
    subject.judged.understood = false;
    return ScriptSource::unknown;
  }
  if (word.process || (!word.known() && (word.split || !known_name)) || descriptor) {
    subject.refuse_opaque(form, word, "the script is not known before it runs"sv);
    return ScriptSource::unknown;
  }
  use_file(subject, Use::read, part_of(word), false, form);
  subject.run.push_back(word.text);
  // What runs elsewhere has files of its own.
  return form.holes ? ScriptSource::unknown : ScriptSource::file;
}

// The script that word `i` names; the words behind it are $1, $2 ...
void run_named(Subject& subject, const Form& form, std::size_t i, bool same_shell) {
  const ScriptSource source = check_script_file(subject, form, form.words[i]);
  if (source == ScriptSource::input) read_input(subject, form, i + 1, same_shell);
  if (source != ScriptSource::file) return;
  each_text(subject, form.words[i], [&](const shell::Input& text, std::string_view file) {
    read_commands(subject, form, i + 1, same_shell, text, file);
  });
}

// The walk follows eval, trap and alias itself, behind `command` and `builtin` as well.
bool is_followed(const shell::Command& command, const Form& form) {
  const std::vector<shell::Word>& words = command.words;
  std::size_t i = 0;
  while (i < words.size() && is_any(words[i].text, "command", "builtin")) ++i;
  return i == form.level && i < words.size() && form.words == &words[i];
}

void judge_eval(Subject& subject, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i) {
    if (form.words[i].known() && !form.words[i].glob) continue;
    const KnownOutput::Output output = subject.output.find(subject.judged, form.words[i]);
    if (output.known) {
      subject.judged.understood = false;
      subject.output.pass(subject.command);
      continue;
    }
    subject.refuse_opaque(form, form.words[i], "part of it is not known before it runs"sv,
                          output.instead.empty() ? "write out the commands that it is to evaluate"sv
                                                 : output.instead);
    break;
  }
  if (!is_followed(subject.command, form) && form.size > 1)
    subject.add_payload(form, join(form.from(1)), true);
}

void judge_source(Subject& subject, const Form& form) {
  const std::size_t i = form.size > 1 && form.words[1].text == "--" ? 2 : 1;
  if (i < form.size) run_named(subject, form, i, true);
}

void judge_trap(Subject& subject, const Form& form) {
  std::size_t i = 1;
  const bool operands = i < form.size && form.words[i].text == "--";
  if (operands) ++i;
  if (i + 1 >= form.size || (!operands && starts_with(form.words[i].text, "-"sv))) return;
  // Unknown parts are not refused: to the walk they are expansions, as in `trap "rm $tmp" EXIT`.
  if (!is_followed(subject.command, form)) subject.add_payload(form, form.words[i].text, true);
}

void judge_alias(Subject& subject, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    if (word.known() || word.text.find('=') == std::string::npos) continue;
    subject.refuse_opaque(form, word, "part of it is not known before it runs"sv);
    return;
  }
}

// How a shell is called.
struct ShellCall {
  std::size_t operand = 1;   // the word behind its options
  bool has_command = false;  // -c: the operand is the script
  bool from_input = false;   // -s
  bool runs = true;          // not with -n, --help and --version
  bool interactive = false;  // -i

  bool may_be_interactive(const Form& form) const {
    return interactive || from_input || (!has_command && operand >= form.size);
  }
};

// A file that a shell reads before its script: as `. "$BASH_ENV"` in it.
void read_first(Subject& subject, const Form& form, const shell::Assignment& start) {
  const std::string& value = start.value.text;
  const std::string path = join_shell_path(subject.command.work_dir.text, value);
  if (start.value.process || starts_with(path, "/dev/"sv) || starts_with(path, "/proc/"sv))
    return subject.refuse_opaque(form, start.value,
                                 "a shell would run what is not known before it runs"sv);
  if (!subject.judged.charge_bytes(value.size())) return;
  // A shell expands the value as it does in double quotes.
  std::string text = ". \"";
  for (const char c : value) {
    if (c == '"') text += '\\';
    text += c;
  }
  text += '"';
  const std::size_t payloads = subject.payloads.size();
  subject.add_payload(form, text, false);
  if (subject.payloads.size() > payloads) subject.payloads.back().starts = true;
}

// One word of letters, such as -lc or +e.
void read_letters(ShellCall& call, UnsetVariables& variables, std::string_view word) {
  const bool on = word[0] == '-';
  for (const char letter : word.substr(1)) {
    if (letter == 'n') call.runs = !on;
    call.has_command |= letter == 'c' && on;
    call.from_input |= letter == 's' && on;
    call.interactive |= letter == 'i' && on;
    if (letter == 'u' && on) variables.trust_all();
    call.operand += shell_letters.find(letter) != std::string_view::npos;
  }
}

ShellCall read_shell_options(Subject& subject, const Form& form) {
  ShellCall call;
  std::size_t& i = call.operand;
  for (; i < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if (text.empty() || (text[0] != '-' && text[0] != '+') || text == "+"sv) break;
    if (is_any(text, "-", "--")) {
      ++i;
      break;
    }
    if (starts_with(text, "--"sv)) {
      if (is_any(text, "--version", "--help")) {
        call.runs = false;
        return call;
      }
      if (lists_option(shell_longs, text.substr(2)) && ++i < form.size)
        run_named(subject, form, i, false);
      continue;
    }
    if (is_unknown(text))
      subject.refuse_opaque(form, form.words[i], "its options are not known before it runs"sv);
    read_letters(call, subject.variables, text);
  }
  return call;
}

}  // namespace

inline namespace inner {

void judge_start_files(Subject& subject, const Form& form) {
  Form code = form;
  code.code = true;
  for (const shell::Assignment& start : subject.start_files)
    if (start.name == "BASH_ENV") read_first(subject, code, start);
}

void judge_shell(Subject& subject, const Form& form) {
  const ShellCall call = read_shell_options(subject, form);
  const std::size_t i = call.operand;
  if (!call.runs) return;
  for (const shell::Assignment& start : subject.start_files)
    if (start.name == "BASH_ENV" || (start.name == "ENV" && call.may_be_interactive(form)))
      read_first(subject, form, start);
  if (call.has_command) {
    if (i < form.size) run_string(subject, form, part_of(form.words[i]), i + 1);
  } else if (i >= form.size || call.from_input) {
    read_input(subject, form, i, false);
  } else {
    run_named(subject, form, i, false);
  }
}

void judge_builtin(Subject& subject, const Form& form, std::string_view name) {
  if (name == "eval"sv) return judge_eval(subject, form);
  if (is_any(name, "source", ".")) return judge_source(subject, form);
  if (name == "trap"sv) return judge_trap(subject, form);
  if (name == "alias"sv) return judge_alias(subject, form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
