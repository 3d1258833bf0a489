// Ways to what the implementation keeps to itself.
#include "fuzz.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "base/base_internal.hpp"
#include "code/code_internal.hpp"
#include "docker/container_internal.hpp"
#include "sandbox/sandbox_internal.hpp"
#include "tools/options_internal.hpp"
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

// What settles the options that stand for several others; it starts nothing and opens no socket.
codeexec::Expected<void> derive(const codeexec::ServerConfig& config) {
  if (config.use == codeexec::Option::local) {
    const auto options = codeexec::local_options(config);
    return options ? codeexec::Expected<void>() : options.error();
  }
  const auto options = codeexec::container_options(config);
  return options ? codeexec::Expected<void>() : options.error();
}

// An explicit instantiation may name what is private, and brings this friend with it.
Framed read_private_framing(const std::string& id, std::string_view bytes,
                            const std::vector<std::size_t>& sizes);
template <class Framing>
struct FramingReader {
  // Pieces that come before the start has been noticed, which is a piece later for odd sizes, are
  // kept by the framing.
  friend Framed read_private_framing(const std::string& id, std::string_view bytes,
                                     const std::vector<std::size_t>& sizes) {
    Framing framing(id);
    Framed framed;
    const auto use = [&](std::string_view piece) { framed.output += piece; };
    bool started = false;
    for (std::size_t i = 0; !bytes.empty() && !framing.ended(); ++i) {
      const bool has_begun = framing.begun();
      const std::size_t size = sizes[i % sizes.size()];
      const std::string_view piece = bytes.substr(0, size);
      bytes.remove_prefix(piece.size());
      if (started)
        framing.take(piece, use);
      else
        framing.begin(piece);
      if (started || !framing.begun() || (size % 2 != 0 && !has_begun)) continue;
      framing.take(framing.take_rest(), use);
      started = true;
    }
    if (framing.begun() && !started) framing.take(framing.take_rest(), use);
    framed.begun = framing.begun();
    framed.end = framing.end();
    framed.told = framing.text();
    framed.noise = framing.noise();
    framed.session = framing.session();
    return framed;
  }
};
template struct FramingReader<codeexec::ContainerExecutor::Exec::Framing>;

}  // namespace

Configured read_configuration(std::vector<std::string> words, std::string_view file) {
  const codeexec::UniqueFd config_file = file_with(file);
  words.insert(words.begin(),
               {"codeexec-mcp", "--config", "/proc/self/fd/" + std::to_string(config_file.get())});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  codeexec::ServerConfig config;
  Configured result;
  const auto invocation =
      codeexec::read_command_line(static_cast<int>(words.size()), argv.data(), config);
  const auto derived = invocation ? derive(config) : codeexec::Expected<void>(invocation.error());
  result.ok = derived.has_value();
  result.error = derived.error().message;
  result.policy = config.local.policy;
  result.roots = config.local.roots;
  result.timeout = config.local.timeout;
  return result;
}

Framed read_framing(const std::string& id, std::string_view bytes,
                    const std::vector<std::size_t>& sizes) {
  return read_private_framing(id, bytes, sizes);
}

codeexec::ContainerHealth read_health(const codeexec::Json& container) {
  return codeexec::health_of(container);
}

bool says_orphan(const codeexec::Json& container) {
  static const codeexec::ProgramIdentity own = codeexec::own_identity();
  return codeexec::is_orphan(container, own);
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
