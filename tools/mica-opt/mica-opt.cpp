//===- mica-opt.cpp - mlir-opt with Mica's dialects and passes ------------===//

#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/dispatch/Passes.h"
#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/target/Passes.h"
#include "backends/runtime/support/TemporaryFile.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"
#include "passes/pipelines/Stages.h"
#include "tools/support/DriverHelp.h"
#include "tools/support/ScratchFile.h"
#include "tools/support/Support.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <span>

/// Replaces the text of `file` by that of `result` atomically; permissions are preserved.
static llvm::Error replaceText(llvm::StringRef file, llvm::StringRef result) {
  namespace fs = llvm::sys::fs;
  auto text = llvm::MemoryBuffer::getFile(result);
  if (!text)
    return llvm::createFileError(result, text.getError());
  // The target of a symbolic link is replaced, not the link.
  llvm::SmallString<128> target;
  if (std::error_code error = fs::real_path(file, target))
    return llvm::createFileError(file, error);
  llvm::ErrorOr<fs::perms> permissions = fs::getPermissions(target);
  if (!permissions)
    return llvm::createFileError(file, permissions.getError());
  constexpr const char *another = "choose another -o";
  auto written = mica::rt::TemporaryFile::create(target.str().str(), {}, another);
  if (!written)
    return llvm::createStringError(file + ": " + written.error().message);
  mica::rt::TemporaryFile &temporary = **written;
  llvm::StringRef content = (*text)->getBuffer();
  if (fs::setPermissions(temporary.descriptor(), *permissions) ||
      !temporary.writeAt(std::as_bytes(std::span(content.data(), content.size())), 0) ||
      !temporary.commit())
    return llvm::createStringError(file + ": " + mica::rt::cannotBeWritten(errno, another));
  return llvm::Error::success();
}

/// Runs mlir-opt with `file` as input and output. mlir-opt truncates its output before it reads the
/// input, and removes it if a pass fails: here the file is only changed if there is a result.
static llvm::Expected<int> runInPlace(int argc, char **argv, llvm::StringRef file,
                                      mlir::DialectRegistry &registry) {
  mica::tool::ScratchFile scratch;
  if (llvm::Error error = scratch.create("opt"))
    return std::move(error);
  int status =
      mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, file, scratch.path(), registry));
  uint64_t size = 0;
  if (status != mica::tool::kDone || llvm::sys::fs::file_size(scratch.path(), size) || size == 0)
    return status;
  if (llvm::Error error = replaceText(file, scratch.path()))
    return std::move(error);
  return mica::tool::kDone;
}

static void registerMicaPasses() {
  mica::cpu::registerCodegenPasses();
  mica::cpu::registerLoweringPasses();
  mica::registerPasses();
  mica::registerPipelines();
  mica::cpu::registerDispatchPasses();
  mica::cpu::registerMicaCpuTargetPasses();
}

/// Called while only Mica's passes are registered.
static mica::tool::DriverHelp helpOfMicaOpt() {
  mica::tool::RegisteredPasses registered = mica::tool::registeredPasses();
  return {
      .tool = "mica-opt",
      .description = "Run passes and pipelines on IR, in the order in which they are given.",
      .file = "MLIR file (default: standard input)",
      .footer = "Examples:\n"
                "  mica compile model.gguf --dump-stages stages --emit model\n"
                "  mica-opt stages/0-model.mlir --mica-to-fused",
      .groups = {{"Pipelines", std::move(registered.pipelines)},
                 {"Passes", std::move(registered.passes)},
                 {"Input and output",
                  {{"-o FILE", "Output file (default: standard output)"},
                   {"--pass-pipeline PIPELINE", "Passes with their options and nesting, for "
                                                "instance builtin.module(mica-to-fused,cse)"},
                   {"--split-input-file", "Process each part between lines `// -----` separately"},
                   {"--verify-diagnostics", "Compare diagnostics with expected-error comments"},
                   {"--mlir-print-ir-before-all", "Print the IR before each pass"},
                   {"--mlir-print-ir-after-all", "Print the IR after each pass"},
                   {"--mlir-print-debuginfo", "Print locations"},
                   {"--mlir-timing", "Print the time of each pass"}}}},
  };
}

static int runMain(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "mica " MICA_VERSION "\n"; });
  registerMicaPasses();
  if (mica::tool::asksForHelp(argc, argv))
    return mica::tool::print(helpOfMicaOpt().toText());
  mlir::registerAllPasses();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mica::MicaDialect, mica::exec::ExecDialect, mica::cpu::CpuDialect>();
  mica::exec::registerBufferization(registry);
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "Mica optimizer driver\n", registry);
  // "-" is stdin and stdout; devices are never replaced.
  if (input == "-" || !llvm::sys::fs::is_regular_file(input) ||
      !llvm::sys::fs::equivalent(input, output))
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  llvm::Expected<int> status = runInPlace(argc, argv, input, registry);
  return status ? *status : mica::tool::report(status.takeError());
}

int main(int argc, char **argv) {
  return mica::tool::runTool([&] { return runMain(argc, argv); });
}
