// Stands in for the docker program, where a conversation with a container needs no engine.
#ifndef CODEEXEC_TESTS_FAKE_ENGINE_HPP
#define CODEEXEC_TESTS_FAKE_ENGINE_HPP

#include <string>
#include <vector>

#include "support.hpp"

// The greeting of an agent that has prepared nothing, as `printf %b` reads it. A real one would
// prepare this machine.
#define FAKE_AGENT_ANSWER "codeexec-place/1\\n\\0016\\0\\0\\0\\0001\\0\\0\\0\\0{\"protocol\":1}"

namespace support {

// Writes down how it is called and with which variables. A command runs here in place of a
// container; what prepares a container, or installs something in it, does not.
class FakeEngine {
 public:
  FakeEngine()
      : program_(directory_.file("engine",
                                 "#!/bin/sh\n"
                                 "here=" +
                                     directory_.path() + "\n" + R"sh(
env >> $here/variables
printf '%s\n' "$*" >> $here/calls
while case $1 in --context | --host) ;; *) false ;; esac do shift 2; done
case $* in
  *,dst=/.codeexec-mcp,*) found=${*%,dst=/.codeexec-mcp,*}; echo "${found##*src=}" > $here/agent ;;
esac
case $1 in
  run) [ "$2" = -di ] || { printf '%b' ')sh" FAKE_AGENT_ANSWER R"sh('; exec cat > /dev/null; } ;;
  exec)
    shift
    while case $1 in -*) ;; *) false ;; esac do
      case $1 in -u | -e | -w | --user | --env) shift ;; esac
      shift
    done
    shift
    case $* in
      '/.codeexec-mcp --place') exec "$(cat $here/agent)" --place ;;
      *install*) echo "no packages here" >&2; exit 1 ;;
    esac ;;
  image) echo '[{"Id":"sha256:0123"}]' ;;
  container) echo "Error: No such container: $3" >&2; exit 1 ;;
  info) echo '{"ServerVersion":"0"}' ;;
esac
)sh",
                                 0755)) {}
  const std::string& program() const { return program_; }
  // Since the last time; a line each.
  std::string take_calls() const { return take("calls"); }
  std::string take_variables() const { return take("variables"); }
  // Options of a server that uses it.
  std::vector<std::string> options(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--execution-mode", "docker", "--docker-program", program_});
    return more;
  }

 private:
  std::string take(const char* name) const {
    const std::string path = directory_ / name;
    if (!exists(path)) return {};
    std::string text = read_file(path);
    write_file(path, "");
    return text;
  }
  TempDir directory_ = {};
  std::string program_;
};

}  // namespace support

#endif  // CODEEXEC_TESTS_FAKE_ENGINE_HPP
