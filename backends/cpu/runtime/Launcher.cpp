// The executable that every compiled program begins with.
#include "backends/cpu/program/Process.h"
#include "backends/cpu/runtime/Cli.h"

int main(int argc, char **argv) {
  mica::program::prepareProcess();
  return mica::rt::runProgram("/proc/self/exe", argc, argv);
}
