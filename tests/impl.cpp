// The one file of the test program that holds the implementation, as a user would write it.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
