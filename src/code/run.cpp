// Running blocks of code.
//
// Blocks become files and command lines; the executor does the rest. A file is written only when
// Executor::check() has no objection to the command that will run it.

#include "code/code.hpp"
#include "code/code_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [&](char x, char y) { return lower(x) == lower(y); });
}

const CodeLanguage* find_language(const std::vector<CodeLanguage>& languages,
                                  std::string_view wanted) {
  for (const CodeLanguage& language : languages)
    for (const std::string& name : language.names)
      if (same_but_for_case(name, wanted)) return &language;
  return nullptr;
}

// The text of a line that is nothing but a comment, in whatever language; empty: it is none.
std::string_view comment_of(std::string_view line) {
  constexpr std::pair<std::string_view, std::string_view> signs[] = {
      {"#", ""}, {"//", ""}, {"/*", "*/"}, {"<!--", "-->"}};
  line = without_blanks(line);
  for (const auto& sign : signs) {
    const std::size_t size = sign.first.size() + sign.second.size();
    if (line.size() >= size && starts_with(line, sign.first) && ends_with(line, sign.second))
      return without_blanks(line.substr(sign.first.size(), line.size() - size));
  }
  return {};
}

// Whether a comment is nothing but a path with that extension: `src/main.py`, but not `see main.py`
// nor https://example.org/main.py.
bool is_bare_path(std::string_view comment, const std::string& extension) {
  if (extension.empty() || !ends_with(comment, concat(".%", {extension}))) return false;
  const std::string_view stem = comment.substr(0, comment.size() - extension.size() - 1);
  return !stem.empty() && stem.back() != '/' && all_are(stem, [](char c) {
    return is_name_char(c) || "./-+"sv.find(c) != std::string_view::npos ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace

inline namespace inner {

std::string_view name_in_comment(std::string_view code, const std::string& extension) {
  std::string_view line = take_line(code);
  if (starts_with(line, "#!"sv)) line = take_line(code);
  const std::string_view comment = comment_of(line);
  constexpr std::string_view keyword = "filename:";
  if (starts_with(comment, keyword)) return without_blanks(comment.substr(keyword.size()));
  return is_bare_path(comment, extension) ? comment : std::string_view();
}

}  // namespace inner

namespace {

constexpr std::size_t longest_code_path = 4095;

// Where a name leads from the work_dir: to a canonical path below it. No part of that begins with a
// dot below `top`, which is the work_dir or a directory above it.
Expected<std::string> path_of_code(const Executor& executor, const std::string& work_dir,
                                   const std::string& top, std::string_view name) {
  const auto refuse = [name](std::string_view why) {
    return make_error(ErrorCode::permission_denied, "%: %", {why, in_quotes(name)});
  };
  if (name.size() > longest_code_path)
    return make_error(ErrorCode::limit, "Filename is longer than % bytes", {longest_code_path});
  auto path = executor.canonical(name, work_dir);
  if (!path) return with_prefix("Filename cannot be used: ", {}, path.error());
  // A tilde is not special here, but the model that wrote it meant another directory.
  if (!codeexec::is_within(*path, work_dir) || *path == work_dir || name.front() == '~')
    return refuse("Filename is not in the workspace"sv);
  if (name.back() == '/') return refuse("Filename is that of a directory"sv);
  const std::string_view below = std::string_view(*path).substr(top == "/" ? 0 : top.size());
  if (below.find("/.") != std::string_view::npos)
    return refuse("Filename has a part that begins with a dot, which code may not be saved as"sv);
  return path;
}

// A file that goes with its command.
class PassingFile {
 public:
  // Before the command runs: it is removed from the directory that it was made in, whatever the
  // code puts in its place.
  PassingFile(const Executor& executor, const Command& command, std::string path)
      : executor_(executor), path_(std::move(path)) {
    if (auto opened = executor.open_work_dir(command.work_dir)) directory_ = opened.take();
  }
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;

  // The command has ended, or goes on by itself. Of one that goes on, its end removes the file.
  void end() {
    if (over_.fetch_or(has_ended) == goes_on) (void)remove();
  }
  void let_go() {
    if (over_.fetch_or(goes_on) == has_ended) (void)remove();
  }

  bool remove() const {
    if (directory_)
      return ::unlinkat(directory_.get(), path_.c_str() + path_.rfind('/') + 1, 0) == 0;
    FileWrite how;
    how.remove = true;
    return executor_.files().write(path_, {}, how).has_value();
  }

 private:
  const Executor& executor_;
  const std::string path_;
  UniqueFd directory_ = UniqueFd();
  static constexpr unsigned has_ended = 1;
  static constexpr unsigned goes_on = 2;
  std::atomic<unsigned> over_{0};
};

class CodeRun {
 public:
  CodeRun(const Executor& executor, const CodeOptions& options)
      : executor_(executor),
        options_(options),
        work_dir_(options.command.work_dir.empty()
                      ? executor.workspace()
                      : executor.canonical(options.command.work_dir, executor.workspace())) {}

  CodeResult run(const std::vector<CodeBlock>& blocks) {
    if (blocks.empty()) stop("no code blocks to execute"sv);
    bool going_on = !blocks.empty();
    for (std::size_t i = 0; i < blocks.size() && going_on; ++i) going_on = run(blocks[i]);
    result_.succeeded = going_on;
    return std::move(result_);
  }

 private:
  // False when nothing after this block is to run.
  bool run(const CodeBlock& block) {
    const std::string name = block.language.empty() ? infer_language(block.code) : block.language;
    const CodeLanguage* const language = find_language(options_.languages, name);
    if (!language) return stop(unknown(name));
    if (language->shell && language->program.size() != 1)
      return stop(concat("language %: a shell takes no arguments here", {name}));
    if (const std::size_t nul = block.code.find('\0'); nul != std::string::npos)
      return stop(concat("the code has a NUL byte (at byte %)", {nul}));
    const bool passing = is_passing(block.code, *language);
    const auto path = place(block.code, *language, passing);
    // Of a work_dir that is none, the gate says it.
    if (!path && (work_dir_ || language->program.empty())) return not_saved(path.error());
    if (language->program.empty()) return only_save(block.code, *path);
    Command command = command_for(block.code, *language, path ? *path : std::string());
    // A refusal comes before anything is written; run() puts it on the audit log.
    const Result verdict = executor_.check(command);
    const bool admitted = verdict.outcome == Outcome::not_started && verdict.message.empty();
    if (admitted && !path) return not_saved(path.error());
    const bool saves = admitted && !(passing && language->shell);
    std::shared_ptr<PassingFile> file;
    if (saves && passing) file = new_shared<PassingFile>(executor_, options_.command, *path);
    if (saves && !save(block.code, *path)) return false;
    if (saves) save_again_when_approved(command, *path);
    if (file)
      command.on_end = [file, next = command.on_end](const Result& result) {
        next(result);
        file->end();
      };
    Result& result = result_.results.emplace_back();
    if (options_.run)
      result_.goes_on = !options_.run(command, result);
    else
      result = executor_.run(command);
    if (file && result_.goes_on) file->let_go();
    if (file && (result_.goes_on || file->remove())) result_.files.pop_back();
    return !result_.goes_on && result.succeeded();
  }

  // Whether its file is to go with it.
  bool is_passing(std::string_view code, const CodeLanguage& language) const {
    return options_.remove_unnamed && !language.program.empty() &&
           name_in_comment(code, language.extension).empty();
  }

  // No command follows that would be on the audit log.
  bool not_saved(const Error& error) {
    record_save(&error, "save"sv, {});
    return stop(error.message);
  }

  // Null is no error.
  void record_save(const Error* error, std::string_view command, std::string_view code) const {
    Result result;
    const bool denied = error && error->code == ErrorCode::permission_denied;
    result.outcome = denied ? Outcome::refused : Outcome::exited;
    if (denied) result.rule = "paths";
    result.exit_code = denied ? -1 : error ? 1 : 0;
    if (error) result.message = error->message;
    result.command = command;
    result.work_dir = work_dir_ ? *work_dir_ : options_.command.work_dir;
    Command asked = options_.command;
    asked.input = code;
    executor_.record(result, asked);
  }
  bool stop(std::string_view message) {
    result_.message = executor_.redact(message);
    return false;
  }

  std::string unknown(const std::string& name) const {
    std::string text = name.empty()
                           ? std::string("the language of the code is not known")
                           : concat("unknown language %", {printable(utf8_prefix(name, 100))});
    text += "; known are";
    std::string_view separator = " "sv;
    for (const CodeLanguage& language : options_.languages) {
      if (language.names.empty()) continue;
      append_all(text, {separator, language.names.front()});
      separator = ", "sv;
    }
    return text;
  }

  // The root that the work_dir lies in, or the workspace; where neither is, the work_dir itself.
  std::string top() const {
    const PathRules rules = executor_.file_rules();
    if (const Root* const root = rules.deepest_root(*work_dir_)) return root->path;
    return codeexec::is_within(*work_dir_, executor_.workspace()) ? executor_.workspace()
                                                                  : *work_dir_;
  }

  // The canonical path of its file.
  Expected<std::string> place(std::string_view code, const CodeLanguage& language,
                              bool passing) const {
    if (!work_dir_) return work_dir_.failure();
    const std::string_view name = name_in_comment(code, language.extension);
    if (!name.empty()) return path_of_code(executor_, *work_dir_, top(), name);
    return path_of_code(
        executor_, *work_dir_, *work_dir_,
        concat("tmp_code_%%%", {passing ? random_hex(16) : content_digits(code),
                                language.extension.empty() ? "" : ".", language.extension}));
  }

  Command command_for(const std::string& code, const CodeLanguage& language,
                      const std::string& path) const {
    Command command = options_.command;
    command.script.clear();
    command.argv.clear();
    command.interpreter.clear();
    command.code.clear();
    if (language.shell) {
      command.script = code;
      command.interpreter = language.program.front();
    } else {
      command.argv = language.program;
      command.argv.push_back(path);
      command.code = code;
    }
    return command;
  }

  Expected<void> write(std::string_view code, const std::string& path) const {
    FileWrite how;
    how.below = *work_dir_;
    auto written = executor_.files().write(path, code, how);
    if (!written) return written.failure();
    if (*written == path) return {};
    return make_error(ErrorCode::permission_denied, "it is %", {in_quotes(*written)});
  }

  bool save(std::string_view code, const std::string& path) {
    if (auto ok = write(code, path); !ok)
      return not_saved(with_prefix("cannot save the code as %: ", {in_quotes(path)}, ok.error()));
    if (const DeleteGuard* guard = executor_.delete_guard()) guard->mark_created(path);
    result_.files.push_back(path);
    record_save(nullptr, concat("save %", {in_quotes(path)}), code);
    return true;
  }

  // Other commands may change the file while a person is asked, who approves this code.
  void save_again_when_approved(Command& command, const std::string& path) const {
    auto ask = command.on_ask ? command.on_ask : executor_.options().on_ask;
    if (!ask || command.code.empty()) return;
    command.on_ask = [this, ask = std::move(ask), &command, &path](Approval& approval) {
      ask(approval);
      if (!approval.allowed) return;
      const auto ok = write(command.code, path);
      approval.allowed = ok.has_value();
      if (!ok) approval.problem = concat("its code cannot be saved: %", {ok.error().message});
    };
  }

  // What is not run passes no gate, but for its directory.
  bool only_save(std::string_view code, const std::string& path) {
    const auto directory = executor_.open_work_dir(options_.command.work_dir);
    if (!directory) return not_saved(directory.error());
    return save(code, path);
  }

  const Executor& executor_;
  const CodeOptions& options_;
  const Expected<std::string> work_dir_;  // canonical
  CodeResult result_ = CodeResult();
};

struct UsualLanguage {
  const char* names[3];
  const char* extension;
  const char* program[2];  // null: the code is only saved
  bool shell = false;
};
constexpr UsualLanguage usual_languages[] = {
    {{"sh", "shell"}, "sh", {"sh"}, true},
    {{"bash"}, "sh", {"bash"}, true},
    // Unbuffered: what was printed before a timeout is not lost.
    {{"python", "py", "python3"}, "py", {"python3", "-u"}},
    {{"javascript", "js", "node"}, "js", {"node"}},
    {{"html", "htm"}, "html", {}},
    {{"css"}, "css", {}},
};

std::vector<CodeLanguage> make_languages() {
  const auto add = [](std::vector<std::string>& list, const char* text) {
    if (text) list.push_back(text);
  };
  std::vector<CodeLanguage> languages;
  for (const UsualLanguage& usual : usual_languages) {
    CodeLanguage& language = languages.emplace_back();
    for (const char* const name : usual.names) add(language.names, name);
    for (const char* const word : usual.program) add(language.program, word);
    language.extension = usual.extension;
    language.shell = usual.shell;
  }
  return languages;
}

}  // namespace

const std::vector<CodeLanguage>& default_languages() {
  static const std::vector<CodeLanguage> languages = make_languages();
  return languages;
}

CodeResult run_code(const Executor& executor, const std::vector<CodeBlock>& blocks,
                    const CodeOptions& options) {
  return CodeRun(executor, options).run(blocks);
}

CodeResult run_code(const Executor& executor, std::string_view language, std::string_view code,
                    const CodeOptions& options) {
  return run_code(executor, {{std::string(language), std::string(code)}}, options);
}

}  // namespace v0_1
}  // namespace codeexec
