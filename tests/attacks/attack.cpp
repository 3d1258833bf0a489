// What the attacks of run.py need beyond a shell: each verb tries one way out with raw system calls
// and shows what it got. Usage: codeexec-test-attack VERB [ARGUMENT...]
//
// Whether an attack got through is judged from outside where that is possible: a file that changed,
// a secret in the output, bytes at a listener, a victim that is gone. Only where all that there is
// to see is what the kernel answered, a verb prints "probe NAME RESULT ERRNO".
//
// Nothing here does harm if it succeeds: the targets come from run.py, which made them.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "attack.hpp"

int main(int argc, char** argv) {
  const attacks::Arguments arguments(argv + std::min(argc, 2), argv + argc);
  for (auto* const verbs :
       {attacks::file_verbs, attacks::ring_verbs, attacks::network_verbs, attacks::process_verbs,
        attacks::privilege_verbs, attacks::limit_verbs, attacks::survival_verbs}) {
    for (const attacks::Verb& verb : verbs()) {
      if (argc < 2 || std::strcmp(argv[1], verb.name) != 0) continue;
      if (arguments.size() >= verb.arguments) return verb.run(arguments);
    }
  }
  std::fprintf(stderr, "codeexec-test-attack: no such verb, or too few arguments\n");
  return 2;
}
