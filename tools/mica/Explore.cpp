//===- Explore.cpp - mica explore -----------------------------------------===//

#include "tools/mica/Explore.h"

#include "backends/cpu/driver/TextOutput.h"
#include "backends/runtime/abi/ManifestKeys.h"
#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/support/SizeText.h"
#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/import/ModelInput.h"
#include "tools/explore/Diff.h"
#include "tools/explore/Page.h"
#include "tools/explore/ProfileInput.h"
#include "tools/explore/Recorder.h"
#include "tools/mica/ModelFacts.h"
#include "tools/mica/ModelFiles.h"
#include "tools/mica/Pull.h"
#include "tools/support/Support.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace mica::tool {

Expected<explore::Record> recordModel(const ModelArguments &arguments) {
  Expected<cpu::CompileOptions> options = arguments.resolve();
  if (!options)
    return options.takeError();
  mlir::DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry);
  ProgressBar bar;
  bar.show("reading the model", 0);
  Expected<ModelInput> input =
      readModel(context, arguments.model, WeightsNeeded::No, arguments.mtpHead());
  if (!input)
    return input.takeError();
  if (input->storage)
    cpu::chooseWeights(*options, input->storage->bits);
  std::map<std::string, int64_t> sizes = readModelSizes(*input->module);
  explore::Recorder recorder(context);
  options->emit = Stage::Obj;
  options->observer = &recorder;
  options->progress = [&](const cpu::CompileProgress &progress) {
    constexpr double kStages = kStageCount;
    bar.show(("stage " + getStageInfo(progress.stage).name).str(),
             static_cast<double>(progress.stage) / kStages);
  };
  Expected<cpu::CompileReport> report = cpu::compile(*input->module, nullptr, *options, "");
  if (!report)
    return report.takeError();
  explore::Record record = recorder.take();
  record.model = input->module->getName().value_or("model").str();
  record.sizes = std::move(sizes);
  return record;
}

bool isProgram(StringRef path) {
  return sys::fs::is_regular_file(path) && !path.ends_with(".mlir") && !isGguf(path);
}

std::string notForPrograms(const std::string &option) {
  return option + " does not apply to a program; pass the model that it was compiled from";
}

Expected<explore::Record> recordProgram(StringRef path) {
  rt::Result<program::ProgramFile> file = program::ProgramFile::open(path.str());
  if (!file)
    return createStringError(path + ": " + file.error().message);
  auto bytes = file->read(program::SectionKind::Manifest);
  if (!bytes)
    return createStringError(path + ": " + bytes.error().message);
  explore::Record record;
  record.manifest.assign(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  Expected<json::Object> manifest = explore::parseManifestJson(record.manifest, path);
  if (!manifest)
    return manifest.takeError();
  record.model = manifest->getString(rt::manifest_keys::name.text).value_or("model").str();
  record.codeHash = file->layout().find(program::SectionKind::Code)->hash;
  return record;
}

static Expected<uint64_t> writeExplorePage(const ExploreArguments &arguments) {
  if (Error error = protectModel(arguments.model.model, arguments.output, "-o"))
    return error;
  StringRef model = arguments.model.model;
  Expected<explore::Record> record =
      isProgram(model) ? recordProgram(model) : recordModel(arguments.model);
  if (!record)
    return record.takeError();
  json::Value profile = nullptr;
  if (!arguments.profile.empty()) {
    Expected<json::Value> read = explore::readProfile(arguments.profile, record->codeHash);
    if (!read)
      return read.takeError();
    profile = std::move(*read);
  }
  Expected<std::string> page =
      explore::makePage(record->model, explore::pageData(*record, profile));
  if (!page)
    return page.takeError();
  if (Error error = cpu::writeText(arguments.output, *page, "-o"))
    return error;
  return page->size();
}

static Error openPage(StringRef path) {
  ErrorOr<std::string> opener = sys::findProgramByName("xdg-open");
  if (!opener)
    return createStringError("--open needs xdg-open, which is not installed; open the page in a "
                             "browser");
  std::string message;
  if (sys::ExecuteAndWait(*opener, {*opener, path}, std::nullopt, {}, 0, 0, &message) != 0)
    return createStringError("--open: xdg-open failed" +
                             (message.empty() ? "" : " (" + message + ")"));
  return Error::success();
}

int runExplore(ExploreArguments arguments) {
  if (arguments.output.empty())
    return usage("explore needs -o FILE.html", "mica explore");
  Expected<std::string> path = modelPath(arguments.model.model);
  if (!path)
    return report(arguments.model.model, path.takeError());
  arguments.model.model = std::move(*path);
  StringRef model = arguments.model.model;
  if (std::string given = arguments.model.givenOption(); isProgram(model) && !given.empty())
    return usage(notForPrograms(given), "mica explore");
  Expected<uint64_t> bytes = writeExplorePage(arguments);
  if (!bytes)
    return report(model, bytes.takeError(), {arguments.output, arguments.profile});
  errs() << "wrote " << arguments.output << " (" << rt::bytesText(static_cast<double>(*bytes))
         << ")\n";
  if (arguments.open)
    if (Error error = openPage(arguments.output))
      return report(std::move(error));
  return kDone;
}

} // namespace mica::tool
