// Two agents with a container each and one folder: the first may write there, the second read.
//
//   c++ -std=c++17 -I. examples/containers.cpp -o containers -pthread
//   ./containers [IMAGE [AGENT]]
//
// Needs a Docker engine. IMAGE is codeexec/runtime:latest (see docker/build.sh) unless given. AGENT
// is a static codeexec-mcp, which starts the commands; without it the image must have one.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

bool work(codeexec::ContainerManager& manager, const codeexec::ContainerExecutorOptions& options) {
  const auto place = manager.executor(options);
  if (!place) return std::fprintf(stderr, "%s\n", place.error().message.c_str()), false;
  // The first command would make the container, too. ensure() says why there can be none.
  const auto ready = place->ensure();
  if (!ready)
    return std::fprintf(stderr, "no container: %s\n", ready.error().message.c_str()), false;

  for (const char* script :
       {"echo draft > notes.txt", "cat notes.txt", "echo text > /notes.txt", "ls /sys/class/net"}) {
    const codeexec::Result result = place->run(script);
    std::printf("%s$ %s\n%s%s%s\n", options.agent_id.c_str(), script, result.out.c_str(),
                result.err.c_str(), result.summary().c_str());
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  char folder[] = "/tmp/containers-XXXXXX";
  if (!::mkdtemp(folder)) return std::perror(folder), 2;

  // The defaults: no network, no capabilities, a read-only root, 2 GiB, 2 processors.
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder;
  if (argc > 1) options.container.image = argv[1];
  if (argc > 2) options.container.agent = argv[2];

  codeexec::ContainerManager manager;
  options.agent_id = "writer";
  options.roots = {{folder, codeexec::Permission::write}};
  bool good = work(manager, options);
  options.agent_id = "reader";
  options.roots = {{folder, codeexec::Permission::read}};
  good = good && work(manager, options);

  const auto cleaned = manager.cleanup_all();
  if (good && !cleaned) std::fprintf(stderr, "%s\n", cleaned.error().message.c_str());
  std::remove((std::string(folder) + "/notes.txt").c_str());
  std::remove(folder);
  return good && cleaned ? 0 : 1;
}
