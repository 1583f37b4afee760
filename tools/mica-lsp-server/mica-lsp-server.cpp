//===- mica-lsp-server.cpp - a language server for editors ----------------===//

#include "backends/cpu/driver/Compiler.h"
#include "tools/support/DriverHelp.h"
#include "tools/support/Support.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

static mica::tool::DriverHelp helpOfServer() {
  return {.tool = "mica-lsp-server",
          .description =
              "Serve IR of Mica's dialects to an editor by the language server protocol, "
              "on standard input and output.",
          .footer = "Example, in the settings of VS Code's extension MLIR:\n"
                    "  \"mlir.server_path\": \"/usr/bin/mica-lsp-server\"",
          .groups = {{"Log and tests",
                      {{"--log LEVEL", "Log error, info or verbose messages to standard error"},
                       {"--pretty", "Pretty-print the JSON of responses"},
                       {"--lit-test", "Read messages separated by `// -----`, and log all"}}}}};
}

static int runMain(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "mica " MICA_VERSION "\n"; });
  if (mica::tool::asksForHelp(argc, argv))
    return mica::tool::print(helpOfServer().toText());
  mlir::DialectRegistry registry;
  mica::cpu::registerCompilerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

int main(int argc, char **argv) {
  return mica::tool::runTool([&] { return runMain(argc, argv); });
}
