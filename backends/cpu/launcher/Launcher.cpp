// The executable that every compiled program begins with.
#include "backends/runtime/commands/Cli.h"
#include "backends/runtime/support/Process.h"

int main(int argc, char **argv) {
  mica::program::prepareProcess();
  return mica::rt::runProgram("/proc/self/exe", argc, argv);
}
