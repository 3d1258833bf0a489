// The file of a program that holds the implementation. other.cpp and renamed.cpp stand beside it.
#define CODEEXEC_IMPLEMENTATION
#include "program.hpp"

int other();
int renamed();

int main() { return runs_a_command("one") + other() + renamed(); }
