// Code that an interpreter reads from its standard input, as far as it is not known.
//
//   curl x | python3            refused, as `curl x | sh` is
//   python3 <(curl x)           the same
//   curl x | python3 parse.py   passes: there, the input is data
//   python3 < parse.py          passes, as `python3 parse.py` does: the policy reads no files
//   python3 <(cat parse.py)     the same

#include "policy/subject_internal.hpp"

#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Programs that print what comes from elsewhere, or what cannot be read as it stands.
constexpr auto fetchers =
    NameSet{"aria2c", "aws",   "axel",   "base32", "base64",   "bzcat",  "bzip2", "curl",  "fetch",
            "ftp",    "gh",    "gpg",    "gsutil", "gunzip",   "gzip",   "http",  "https", "lftp",
            "lynx",   "nc",    "ncat",   "netcat", "openssl",  "rclone", "rev",   "scp",   "sftp",
            "socat",  "ssh",   "telnet", "tr",     "uudecode", "wget",   "wget2", "xh",    "xxd",
            "xz",     "xzcat", "zcat",   "zstd",   "zstdcat"};

// True if the script has a command whose output a word is.
bool is_substituted(const Case& judged, const shell::Word& word) {
  const std::string_view text = judged.written(word);
  return text.find("$(") != std::string_view::npos || text.find('`') != std::string_view::npos;
}

// True if a <( ) has a command that fetches something, or if what it has is not known.
bool is_fetched(const Case& judged, const shell::Word& word) {
  std::string_view text = judged.written(word);
  if (!starts_with(text, "<("sv) || !ends_with(text, ")"sv)) return true;
  text = text.substr(2, text.size() - 3);
  bool fetches = false;
  shell::Options options;
  options.dialect = judged.dialect;
  const shell::Outcome outcome = shell::walk(text, options, [&](const shell::Visit& visit) {
    for (const shell::Word& each : visit.command.words) {
      const std::string_view name = base_name(each.text);
      fetches = fetches || fetchers.has(name);
    }
    fetches = fetches || (!visit.command.words.empty() && !visit.command.words[0].known());
  });
  return fetches || !outcome.complete;
}

// True if what comes in is a file, as `cat FILE |` and `< FILE` have it.
bool is_file(const Subject& subject) {
  if (reads_file(subject.command)) return true;
  if (!subject.producer || subject.producer->words.size() < 2) return false;
  const std::vector<shell::Word>& words = subject.producer->words;
  bool files = base_name(words[0].text) == "cat"sv;
  for (const shell::Word& word : words) files = files && !word.process && word.text != "-"sv;
  return files;
}

// True if no part of what comes in is known, so that nothing in it can be judged. A variable may
// hold what the script was given.
bool is_opaque(const Subject& subject, const shell::Input& input) {
  if (input.kind == shell::Input::Kind::unknown) return !is_file(subject);
  if (input.kind != shell::Input::Kind::known || !is_blank_or_unknown(input.text)) return false;
  bool substituted = false;
  for (const shell::Redirection& redirection : subject.command.redirections)
    substituted = substituted || is_substituted(subject.judged, redirection.target);
  if (subject.producer)
    for (const shell::Word& word : subject.producer->words)
      substituted = substituted || is_substituted(subject.judged, word);
  return substituted;
}

bool is_standard_input(std::string_view name) {
  return is_any(name, "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0");
}

// Where an interpreter finds its code.
enum class Source { option, operand, input, process };

Source find_source(const Wrapper& wrapper, const Form& form) {
  const bool only_input = wrapper.has(Wrapper::runs_input);
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    if (each.has("f", "file") && each.part.word && is_standard_input(each.part.text))
      return Source::input;
    if (each.part.word && (only_input || each.is(wrapper.scripts))) return Source::option;
    if (each.has("m", "f", "file", "p", "print", "V", "version", "h", "help"))
      return Source::option;
  }
  if (wrapper.has(Wrapper::operand_is_code)) return Source::option;
  // Behind --, php has arguments of what comes in.
  if (wrapper.language == Language::php && each.at() > 1 && form.words[each.at() - 1].text == "--")
    return Source::input;
  if (each.at() >= form.size || is_standard_input(form.words[each.at()].text)) return Source::input;
  const shell::Word& operand = form.words[each.at()];
  return operand.process && !operand.printed ? Source::process : Source::operand;
}

}  // namespace

inline namespace inner {

bool reads_file(const shell::Command& command) {
  for (const shell::Redirection& redirection : command.redirections)
    if (redirection.kind == shell::Redirection::Kind::read && redirection.fd == 0)
      return redirection.target.known() && !redirection.target.process;
  return false;
}

bool is_fed(const Subject& subject) {
  return subject.producer && !subject.producer->words.empty() &&
         fetchers.has(base_name(subject.producer->words[0].text));
}

void check_code_input(Subject& subject, const Wrapper& wrapper, const Form& form) {
  if (wrapper.kind != Wrapper::Kind::interpreter && !wrapper.has(Wrapper::runs_input)) return;
  const Source source = find_source(wrapper, form);
  const std::size_t operand = Arguments(form, wrapper.syntax, Order::stop_at_operand).skip();
  const bool opaque = source == Source::process ? is_fetched(subject.judged, form.words[operand])
                                                : is_opaque(subject, *form.input);
  if (!opaque || source == Source::option || source == Source::operand) return;
  Form fed = form;
  fed.holes = false;
  fed.lenient = form.lenient && !is_fed(subject);
  subject.refuse_opaque(fed, form.words[0], "what it reads is not known before it runs"sv);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
