// The executable that every compiled program begins with.
#include "backends/cpu/runtime/Cli.h"

int main(int argc, char **argv) { return mica::rt::runProgram("/proc/self/exe", argc, argv); }
