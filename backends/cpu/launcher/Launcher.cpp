// The executable that every compiled program begins with.
#include "backends/cpu/device/CpuDevice.h"
#include "backends/runtime/commands/Cli.h"
#include "backends/runtime/support/Process.h"

int main(int argc, char **argv) {
  mica::rt::prepareProcess();
  mica::rt::CpuDevice device;
  return mica::rt::runProgram(device, "/proc/self/exe", argc, argv);
}
