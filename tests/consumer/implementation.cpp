#define CODEEXEC_IMPLEMENTATION
#include <codeexec.hpp>
