// What of the user's own a container gets: variables of a file, and how it is all configured.
#include "support.hpp"

#include "codeexec.hpp"

#include <doctest/doctest.h>
