// Code in a language is run as a command.
#pragma once

#include "base/base.hpp"
#include "executor/executor.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

struct CodeBlock {
  std::string language = {};  // as a fence names it; case does not matter
  std::string code = {};
};

// The fenced code blocks of a Markdown text, in their order, as CommonMark 0.31.2 has them: fences
// of three or more ` or ~, also in block quotes and list items, without their indentation. Each
// line of the code ends with \n, also one that ended with \r\n. The language is the first word
// after the fence, as it is written; without one it is what infer_language() says. A block without
// a closing fence ends with the quote that it is in, or with the text.
//   Models are careless with indentation, so what CommonMark takes for text is a fence here:
//   - in a list item, and right after a line of text, one that is indented by four or more;
//   - the line that closes a fence in a list item, also when it is not indented as the item is.
//     The same holds for the code: the end of a list item does not end it.
//   HTML is not looked at: a fence in a comment is a fence. Quotes and list items nested more than
//   32 deep are text. Linear.
std::vector<CodeBlock> extract_code(std::string_view markdown);

// A guess by a #! line, or else by the first line that is neither empty nor a comment:
//   "sh"      it begins with a common command (python, pip, cd, git, ls ...) or is shell syntax;
//   "python"  it looks like a statement of Python: an import, a definition, an assignment, a call,
//             a decorator, a docstring, a block that a colon opens. NAME=value is both, so the
//             lines after it decide; when there are none, it is Python;
//   "bash", "javascript"  by a #! line only;
//   empty     anything else.
// Linear.
std::string infer_language(std::string_view code);

// A language that run_code() knows.
struct CodeLanguage {
  std::vector<std::string> names = {};  // case does not matter; the first one is the canonical one
  std::string extension = {};           // of its files, without the dot
  // The program and its arguments; the path of the file is added. A program without a slash is
  // searched in the PATH of the command. Empty: files of it are saved and not run.
  std::vector<std::string> program = {};
  // The program is a shell that knows -c, and has no arguments here: the code is a script, which
  // the policy reads.
  bool shell = false;
};

// sh (shell), bash, python (py, python3), javascript (js, node); html (htm) and css, which are
// saved only.
const std::vector<CodeLanguage>& default_languages();

struct CodeOptions {
  std::vector<CodeLanguage> languages = default_languages();
  // What the commands are besides: work_dir, timeout (of each block), environment, input, cancel,
  // on_output and so on. Its script, argv, interpreter and code are not used.
  Command command = Command();
  // A file that the code does not name, of code that is run, is removed when that has ended; it has
  // 16 random digits then. A shell's code needs none.
  bool remove_unnamed = false;
  // Runs a command in place of Executor::run(), and takes what it is changed to. False: it goes on
  // by itself, and nothing after it runs; its file is removed when it ends, by its on_end.
  Function<bool(Command& command, Result& result)> run = {};
};

struct CodeResult {
  // Of the blocks that were run or refused, in order; it stops at the first that did not succeed.
  // Result::command is the command line that was run, or the script. A block that is only saved has
  // no Result; the audit log records it as `save FILE`, and as `save` if it could not be saved.
  std::vector<Result> results = {};
  // The file of each block that was saved and is still there, canonical; the first is the
  // reference's code_file.
  std::vector<std::string> files = {};
  // Why a block was not run, when no Result says so: an unknown language, a file name outside of
  // the work_dir, a NUL byte, a file that could not be written, no block at all. Empty otherwise.
  std::string message = {};
  // All blocks have succeeded (there was at least one).
  bool succeeded = false;
  bool goes_on = false;  // the last one, as CodeOptions::run has said
};

// Runs blocks of code one after another, each as a command of its own that passes the executor's
// gate, is sandboxed and audited like any other; what is refused is not saved either. A shell's
// code is judged by the policy as the script that it is. Other languages are not read by any
// policy: of those it sees the command line alone (`python3 -u FILE`), and only the sandbox holds
// what the code does; the audit record has the code.
//
// Code goes through a file, or whole to the shell, never through quoting. All of it is saved, as
// it is: a first line that is a comment (#, //, /* */ or <!-- -->) names the file when it has the
// word `filename:` and a path, or is nothing but a path with the extension of the language. It may
// follow a #! line. Any other comment is just a comment. Without a name the file is
// tmp_code_<16 hexadecimal digits of its content>.<extension>. Files stay, but for
// CodeOptions::remove_unnamed; one of that name is replaced.
//
// A name is looked up from the work_dir and must lead to a file below it, also through links, where
// Executor::file_rules() lets it be written. No part of it may begin with a dot, nor any part of
// the work_dir below its root (or the workspace): the user's own tools obey such files, and run
// what is in them outside of any sandbox.
CodeResult run_code(const Executor& executor, const std::vector<CodeBlock>& blocks,
                    const CodeOptions& options = {});
CodeResult run_code(const Executor& executor, std::string_view language, std::string_view code,
                    const CodeOptions& options = {});

}  // namespace v0_1
}  // namespace codeexec
