// MassGen's code execution server: this program, called as fastmcp.
//
//   codeexec-mcp --massgen-path             a folder with a link fastmcp to this program
//   PATH=FOLDER:$PATH massgen ...           MassGen's client finds it there and calls
//     fastmcp run .../_code_execution_server.py:create_server -- ARGUMENTS
//                                           read_massgen_call(): this server, with these arguments
//     fastmcp anything else                 run_next_fastmcp(): the next one on the PATH
//
// What MassGen's lists of commands refuse is refused here, too (PolicyOptions::compat_lists). The
// only tool is the one that MassGen's own rules for calls know: execute_command.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "docker/docker_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char fastmcp_name[] = "fastmcp";
// Says where the search goes on when the next program of that name is one of ours again: the
// process and the position behind the folder it was found in, as PID:POSITION.
constexpr char position_variable[] = "CODEEXEC_FASTMCP";

// An option of MassGen's server.
struct MassGenOption {
  const char* name;
  enum Use {
    same,      // ours has the name and the meaning
    patterns,  // regular expressions, which need to match the start of a command only
    mode,
    paths,
    agent,
    instance,
    settings
  } use;
};
constexpr MassGenOption massgen_options[] = {{"--allowed-paths", MassGenOption::paths},
                                             {"--timeout", MassGenOption::same},
                                             {"--max-output-size", MassGenOption::same},
                                             {"--allowed-commands", MassGenOption::patterns},
                                             {"--blocked-commands", MassGenOption::patterns},
                                             {"--execution-mode", MassGenOption::mode},
                                             {"--srt-settings", MassGenOption::settings},
                                             {"--agent-id", MassGenOption::agent},
                                             {"--instance-id", MassGenOption::instance},
                                             {"--enable-sudo", MassGenOption::same},
                                             {"--local-skills-directory", MassGenOption::same}};

// The arguments of one call.
struct MassGenCall {
  std::string mode = "local";
  std::string agent = {};
  std::string instance = {};
  std::string settings = {};
  std::vector<std::string> paths = {};
  std::vector<std::string> words = {};  // for read_command_line()
};

// Adds an option with each of its values, which none of can then be taken for another option.
void add_values(std::vector<std::string>& words, std::string_view name,
                const std::vector<std::string>& values) {
  if (values.empty()) add_words(words, {name});
  for (const std::string& value : values) add_words(words, {concat("%=%", {name, value})});
}

Expected<void> take_one(const Argument& argument, std::string& value) {
  if (argument.words.size() != 1 || argument.words[0].empty())
    return make_error(ErrorCode::invalid_argument, "% needs exactly one value, and not %",
                      {argument.name, argument.words.size()});
  value = argument.words[0];
  return {};
}

Expected<void> take_massgen_argument(const Argument& argument, MassGenCall& call) {
  const auto* const option = find_where(
      massgen_options, [&](const MassGenOption& known) { return known.name == argument.name; });
  if (option == std::end(massgen_options))
    return make_error(ErrorCode::invalid_argument,
                      "% is no option of MassGen's code execution server that is known here: take "
                      "this program's folder from the PATH, or install a newer one",
                      {in_quotes(argument.name)});
  switch (option->use) {
    case MassGenOption::mode:
      return take_one(argument, call.mode);
    case MassGenOption::agent:
      return take_one(argument, call.agent);
    case MassGenOption::instance:
      return take_one(argument, call.instance);
    case MassGenOption::settings:
      return take_one(argument, call.settings);
    case MassGenOption::paths:
      call.paths.insert(call.paths.end(), argument.words.begin(), argument.words.end());
      return {};
    case MassGenOption::patterns: {
      std::vector<std::string> patterns = argument.words;
      for (std::string& pattern : patterns)
        if (!pattern.empty()) pattern = concat("(?:%).*", {pattern});
      add_values(call.words, argument.name, patterns);
      return {};
    }
    default:
      add_values(call.words, argument.name, argument.words);
      return {};
  }
}

