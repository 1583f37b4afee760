//===- Compile.cpp - mica compile -----------------------------------------===//

#include "backends/cpu/features/Cpu.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SizeText.h"
#include "frontend/config/gguf/GgufConfig.h"
#include "frontend/import/ModelInput.h"
#include "frontend/text/chat/ReadChat.h"
#include "frontend/text/tokenizer/ReadTokenizer.h"
#include "ir/Mica/EntrySignature.h"
#include "tools/mica/Calibrate.h"
#include "tools/mica/Commands.h"
#include "tools/mica/CompileSteps.h"
#include "tools/mica/CompileSummary.h"
#include "tools/mica/FileWeights.h"
#include "tools/mica/ModelFiles.h"
#include "tools/mica/PeakMemory.h"
#include "tools/support/Support.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

using namespace llvm;

namespace mica::tool {

void ModelArguments::addTo(CLI::App &app, const std::string &what) {
  command = &app;
  CLI::Option *positional = app.add_option("MODEL", model, what);
  app.add_option("-m,--model", model, "Same as MODEL")->type_name("MODEL")->excludes(positional);
  app.callback([this] {
    if (model.empty())
      throw CLI::RequiredError("MODEL");
  });
  rt::addGroup(app, kPrecisionGroup, [&] { addPrecision(app); });
  rt::addGroup(app, "Program", [&] {
    app.add_option("-c,--max-seq", maxSeq,
                   "Maximum sequence length (default: the model's own, at most 8192)")
        ->transform(rt::wholeNumber(1));
    app.add_option("--target", target, "Target CPU, by LLVM's name, or native")
        ->type_name("CPU")
        ->capture_default_str();
  });
}

void ModelArguments::addPrecision(CLI::App &app) {
  app.add_option("--weights", weights,
                 "Weight format: int8 has a scale per 32 weights, int4 a scale and an offset "
                 "(default: the checkpoint's own, f16 becomes bf16, blocks of GGUF files are "
                 "preserved; int8 and int4 requantize blocks, which loses precision)")
      ->type_name("FORMAT")
      ->check(rt::oneOf(precisionNames()));
  app.add_option("--kv", kv,
                 "KV cache format: int8 has a scale per head and position (default: f32 for f32 "
                 "weights, else bf16)")
      ->type_name("FORMAT")
      ->check(rt::oneOf(cachePrecisionNames()));
  app.add_option("--rows", rows,
                 "Activations multiplied by block-quantized weights in prefill: exact uses bf16; "
                 "int8 quantizes them to 8 bits per 32, which is faster and less precise "
                 "(default: exact)")
      ->type_name("FORMAT")
      ->check(rt::oneOf(promptRowsNames()));
}

std::string ModelArguments::givenOption() const {
  for (const char *name : {"--weights", "--kv", "--rows", "--max-seq", "--target"})
    if (command && command->count(name) > 0)
      return name;
  return {};
}

Expected<cpu::CompileOptions> ModelArguments::resolve() const {
  Expected<cpu::TargetDescription> description = cpu::describeTarget(target);
  if (!description)
    return description.takeError();
  cpu::CompileOptions options;
  options.target = std::move(*description);
  options.weights = precisionNamed(weights);
  options.kv = precisionNamed(kv);
  options.promptRows = promptRowsNamed(rows);
  if (maxSeq > 0)
    options.maxSeq = maxSeq;
  return options;
}

Expected<cpu::CompileOptions> programOptions(const ModelArguments &arguments, const char *argv0) {
  Expected<cpu::CompileOptions> options = arguments.resolve();
  if (!options)
    return options;
  Expected<std::string> launcher = launcherPath(argv0);
  if (!launcher)
    return launcher.takeError();
  options->launcher = *launcher;
  return options;
}

/// Adds start and end tokens that are only in the tokenizer's files.
static void addTokens(mlir::ModuleOp module, const TokenizerTable &table) {
  auto model = module->getAttrOfType<mlir::DictionaryAttr>("mica.model");
  mlir::NamedAttrList entries(model);
  mlir::Builder builder(module.getContext());
  auto eos = dyn_cast_or_null<mlir::ArrayAttr>(entries.get("eos"));
  if (!entries.get("bos") && table.bosId)
    entries.set("bos", builder.getI64IntegerAttr(*table.bosId));
  if ((!eos || eos.empty()) && table.eosId)
    entries.set("eos", builder.getArrayAttr(builder.getI64IntegerAttr(*table.eosId)));
  module->setAttr("mica.model", entries.getDictionary(module.getContext()));
}

/// Warns about tokens of the tokenizer that are outside the model's vocabulary: some published
/// models have them, and a prompt with one is rejected only when it is processed.
static void warnOfSurplus(mlir::ModuleOp module, const TokenizerTable &table, StringRef folder) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  int64_t vocabulary = main ? EntrySignature(main).vocabulary() : 0;
  if (vocabulary == 0)
    return;
  auto isSurplus = [&](const auto &token) { return token.id >= vocabulary; };
  int64_t count = count_if(table.addedTokens, isSurplus);
  if (count > 0)
    rt::reportWarning(
        formatv("{0}: the tokenizer has {1} added token{2} beyond the model's {3} ids, "
                "the first is \"{4}\": prompts with {5} will be rejected",
                folder, count, count > 1 ? "s" : "", vocabulary,
                find_if(table.addedTokens, isSurplus)->content, count > 1 ? "one of them" : "it")
            .str());
}

