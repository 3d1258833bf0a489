// The version, and the language that is needed.
#pragma once

#define CODEEXEC_VERSION_MAJOR 0
#define CODEEXEC_VERSION_MINOR 1
#define CODEEXEC_VERSION_PATCH 0
// Comparable in #if: major * 10000 + minor * 100 + patch.
#define CODEEXEC_VERSION 100
#define CODEEXEC_VERSION_STRING "0.1.0"

#if __cplusplus < 201703L
#error "codeexec.hpp needs C++17: compile with -std=c++17 or newer"
#endif
