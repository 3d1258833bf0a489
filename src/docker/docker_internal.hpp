// The engine's program, credentials and options.
#pragma once

#include "docker/docker.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// An option, and the pieces of its value.
void add_option(std::vector<std::string>& words, std::string_view option, const char* form,
                Pieces values);

// A call of the engine's program: never a shell string.
ProcessOptions engine_call(const EngineOptions& engine, const std::vector<std::string>& arguments,
                           std::chrono::milliseconds timeout);

// The words of the engine's program, in one line of bounded length.
std::string engine_words(const ProcessResult& result);

bool says(const ProcessResult& result, std::string_view words);

// The advice where the engine has no such image; no other error has it.
inline constexpr std::string_view no_image_help =
    "build it (sh docker/build.sh), or let it be pulled (image_policy)";

// The error of a call that was to do `what`, with advice. It begins with "cannot" and `what`.
SharedError engine_error(const EngineOptions& engine, const ProcessResult& result,
                         std::string_view what);

// Runs the program, and returns its standard output. Fails as engine_error().
Expected<std::string> ask_engine(const EngineOptions& engine,
                                 const std::vector<std::string>& arguments,
                                 std::chrono::milliseconds timeout, std::string_view what,
                                 const std::optional<CancelToken>& cancel = {});

// The answer of `inspect` for a container or an image; null when there is none of that name.
Expected<Json> inspect(const EngineOptions& engine, const char* kind, std::string_view name,
                       const std::optional<CancelToken>& cancel = {});

// The number at the start of a text, or `otherwise`.
template <class Number>
Number leading_number(std::string_view text, Number otherwise) {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

const std::string& label_of(const Json& container, std::string_view label);

// The home in a container that has credentials of the user.
inline constexpr std::string_view container_home = "/home/agent";

// Where the volume of ContainerOptions::cache is.
inline constexpr std::string_view cache_folder = "/var/cache/codeexec";

inline constexpr std::size_t longest_env_file = std::size_t{1} << 20;
// The kernel takes no longer NAME=value.
inline constexpr std::size_t longest_variable = std::size_t{128} << 10;

// The end of the name that begins at `at`; `at` when there is none.
std::size_t end_of_name(std::string_view text, std::size_t at);

std::string_view trim_blanks(std::string_view text);

// `~` and `~/...` with the home directory of this process.
Expected<std::string> with_home(std::string_view path);

// Files and variables of the user for a container.
struct Credentials {
  std::vector<Mount> mounts = {};  // to be checked like any other
  Variables variables = {};
  std::vector<std::string> secrets = {};  // values to be masked
  std::vector<std::string> notes = {};    // a sentence each: files and variables that are not there
};

// Reads files and the variables of this process, which must not change meanwhile.
Expected<Credentials> load_credentials(const ContainerOptions& options,
                                       std::string_view home = container_home);

// Returns the error "option: 'value' problem".
Expected<void> bad_option_value(std::string_view option, std::string_view value,
                                std::string_view problem);

// Letters of ASCII, digits, _ and those of `more`; the first is none of `more`.
bool is_plain(std::string_view text, std::string_view more);

// Whether packages are to be installed.
bool has_packages(const ContainerOptions& options);

// The network of a container, as the engine calls it.
std::string network(const ContainerOptions& options);

// Those of engine_options that weaken the container, with a blank between them.
std::string weakened_by(const ContainerOptions& options);

Expected<void> check_engine_options(const EngineOptions& engine);

// As complete(), in their place.
Expected<void> complete_options(ContainerOptions& options);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
