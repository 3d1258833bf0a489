#include "codeexec.hpp"
#include "support.hpp"

#include <doctest/doctest.h>

using namespace codeexec;
