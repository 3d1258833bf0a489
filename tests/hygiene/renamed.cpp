// A private copy of the library under another name, as two vendors in one program have it.
#define codeexec acme_codeexec
#define CODEEXEC_IMPLEMENTATION
#include "program.hpp"

int renamed();
int renamed() { return runs_a_command("renamed"); }
