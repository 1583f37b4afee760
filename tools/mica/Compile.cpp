//===- Compile.cpp - mica compile -----------------------------------------===//

#include "tools/mica/Compile.h"

#include "backends/cpu/features/Cpu.h"
#include "backends/runtime/support/NewFile.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SizeText.h"
#include "tools/mica/Calibrate.h"
#include "tools/mica/CompileModel.h"
#include "tools/mica/CompileSummary.h"
#include "tools/mica/ModelFiles.h"
#include "tools/mica/PeakMemory.h"
#include "tools/mica/Pull.h"
#include "tools/support/Support.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace mica::tool {

static int printReport(const CompileResult &result, StringRef output, uint64_t peak) {
  const cpu::CompileReport &report = result.report;
  json::Array stages, ignored;
  for (const cpu::StageReport &stage : report.stages)
    stages.push_back(json::Object{{"stage", getStageInfo(stage.stage).name},
                                  {"seconds", stage.seconds},
                                  {"bytes", static_cast<int64_t>(stage.bytes)}});
  for (const IgnoredTensor &tensor : result.ignored)
    ignored.push_back(
        json::Object{{"tensor", json::fixUTF8(tensor.name)}, {"reason", tensor.reason}});
  json::Object written{{"output", json::fixUTF8(output)},
                       {"stages", std::move(stages)},
                       {"code_cached", report.isCodeCached},
                       {"left_out", std::move(ignored)},
                       {"weight_bytes", static_cast<int64_t>(report.weightBytes)},
                       {"packing_threads", static_cast<int64_t>(report.packingThreads)},
                       {"peak_anonymous_bytes", static_cast<int64_t>(peak)},
                       {"version", MICA_VERSION}};
  if (report.maxSeq > 0) {
    written["max_seq"] = report.maxSeq;
    written["cache_bytes_per_token"] = report.cacheBytesPerToken;
    written["cache_bytes"] = report.cacheBytes;
    written["state_bytes"] = report.stateBytes;
    written["checkpoint_bytes"] = report.checkpointBytes;
  }
  rt::Status status = rt::writeOut(formatv("{0}\n", json::Value(std::move(written))).str());
  return status ? kDone
                : tool::report(output, createStringError("was written, but its report was not: " +
                                                         status.error().message));
}

static void printStages(const cpu::CompileReport &result, uint64_t peak) {
  for (const cpu::StageReport &stage : result.stages)
    errs() << formatv("{0,-8} {1,8:f3} s {2,12} bytes\n", getStageInfo(stage.stage).name,
                      stage.seconds, stage.bytes);
  if (result.isCodeCached)
    errs() << "the object is from the cache $MICA_OBJECT_CACHE\n";
  if (result.cacheBytesPerToken > 0)
    errs() << formatv("KV cache: {0} per token, {1} for all {2} positions\n",
                      rt::bytesText(static_cast<double>(result.cacheBytesPerToken)),
                      rt::bytesText(static_cast<double>(result.cacheBytes - result.stateBytes)),
                      result.maxSeq);
  if (result.stateBytes > 0)
    errs() << formatv("state: {0} per sequence, of any length, and {1} per checkpoint\n",
                      rt::bytesText(static_cast<double>(result.stateBytes)),
                      rt::bytesText(static_cast<double>(result.checkpointBytes)));
  errs() << formatv("peak of anonymous memory: {0} MiB\n", peak >> 20);
}

/// Computes the importance of columns; null if not requested.
static FindImportance importanceFor(const CompileArguments &arguments, std::string launcher) {
  if (!arguments.calibrate.empty())
    return [&arguments, launcher = std::move(launcher)](const ModelInput &input) {
      return calibrate(arguments.model, input, launcher, arguments.calibrate);
    };
  if (!arguments.imatrix.empty())
    return [&arguments](const ModelInput &input) {
      return importanceOfImatrix(arguments.model.model, input, arguments.imatrix);
    };
  return {};
}

/// The reason why the given activation statistics are not used; empty if they are.
static std::string whyNotCalibrated(const CompileArguments &arguments,
                                    const cpu::CompileOptions &options) {
  std::string option = arguments.calibrate.empty() ? "--imatrix" : "--calibrate";
  if (arguments.calibrate.empty() && arguments.imatrix.empty())
    return {};
  if (arguments.model.mtp)
    return option + " has no statistics for the multi-token prediction head; leave --keep-mtp out";
  if (!isInteger(options.weights.value_or(Precision::F32)))
    return option + " needs --weights int8 or int4: other weights are not quantized";
  return options.emit == Stage::Exe ? ""
                                    : option + " needs --emit exe: weights are in programs only";
}