/// Adds the chat template; returns whether the program can run it. A model whose template cannot be
/// run is not rejected.
static Expected<bool> addChat(StringRef folder, cpu::CompileOptions &options, bool speaks) {
  Expected<std::optional<ChatDescription>> chat = readChat(folder);
  if (!chat)
    return chat.takeError();
  if (!*chat)
    return false;
  options.chatTemplate = std::move((*chat)->chatTemplate);
  options.specialTokens = std::move((*chat)->specialTokens);
  std::optional<NamedTemplate> &forTools = (*chat)->forTools;
  if (forTools)
    options.toolTemplate = std::move(forTools->text);
  bool isUsable = (*chat)->unusable.empty();
  if (!speaks)
    return isUsable;
  if (!(*chat)->unusable.empty())
    rt::reportWarning((*chat)->file + ": the chat template cannot be run (" + (*chat)->unusable +
                      "): `chat` and --chat of the program will not work");
  if (forTools && !forTools->unusable.empty())
    rt::reportWarning(forTools->file + ": the chat template for tools cannot be run (" +
                      forTools->unusable + "): the program will not accept tools");
  if (!(*chat)->leftOut.empty())
    rt::reportWarning((*chat)->file + ": the chat templates \"" +
                      join((*chat)->leftOut, "\" and \"") +
                      "\" are ignored: programs support \"default\", and \"tool_use\" for tools");
  return isUsable;
}

/// Warns about settings of the model that the program ignores.
static void warnUnsupported(const ModelInput &input) {
  for (const IgnoredKey &key : input.ignoredKeys)
    if (key.missed)
      rt::reportWarning(formatv("{0}: \"{1}\" {2}", key.file, key.key, key.reason).str());
}

/// Warns if the context exceeds the length for which frequencies are correct or attention was
/// trained.
static void warnAboutLength(StringRef model, const cpu::CompileReport &report) {
  if (report.scaledFor && report.maxSeq > *report.scaledFor)
    rt::reportWarning(formatv("{0}: the program supports {1} positions, but the model's rope "
                              "scaling is made for {2}; choose --max-seq {2}",
                              model, report.maxSeq, *report.scaledFor)
                          .str());
}

/// Warns that a program without a tokenizer accepts only ids. For a .mlir file this is intended.
static void warnAboutNoTokenizer(const ModelInput &input, StringRef model) {
  if (input.folder == model)
    rt::reportWarning(input.folder + ": " + reasonForNoTokenizer(input.folder) +
                      ": the program only accepts token ids (--tokens), no text and no chat");
}