// Commands run in the container that MassGen has made, which it knows by this name. An agent of
// ours is copied there, not into the cache: MassGen puts that into the workspace. The container is
// what confines the commands.
Expected<void> enter_container(MassGenCall& call) {
  if (call.agent.empty())
    return make_error(ErrorCode::invalid_argument,
                      "execution-mode docker needs an agent-id, by which MassGen names its "
                      "container");
  std::string name = concat("massgen-%", {call.agent});
  if (!call.instance.empty()) append_all(name, {"-", call.instance});
  const char* const given = std::getenv("CODEEXEC_PLACE_AGENT");
  auto program = given && *given ? Expected<std::string>(given) : own_program();
  if (!program) return program.failure();
  add_words(call.words,
            {"--execution-mode", "command", "--sandbox", "off", "--place-agent", *program});
  add_values(call.words, "--place-command",
             {script_of_argv(
                 {"docker", "exec", "-i", "-e", "CODEEXEC_PLACE_CACHE=/var/tmp", name, "sh"})});
  return {};
}

// The words that say where commands run.
Expected<void> add_mode(MassGenCall& call) {
  const bool for_srt = call.mode == "srt";
  if (for_srt == call.settings.empty())
    return make_error(ErrorCode::invalid_argument,
                      "execution-mode srt and srt-settings need each other");
  auto workspace = canonical_path("."sv);
  if (!workspace) return workspace.failure();
  add_values(call.words, "--workspace", {*workspace});
  if (call.paths.empty()) call.paths.push_back(*workspace);
  if (!for_srt) add_values(call.words, "--allowed-paths", call.paths);
  if (!call.agent.empty()) add_values(call.words, "--agent-id", {call.agent});
  if (!call.instance.empty()) add_values(call.words, "--instance-id", {call.instance});
  if (call.mode == "docker") return enter_container(call);
  if (call.mode == "local" || for_srt) return {};
  return bad_value("execution-mode"sv, call.mode, "one of local, docker, srt"sv);
}

bool is_massgen_script(std::string_view word) {
  const std::string_view name = base_name(word);
  return name.substr(0, name.find(':')) == "_code_execution_server.py";
}

}  // namespace

inline namespace inner {

bool is_called_fastmcp(int argc, char** argv) {
  return argc > 0 && base_name(argv[0]) == fastmcp_name;
}

// Any call with that script is ours: never is the server that confines nothing started in place of
// this one.
bool starts_massgen_server(int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != "--"sv; ++i)
    if (is_massgen_script(argv[i])) return true;
  return false;
}

Expected<void> read_massgen_call(int argc, char** argv, ServerConfig& config) {
  const auto wrong = [](const char* why) { return make_error(ErrorCode::invalid_argument, why); };
  if (argc < 3 || argv[1] != "run"sv || !is_massgen_script(argv[2]) ||
      (argc > 3 && argv[3] != "--"sv))
    return wrong(
        "called as fastmcp for MassGen's code execution server, in words that are not known here: "
        "run FILE:create_server -- ARGUMENTS");
  // The word in place of the program's name is skipped.
  auto arguments = split_arguments(argc - std::min(argc, 3), argv + std::min(argc, 3), config);
  if (!arguments) return arguments.failure();
  MassGenCall call;
  call.words.push_back(fastmcp_name);
  for (const Argument& argument : *arguments)
    if (auto ok = take_massgen_argument(argument, call); !ok) return ok;
  if (auto ok = add_mode(call); !ok) return ok;
  std::vector<char*> words;
  for (std::string& word : call.words) words.push_back(word.data());
  if (auto ok = read_command_line(static_cast<int>(words.size()), words.data(), config); !ok)
    return ok;
  if (!call.settings.empty())
    if (auto ok = apply_srt_settings(call.settings, call.paths, config); !ok) return ok;
  config.local.policy.compat_lists = true;
  config.tools.full_results = true;
  disable_other_tools(config.tools, "execute_command"sv);
  config.greeting = concat("in place of MassGen's code execution server, execution-mode %",
                           {printable(call.mode)});
  return {};
}

}  // namespace inner

namespace {

// Where the search begins: behind a program of ours that has become this one, else at the start.
std::size_t first_position() {
  const char* const text = std::getenv(position_variable);
  if (!text) return 0;
  std::string_view rest = text;
  if (take_part(rest, ':') != std::to_string(::getpid())) return 0;
  return leading_number(rest, std::size_t{0});
}

bool is_this_program(const struct stat& status, const struct stat& own) {
  return status.st_dev == own.st_dev && status.st_ino == own.st_ino;
}

}  // namespace

