//===- Inspect.cpp - mica inspect -----------------------------------------===//

#include "tools/mica/Inspect.h"

#include "backends/cpu/driver/TextOutput.h"
#include "backends/cpu/features/Cpu.h"
#include "backends/runtime/commands/Info.h"
#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/support/Output.h"
#include "frontend/import/ModelInput.h"
#include "tools/mica/CompileModel.h"
#include "tools/mica/Explore.h"
#include "tools/mica/ModelFacts.h"
#include "tools/mica/ModelFiles.h"
#include "tools/mica/Pull.h"
#include "tools/support/Support.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace mica::tool {

static Error inspectModel(const InspectArguments &arguments) {
  Expected<cpu::CompileOptions> options = arguments.model.resolve();
  if (!options)
    return options.takeError();
  mlir::DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry);
  Expected<ModelInput> input =
      readModel(context, arguments.model.model, WeightsNeeded::No, arguments.model.mtpHead());
  if (!input)
    return input.takeError();
  if (input->storage)
    cpu::chooseWeights(*options, input->storage->bits);
  Expected<ModelFacts> facts = readModelFacts(*input->module, *options);
  if (!facts)
    return facts.takeError();
  if (input->storage)
    facts->stored =
        formatv("{0}, {1:f2} bits per weight", input->storage->type, input->storage->bits);
  warnAboutConversion(*input, arguments.model);
  warnAboutRows(arguments.model, !facts->rows.empty());
  reportRemarks(arguments.model.model, *input, facts->remarks);
  rt::Status written = rt::writeOut(
      arguments.json ? formatv("{0}\n", json::Value(toJson(*facts))).str() : toText(*facts));
  return written ? Error::success() : createStringError(written.error().message);
}

static Error inspectProgram(const InspectArguments &arguments) {
  rt::Result<program::ProgramFile> file = program::ProgramFile::open(arguments.model.model);
  if (!file)
    return createStringError(file.error().message);
  rt::InfoArguments info;
  info.json = arguments.json;
  rt::Status status = rt::infoCommand(*file, rt::checkCpu, info);
  return status ? Error::success() : createStringError(status.error().message);
}

int runInspect(InspectArguments arguments) {
  Expected<std::string> path = modelPath(arguments.model.model);
  if (!path)
    return report(arguments.model.model, path.takeError());
  arguments.model.model = std::move(*path);
  StringRef model = arguments.model.model;
  bool program = isProgram(model);
  if (std::string given = arguments.model.givenOption(); program && !given.empty())
    return usage(notForPrograms(given), "mica inspect");
  if (Error error = program ? inspectProgram(arguments) : inspectModel(arguments))
    return report(model, std::move(error));
  return kDone;
}

} // namespace mica::tool