/// Whether block-quantized weights are converted to another format.
static bool isRequantized(const ModelInput &input, const ModelArguments &arguments) {
  std::optional<Precision> asked = precisionNamed(arguments.weights);
  mlir::ModuleOp module = input.module.get();
  return input.storage && asked && isInteger(*asked) &&
         any_of(module.getOps<WeightOp>(), [](WeightOp weight) { return !!weight.getStored(); });
}

/// Warns that quantizing blocks a second time reduces precision.
static void warnAboutRequantizing(const ModelInput &input, Precision asked, bool calibrated) {
  const PrecisionCosts &known = costsOf(asked, CheckpointKind::Blocks);
  StringRef plain = known.weights, weighted = known.calibratedWeights;
  std::string cost = plain.str();
  if (calibrated)
    cost = weighted.empty() ? (plain + " without calibration").str() : weighted.str();
  else if (!weighted.empty())
    cost = (plain + ", or " + weighted + " with --calibrate").str();
  rt::reportWarning(formatv("{0}: --weights {1} requantizes weights that are stored in blocks: on "
                            "{2} this adds a KL divergence of {3} (docs/quality.md); leave "
                            "--weights out to preserve the blocks",
                            input.folder, nameOf(asked), measuredModelOf(CheckpointKind::Blocks),
                            cost)
                        .str());
}

/// Whether matrices are stored in F16, and none in blocks.
static bool isStoredInHalves(mlir::ModuleOp module) {
  auto isHalf = [](WeightOp weight) {
    return weight.getTensorType().getRank() > 1 && weight.getTensorType().getElementType().isF16();
  };
  return any_of(module.getOps<WeightOp>(), isHalf) &&
         none_of(module.getOps<WeightOp>(), [](WeightOp weight) { return !!weight.getStored(); });
}

/// Warns that F16 is converted to bf16 unless another precision is requested.
static void warnOfRounding(const ModelInput &input) {
  rt::reportWarning(input.folder + ": weights in F16 are rounded to bf16, which has 8 of their 11 "
                                   "bits: --weights f32 keeps all, at twice the size");
}

/// The tensor's name with a star for each number between dots: the same for all layers.
static std::string withoutNumbers(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (all_of(part, isDigit) && !part.empty())
      part = "*";
  return join(parts, ".");
}

void reportRemarks(StringRef model, const ModelInput &input, ArrayRef<PassRemark> remarks) {
  StringMap<GgufPlace> names;
  if (input.storage && input.config && !remarks.empty())
    names = ggufPlaces(*input.config);
  // One line for all layers.
  std::map<std::tuple<std::string, std::string, bool>, std::set<std::string>> lines;
  for (const PassRemark &remark : remarks) {
    auto known = names.find(remark.place);
    const std::string &place = known == names.end() ? remark.place : known->second.tensor;
    lines[{withoutNumbers(place), remark.text, remark.isWarning}].insert(place);
  }
  for (const auto &[line, places] : lines) {
    const auto &[pattern, text, isWarning] = line;
    std::string place =
        places.size() == 1 ? *places.begin() : formatv("{0} ({1})", pattern, places.size()).str();
    std::string message = place + ": " + text;
    // An IR location begins with its file.
    if (!StringRef(message).starts_with(model))
      message = (model + ": " + message).str();
    isWarning ? rt::reportWarning(message) : rt::reportNote(message);
  }
}

/// The approximate number of bytes of weights in a program.
static double expectedBytes(const ModelInput &input, const cpu::CompileOptions &options) {
  mlir::ModuleOp module = input.module.get();
  auto parameters = static_cast<double>(cpu::countParameters(module));
  if (options.preserveBlocks && input.storage)
    return parameters * input.storage->bits / 8;
  Precision weights = options.weights.value_or(cpu::checkpointPrecision(module));
  return parameters * storedBitsOf(weights) / 8;
}