/// The final message.
static std::string lastLine(const CompileArguments &arguments, const CompileResult &result,
                            const cpu::TargetDescription &target,
                            std::vector<std::string> plugins) {
  const cpu::CompileReport &report = result.report;
  const cpu::StageReport &last = report.stages.back();
  if (last.stage != Stage::Exe)
    return rt::printable(formatv("wrote {0} ({1}, stage {2})", arguments.output,
                                 rt::bytesText(static_cast<double>(last.bytes)), arguments.emit)
                             .str());
  return CompileSummary{.output = arguments.output,
                        .bytes = last.bytes,
                        .preservedBlocks = report.preservedBlocks,
                        .weights = report.weights,
                        .kv = report.kv,
                        .source = result.source,
                        .rounded = result.rounded,
                        .isConverted = result.isConverted,
                        .statistics = result.statistics,
                        .hasInt8Rows = result.hasBlocks && report.promptRows == PromptRows::Int8,
                        .hasTokenizer = result.hasTokenizer,
                        .hasChat = result.hasChat,
                        .ranks = arguments.ranks,
                        .plugins = std::move(plugins),
                        .foreignTarget =
                            rt::checkCpu(target.cpu, target.features) ? "" : target.cpu}
      .toText();
}

/// Writes a new file, because running programs may use an existing one.
static Error writeCopy(StringRef bytes, StringRef target) {
  auto file = rt::NewFile::create(target.str(), {.content = "a plug-in for MPI",
                                                 .format = "shared object",
                                                 .opening = {},
                                                 .hint = "choose another -o"});
  if (!file)
    return createStringError(file.error().message);
  rt::Status written = (*file)->writeAt(bytes.data(), bytes.size(), 0);
  if (written)
    written = (*file)->commit();
  return written ? Error::success() : createStringError(written.error().message);
}

/// Copies the plug-ins for implementations of MPI from the folder of the launcher to that of the
/// program, which looks for them there. Returns their names.
static Expected<std::vector<std::string>> copyMpiPlugins(StringRef launcher, StringRef program) {
  StringRef from = sys::path::parent_path(launcher), to = sys::path::parent_path(program);
  std::vector<std::string> found;
  std::error_code failed;
  for (sys::fs::directory_iterator file(from, failed), end; file != end && !failed;
       file.increment(failed)) {
    StringRef name = sys::path::filename(file->path());
    if (!name.starts_with("mica-mpi-") || !name.ends_with(".so"))
      continue;
    found.push_back(name.str());
    SmallString<128> target(to);
    sys::path::append(target, name);
    auto plugin = MemoryBuffer::getFile(file->path());
    if (!plugin)
      return createStringError(file->path() + ": " + plugin.getError().message());
    if (Error failed = writeCopy((*plugin)->getBuffer(), target))
      return std::move(failed);
  }
  if (found.empty())
    rt::reportWarning(
        ("there is no plug-in for MPI in " + from +
         ", so the program cannot be started by mpirun; install OpenMPI or MPICH with "
         "its headers and build Mica again")
            .str());
  sort(found);
  return found;
}

int runCompile(CompileArguments arguments, const char *argv0) {
  PeakMemory peak;
  std::optional<Stage> emit = parseStage(arguments.emit);
  bool text = emit && *emit <= Stage::Asm;
  std::string output = arguments.output.empty() && text ? "-" : arguments.output;
  if (output.empty())
    return usage("-o FILE is required", "mica compile");
  if (output == "-" && (!text || arguments.json))
    return usage(text ? "--json needs -o FILE: both would go to stdout"
                      : "-o -: a binary cannot be written to standard output",
                 "mica compile");
  Expected<cpu::CompileOptions> options = arguments.model.resolve();
  if (!options)
    return report("--target", options.takeError());
  Expected<std::optional<cpu::ObjectCache>> objects = cpu::ObjectCache::fromEnvironment();
  if (!objects)
    return report(objects.takeError());
  options->objects = std::move(*objects);
  options->emit = *emit;
  options->ranks = arguments.ranks;
  if (std::string why = whyNotCalibrated(arguments, *options); !why.empty())
    return usage(why, "mica compile");
  if (arguments.model.mtp && arguments.ranks > 1)
    return usage(
        "--keep-mtp: drafts of several ranks are not supported; leave --keep-mtp or --shard out",
        "mica compile");
  options->dumpFolder = arguments.dumpFolder;
  if (*emit == Stage::Exe) {
    Expected<std::string> launcher = launcherPath(argv0);
    if (!launcher)
      return report(launcher.takeError());
    options->launcher = *launcher;
  }
  std::string launcher = options->launcher;
  cpu::TargetDescription target = options->target;
  Expected<std::string> model = modelPath(arguments.model.model);
  if (!model)
    return report(arguments.model.model, model.takeError());
  arguments.model.model = std::move(*model);
  Expected<CompileResult> result =
      compileModel(arguments.model, std::move(*options), output,
                   arguments.verbose ? Messages::Verbose : Messages::Default,
                   importanceFor(arguments, launcher));
  if (!result)
    return report(arguments.model.model, result.takeError(),
                  {output, arguments.dumpFolder, arguments.calibrate, arguments.imatrix});
  std::vector<std::string> plugins;
  if (*emit == Stage::Exe && arguments.ranks > 1)
    if (Error failed = copyMpiPlugins(launcher, output).moveInto(plugins))
      return report(std::move(failed));
  if (arguments.verbose)
    printStages(result->report, peak.bytes());
  if (!arguments.json && output != "-")
    errs() << lastLine(arguments, *result, target, std::move(plugins)) << "\n";
  return arguments.json ? printReport(*result, output, peak.bytes()) : kDone;
}

} // namespace mica::tool
