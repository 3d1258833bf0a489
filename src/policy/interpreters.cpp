// Interpreters: where their code stands, and what it starts or removes (see code_internal.hpp).
//
// This finds what is written plainly. Code that hides what it runs is not found: keeping it from
// harm is the job of the sandbox.

#include "policy/code_internal.hpp"
#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The code in a file that the script or an earlier command has written.
void read_code_file(Subject& subject, Language language, const Form& form,
                    const shell::Word& word) {
  if (form.holes) return;
  subject.run.push_back(word.text);
  each_text(subject, word, [&](const shell::Input& text, std::string_view file) {
    const Form runs = subject.in_file(form, file);
    if (text.kind == shell::Input::Kind::known)
      read_code(subject, language, text.text, runs, word, true);
    else
      subject.refuse_opaque(runs, word, "its code is not known before it runs"sv);
  });
}

// True if a script is a shell that reads its commands. `unknown`: a command in it is not known.
bool is_shell(const Case& judged, std::string_view text, bool& unknown) {
  // What is not known is a variable that the script has not set.
  constexpr std::string_view hole = "${CODEEXEC_HOLE}";
  std::string script;
  for (const char c : text) script += c == '\0' ? hole : std::string_view(&c, 1);
  bool reads = false;
  shell::Options options;
  options.dialect = judged.dialect;
  shell::walk(script, options, [&](const shell::Visit& visit) {
    const std::vector<shell::Word>& words = visit.command.words;
    if (words.empty()) return;
    unknown = unknown || !words[0].known() || words[0].text.find(hole) != std::string::npos;
    const std::string_view name = base_name(words[0].text);
    const bool operand = words.size() > 1 && !starts_with(words[1].text, "-"sv);
    reads = reads || (shells.has(name) && !operand);
  });
  return reads;
}

// True if code of awk runs a command that is made of what it reads.
bool has_unknown_command(const Case& judged, Language language, CodeFindings& findings) {
  if (language != Language::awk) return false;
  bool unknown = findings.unknown_command;
  for (const std::string& script : findings.scripts)
    if (is_unknown(script)) is_shell(judged, script, unknown);
  for (auto& [script, text] : findings.readers) {
    if (!is_shell(judged, script, unknown)) continue;
    unknown = unknown || is_unknown(text);
    findings.scripts.push_back(std::move(text));
  }
  return unknown;
}

}  // namespace

inline namespace inner {

// interpreters ------------------------------------------------------------------------------------

void peel_interpreter(Subject& subject, const Wrapper& wrapper, const Form& form) {
  const Language language = wrapper.language;
  bool has_code = false;   // given by an option
  bool from_file = false;  // or in a file that an option names
  bool prints = false, in_place = false;
  std::vector<std::string_view> variables;  // awk -v NAME=VALUE
  std::vector<Part> codes;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    if (each.part.word && each.is(wrapper.scripts)) {
      has_code = true;
      codes.push_back(each.part);
    } else if (each.part.word && each.has("f", "file") && language == Language::awk) {
      // One that is standard input is code that may be known.
      if (is_any(each.part.text, "-", "/dev/stdin") &&
          form.input->kind == shell::Input::Kind::known)
        codes.push_back({form.input->text, each.part.word});
      use_file(subject, Use::read, each.part, false, form);
    }
    if (each.part.word && language == Language::awk && each.is("v", "assign"))
      variables.push_back(each.part.text);
    from_file |= each.has("m", "f", "file");
    prints |= each.has("p", "print");
    in_place |= each.has("i");
  }
  std::size_t i = each.at();
  const bool operand_is_code =
      wrapper.has(Wrapper::operand_is_code) || (prints && language == Language::node);
  if (has_code || from_file) {
    // perl -i and ruby -i change the files they are given.
    for (; in_place && i < form.size; ++i)
      use_file(subject, Use::write, part_of(form.words[i]), false, form);
    // python -m timeit CODE
    if (language == Language::python && !has_code)
      for (std::size_t k = 1; k + 1 < form.size; ++k)
        if (form.words[k].text == "timeit")
          for (std::size_t code = k + 1; code < form.size; ++code)
            codes.push_back(part_of(form.words[code]));
  } else if (operand_is_code) {
    if (i < form.size) codes.push_back(part_of(form.words[i]));
  } else if (i < form.size && form.words[i].text != "-") {
    use_file(subject, Use::read, part_of(form.words[i]), false, form);
    read_code_file(subject, language, form, form.words[i]);
  } else {
    subject.judged.note_reader(*form.input, Reader::program);
    if (form.input->kind == shell::Input::Kind::known)
      read_code(subject, language, form.input->text, form, form.words[0], true);
    else if (const shell::Word* const file = input_file(subject, form))
      read_code_file(subject, language, form, *file);
  }
  for (const Part& code : codes)
    read_code(subject, language, code.text, form, *code.word, false, variables);
}

void read_code(Subject& subject, Language language, std::string_view code, const Form& form,
               const shell::Word& word, bool page, const std::vector<std::string_view>& given) {
  const Form unknown = form.reading(!is_blank_or_unknown(code));
  CodeFindings findings = find_starts(language, code, page, given);
  // What comes in is refused where it comes from.
  if (!page && (findings.opaque || is_blank_or_unknown(code)))
    subject.refuse_opaque(unknown, word, "the code is not known before it runs"sv);
  if (has_unknown_command(subject.judged, language, findings))
    subject.refuse_opaque(form, word, "a command in the code is not known before it runs"sv);
  Form started = form.from(0);
  started.code = true;
  for (const std::string& script : findings.scripts) subject.add_payload(started, script, false);
  for (const std::vector<std::string>& command : findings.commands) {
    std::vector<shell::Word> words;
    for (const std::string& text : command) words.push_back(word_like(word, text));
    subject.add_form(started, std::move(words));
  }
  for (const std::string& path : findings.removed) {
    shell::Word removed = word_like(word, path);
    removed.home = starts_with(removed.text, "~"sv);
    use_file(subject, Use::remove_tree, part_of(removed), true, form);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