static void listIgnored(const ModelInput &input, const cpu::CompileOptions &options) {
  if (input.storage && options.weights)
    errs() << formatv("{0}: most weights are {1} ({2:f2} bits each), the program's are {3}{4}\n",
                      input.folder, input.storage->type, input.storage->bits,
                      nameOf(*options.weights),
                      options.preserveBlocks ? "; blocks are preserved" : "");
  for (const IgnoredKey &key : input.ignoredKeys)
    errs() << key.file << ": \"" << key.key << "\" is ignored: " << key.reason << "\n";
  for (const IgnoredTensor &tensor : input.ignoredTensors)
    errs() << input.folder << ": tensor \"" << tensor.name << "\" is ignored: " << tensor.reason
           << "\n";
}

Expected<CompileResult> compileModel(const ModelArguments &arguments, cpu::CompileOptions options,
                                     StringRef output, Messages messages,
                                     FindImportance findImportance) {
  for (const cpu::OutputFile &file : cpu::outputsOf(options, output))
    if (Error error = protectModel(arguments.model, file.path, file.option))
      return error;
  if (Error error = cpu::checkOutput(options, output))
    return error;
  mlir::DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry);
  bool program = options.emit == Stage::Exe;
  ProgressBar bar;
  bar.show("reading the model", 0);
  Expected<ModelInput> input =
      readModel(context, arguments.model, program ? WeightsNeeded::Yes : WeightsNeeded::No);
  if (!input)
    return input.takeError();
  bar.hide();
  cpu::ColumnImportance importance;
  if (findImportance) {
    Expected<cpu::ColumnImportance> found = findImportance(*input);
    if (!found)
      return found.takeError();
    importance = std::move(*found);
    options.importance = &importance;
  }
  bool speaks = messages != Messages::None;
  CompileResult result;
  result.isRequantized = isRequantized(*input, arguments);
  result.isStoredInHalves = isStoredInHalves(*input->module);
  if (speaks && result.isRequantized)
    warnAboutRequantizing(*input, *options.weights, findImportance != nullptr);
  if (speaks && result.isStoredInHalves && arguments.weights.empty())
    warnOfRounding(*input);
  if (input->storage)
    cpu::chooseWeights(options, input->storage->bits);
  if (messages == Messages::Verbose)
    listIgnored(*input, options);
  std::vector<std::byte> tokenizer;
  if (program) {
    if (speaks)
      warnUnsupported(*input);
    Expected<std::optional<TokenizerTable>> table = readTokenizer(input->folder);
    if (!table)
      return table.takeError();
    if (*table) {
      addTokens(*input->module, **table);
      tokenizer = (*table)->serialize();
      if (speaks)
        warnOfSurplus(*input->module, **table, input->folder);
      Expected<bool> added = addChat(input->folder, options, speaks);
      if (!added)
        return added.takeError();
      result.hasChat = *added;
    }
  }
  options.tokenizer = tokenizer;
  CompileSteps steps(expectedBytes(*input, options));
  options.progress = [&](const cpu::CompileProgress &progress) {
    bar.show(steps.describe(progress), steps.shareOf(progress));
  };
  std::optional<FileWeights> weights;
  if (input->weights)
    weights.emplace(*input->weights);
  Expected<cpu::CompileReport> report =
      cpu::compile(*input->module, weights ? &*weights : nullptr, options, output);
  if (!report)
    return input->storage && input->config ? inGgufNames(report.takeError(), *input->config)
                                           : report.takeError();
  bar.hide();
  if (speaks) {
    warnAboutLength(arguments.model, *report);
    if (program && tokenizer.empty())
      warnAboutNoTokenizer(*input, arguments.model);
    reportRemarks(arguments.model, *input, report->remarks);
  }
  result.report = std::move(*report);
  result.ignored = std::move(input->ignoredTensors);
  result.source = input->storage ? input->storage->type : result.isStoredInHalves ? "F16" : "";
  result.hasTokenizer = !tokenizer.empty();
  return result;
}

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
                       {"left_out", std::move(ignored)},
                       {"weight_bytes", static_cast<int64_t>(report.weightBytes)},
                       {"packing_threads", static_cast<int64_t>(report.packingThreads)},
                       {"peak_anonymous_bytes", static_cast<int64_t>(peak)},
                       {"version", MICA_VERSION}};
  if (report.maxSeq > 0) {
    written["max_seq"] = report.maxSeq;
    written["cache_bytes_per_token"] = report.cacheBytesPerToken;
    written["cache_bytes"] = report.cacheBytes;
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
  if (result.maxSeq > 0)
    errs() << formatv("KV cache: {0} per token, {1} for all {2} positions\n",
                      rt::bytesText(static_cast<double>(result.cacheBytesPerToken)),
                      rt::bytesText(static_cast<double>(result.cacheBytes)), result.maxSeq);
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
  return nullptr;
}

