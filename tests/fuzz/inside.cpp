// Ways to what the implementation keeps to itself.
#include "fuzz.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "base/base_internal.hpp"
#include "code/code_internal.hpp"
#include "containers/containers_internal.hpp"
#include "docker/container_internal.hpp"
#include "sandbox/sandbox_internal.hpp"
#include "terminal/terminal_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools_internal.hpp"

namespace fuzz {

namespace {

// The bytes as a file that has a path.
codeexec::UniqueFd file_with(std::string_view bytes) {
  codeexec::UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
  EXPECT(file);
  EXPECT(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return file;
}

}  // namespace

Configured read_configuration(std::vector<std::string> words, std::string_view file) {
  const codeexec::UniqueFd config_file = file_with(file);
  words.insert(words.begin(),
               {"codeexec-mcp", "--config", "/proc/self/fd/" + std::to_string(config_file.get())});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  codeexec::ServerConfig config(
      {&codeexec::features::network, &codeexec::features::program, &codeexec::features::containers,
       &codeexec::features::places});
  Configured result;
  const auto read =
      codeexec::read_command_line(static_cast<int>(words.size()), argv.data(), config);
  // That starts nothing and opens no socket. It makes an empty folder where the fuzzer runs in no
  // project, which goes away with `config`.
  const auto derived = read ? codeexec::settle_options(config) : read;
  result.ok = derived.has_value();
  result.error = derived.error().message;
  result.policy = config.local.policy;
  result.roots = config.local.roots;
  result.timeout = config.local.timeout;
  return result;
}

codeexec::ContainerInfo read_health(const codeexec::Json& container) {
  return codeexec::info_of(container);
}

bool says_orphan(const codeexec::Json& container) {
  static const codeexec::ProgramIdentity own = codeexec::own_identity();
  return codeexec::maker_of_container(container, own) == false;
}

codeexec::TerminalScreen screen_after(int rows, int cols, std::string_view output,
                                      std::size_t piece, std::string& answers) {
  codeexec::TerminalEmulator terminal({rows, cols});
  for (; !output.empty(); output.remove_prefix(std::min(piece, output.size())))
    terminal.add(output.substr(0, piece));
  answers = terminal.take_answers();
  return terminal.screen();
}

double read_amount(std::string_view text) { return codeexec::number_with_unit(text); }

std::string own_group(std::string_view groups, std::string_view controller) {
  return codeexec::own_group(groups, controller);
}

std::string group_directory(std::string_view mounts, const std::string& group,
                            std::string_view controller) {
  return codeexec::group_directory(mounts, group, controller);
}

std::string unescaped(std::string_view text) { return codeexec::unescaped(text); }

std::uint64_t counter_in(const std::string& text, std::string_view word) {
  return codeexec::counter_in(text, word);
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  return codeexec::glob_matches(pattern, text);
}

std::string_view front_matter(std::string_view text, std::string_view key) {
  return codeexec::front_matter(text, key);
}

std::string_view name_in_comment(std::string_view code, const std::string& extension) {
  return codeexec::name_in_comment(code, extension);
}

}  // namespace fuzz
