// A file that only uses the header.
#include "program.hpp"

int other();
int other() { return runs_a_command("other"); }