/// The reason why the given activation statistics are not used; empty if they are.
static std::string whyNotCalibrated(const CompileArguments &arguments,
                                    const cpu::CompileOptions &options) {
  std::string option = arguments.calibrate.empty() ? "--imatrix" : "--calibrate";
  if (arguments.calibrate.empty() && arguments.imatrix.empty())
    return {};
  if (!isInteger(options.weights.value_or(Precision::F32)))
    return option + " needs --weights int8 or int4: other weights are not quantized";
  return options.emit == Stage::Exe ? ""
                                    : option + " needs --emit exe: weights are in programs only";
}

/// The final message.
static std::string lastLine(const CompileArguments &arguments, const CompileResult &result,
                            const cpu::TargetDescription &target) {
  const cpu::CompileReport &report = result.report;
  const cpu::StageReport &last = report.stages.back();
  if (last.stage != Stage::Exe)
    return rt::printable(formatv("wrote {0} ({1}, stage {2})", arguments.output,
                                 rt::bytesText(static_cast<double>(last.bytes)), arguments.emit)
                             .str());
  bool hasBlocks = !report.preservedBlocks.empty() || isInteger(report.weights);
  return CompileSummary{.output = arguments.output,
                        .bytes = last.bytes,
                        .preservedBlocks = report.preservedBlocks,
                        .weights = report.weights,
                        .kv = report.kv,
                        .source = result.source,
                        .isRequantized = result.isRequantized,
                        .isCalibrated = !arguments.calibrate.empty() || !arguments.imatrix.empty(),
                        .hasInt8Rows = hasBlocks && report.promptRows == PromptRows::Int8,
                        .hasTokenizer = result.hasTokenizer,
                        .hasChat = result.hasChat,
                        .foreignTarget =
                            rt::checkCpu(target.cpu, target.features) ? "" : target.cpu}
      .toText();
}

int runCompile(CompileArguments arguments, const char *argv0) {
  PeakMemory peak;
  std::optional<Stage> emit = parseStage(arguments.emit);
  bool text = emit && *emit <= Stage::Asm;
  std::string output = arguments.output.empty() && text ? "-" : arguments.output;
  if (output.empty())
    return usage("--emit " + arguments.emit + " needs -o FILE", "mica compile");
  if (output == "-" && (!text || arguments.json))
    return usage(text ? "--json needs -o FILE: both would go to stdout" : "a binary needs -o FILE",
                 "mica compile");
  Expected<cpu::CompileOptions> options = arguments.model.resolve();
  if (!options)
    return report("--target", options.takeError());
  options->emit = *emit;
  if (std::string why = whyNotCalibrated(arguments, *options); !why.empty())
    return usage(why, "mica compile");
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
  if (arguments.verbose)
    printStages(result->report, peak.bytes());
  if (!arguments.json && output != "-")
    errs() << lastLine(arguments, *result, target) << "\n";
  return arguments.json ? printReport(*result, output, peak.bytes()) : kDone;
}

} // namespace mica::tool
