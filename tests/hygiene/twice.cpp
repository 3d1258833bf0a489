// Includes the header plainly, twice, then late with the macro, then again in every way.
// The formatter would take the second of two equal includes away.
// clang-format off
#include "codeexec.hpp"
#include "codeexec.hpp"
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
#include "codeexec.hpp"
#undef CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
// clang-format on

static_assert(CODEEXEC_VERSION == CODEEXEC_VERSION_MAJOR * 10000 + CODEEXEC_VERSION_MINOR * 100 +
                                      CODEEXEC_VERSION_PATCH);

int main() { return codeexec::is_utf8("fine") ? 0 : 1; }
