// The one file of the tests that holds the implementation, as a user would write it.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
