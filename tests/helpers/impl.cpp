// The implementation in one file, as a user would write it: for scripts that have no build to take
// it from.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
