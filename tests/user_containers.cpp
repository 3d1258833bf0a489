// Containers of users, with a real engine: see docker.cpp.
#include "support.hpp"

#include "codeexec.hpp"

#include <doctest/doctest.h>