inline namespace inner {

// A folder that is given by a relative path is skipped: MassGen starts its servers in a folder that
// its agents may write to.
int run_next_fastmcp(char** argv) {
  struct stat own {};
  if (::stat("/proc/self/exe", &own) != 0)
    return fail(126, concat("fastmcp: cannot find this program itself: %", {errno_text(errno)}));
  const char* const path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  const std::size_t first = first_position();
  for (std::size_t position = 0; !rest.empty(); ++position) {
    const std::string file = concat("%/%", {take_part(rest, ':'), fastmcp_name});
    struct stat status {};
    if (position < first || file[0] != '/' || ::stat(file.c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode) || is_this_program(status, own) ||
        ::access(file.c_str(), X_OK) != 0)
      continue;
    const std::string next = concat("%:%", {::getpid(), position + 1});
    if (::setenv(position_variable, next.c_str(), 1) == 0) ::execv(file.c_str(), argv);
    return fail(126, concat("cannot start %: %", {in_quotes(file), errno_text(errno)}));
  }
  return fail(127,
              "fastmcp: there is no other fastmcp on the PATH, and this one is MassGen's code "
              "execution server only: install MassGen, or put its bin on the PATH");
}

}  // namespace inner

namespace {

SharedError folder_error(const std::string& path, const char* problem) {
  return make_error(ErrorCode::io, "--massgen-path: %: %", {in_quotes(path), problem});
}

// Opens a folder of that name, after making it if it is not there. It must belong to this user, and
// no other user may write to it.
Expected<UniqueFd> own_folder(const UniqueFd& parent, const char* name, const std::string& path) {
  if (::mkdirat(parent.get(), name, 0700) != 0 && errno != EEXIST)
    return folder_error(path, errno_text(errno).c_str());
  UniqueFd folder(::openat(parent.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0)
    return folder_error(path, errno_text(errno).c_str());
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return folder_error(path, "others may write there: remove it");
  return folder;
}

// Opens the user's folder for what can be made again, after making it if it is not there. Its path
// goes into `path`.
Expected<UniqueFd> open_cache(std::string& path) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache && cache[0] == '/')
    path = cache;
  else if (home && home[0] == '/')
    path = concat("%/.cache", {home});
  else
    return make_error(ErrorCode::io, "--massgen-path: HOME names no folder");
  // It becomes an entry of PATH, in a line.
  if (path.find_first_of(":\n") != std::string::npos)
    return folder_error(path, "a folder with : or a line end in its name cannot be in PATH");
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    (void)::mkdir(path.substr(0, at).c_str(), 0755);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return folder_error(path, errno_text(errno).c_str());
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return folder_error(path, errno_text(errno).c_str());
  return folder;
}

// Makes the link, or puts it in the place of whatever else has its name.
Expected<void> link_program(const UniqueFd& folder, const std::string& program,
                            const std::string& path) {
  char there[PATH_MAX] = "";
  const ssize_t size = ::readlinkat(folder.get(), fastmcp_name, there, sizeof there);
  if (size >= 0 && std::string_view(there, static_cast<std::size_t>(size)) == program) return {};
  const std::string made = concat("%.%", {fastmcp_name, ::getpid()});
  (void)::unlinkat(folder.get(), made.c_str(), 0);
  if (::symlinkat(program.c_str(), folder.get(), made.c_str()) != 0)
    return folder_error(path, errno_text(errno).c_str());
  if (::renameat(folder.get(), made.c_str(), folder.get(), fastmcp_name) == 0) return {};
  const int error = errno;
  (void)::unlinkat(folder.get(), made.c_str(), 0);
  return folder_error(concat("%/%", {path, fastmcp_name}), errno_text(error).c_str());
}

Expected<std::string> make_massgen_path() {
  auto program = own_program();
  if (!program) return program;
  std::string path;
  auto folder = open_cache(path);
  for (const char* name : {"codeexec", "massgen"}) {
    if (!folder) return folder.failure();
    append_all(path, {"/", name});
    folder = own_folder(*folder, name, path);
  }
  if (!folder) return folder.failure();
  if (::fchmod(folder->get(), 0700) != 0) return folder_error(path, errno_text(errno).c_str());
  if (auto ok = link_program(*folder, *program, path); !ok) return ok.failure();
  return path;
}

}  // namespace

inline namespace inner {

int print_massgen_path() {
  const auto path = make_massgen_path();
  return path ? print_answer(concat({*path, "\n"})) : fail(1, path.error().message);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
