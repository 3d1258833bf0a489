// The same commands on this host and in places elsewhere, side by side.
//
//   c++ -std=c++17 -I. examples/places.cpp -o places -pthread
//   ./places ssh -T box codeexec-mcp --place      another machine, which also sees this folder
//   ./places codeexec-mcp --place                 an agent on this host
//
// The words are the command that starts the agent in the other place. Prints for each command where
// it ran, its output and how it ended.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>
#include <memory>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<codeexec::Executor>> places;
  auto here = codeexec::LocalExecutor::create({});
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  places.push_back(std::make_unique<codeexec::LocalExecutor>(*here));

  // create() starts the agent. If the connection is lost, the next command starts it again.
  if (argc > 1) {
    codeexec::PlaceOptions options;
    options.transport.assign(argv + 1, argv + argc);
    options.name = "there";
    auto there = codeexec::PlaceExecutor::create(options);
    if (!there) return std::fprintf(stderr, "%s\n", there.error().message.c_str()), 2;
    const codeexec::PlaceFacts facts = there->facts();
    std::printf("there: %s, %s, agent %s\n", facts.host.c_str(), facts.machine.c_str(),
                facts.version.c_str());
    places.push_back(std::make_unique<codeexec::PlaceExecutor>(*there));
  }

  for (const char* script : {"uname -n", "pwd", "echo to stderr >&2; exit 3", "kill -9 $$",
                             "sleep 60 & echo the rest is ended with it"}) {
    for (const auto& place : places) {
      const codeexec::Result result = place->run(script);
      std::printf("%s$ %s\n%s%s%s\n", result.place.empty() ? "here" : result.place.c_str(), script,
                  result.out.c_str(), result.err.c_str(), result.summary().c_str());
    }
  }
}
