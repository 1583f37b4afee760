//===- CompileModel.cpp - from MODEL to a program, with its messages ------===//

#include "tools/mica/CompileModel.h"
#include "backends/cpu/driver/DescribeProgram.h"
#include "backends/runtime/support/Report.h"
#include "frontend/config/gguf/GgufTensors.h"
#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/text/chat/ReadChat.h"
#include "frontend/text/tokenizer/ReadTokenizer.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"
#include "passes/support/Weights.h"
#include "tools/mica/CompileSteps.h"
#include "tools/mica/FileWeights.h"
#include "tools/mica/ModelFiles.h"
#include "tools/support/Support.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

using namespace llvm;

namespace mica::tool {

/// Adds start and end tokens that are only in the tokenizer's files.
static void addTokens(mlir::ModuleOp module, const TokenizerTable &table) {
  auto model = module->getAttrOfType<mlir::DictionaryAttr>(kModelAttr);
  mlir::NamedAttrList entries(model);
  mlir::Builder builder(module.getContext());
  auto eos = dyn_cast_or_null<mlir::ArrayAttr>(entries.get("eos"));
  if (!entries.get("bos") && table.bosId)
    entries.set("bos", builder.getI64IntegerAttr(*table.bosId));
  if ((!eos || eos.empty()) && table.eosId)
    entries.set("eos", builder.getArrayAttr(builder.getI64IntegerAttr(*table.eosId)));
  module->setAttr(kModelAttr, entries.getDictionary(module.getContext()));
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
                "the first is \"{4}\"; prompts with {5} will be rejected",
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
                      "); `chat` and --chat of the program will not work");
  if (forTools && !forTools->unusable.empty())
    rt::reportWarning(forTools->file + ": the chat template for tools cannot be run (" +
                      forTools->unusable + "); the program will not accept tools");
  if (!(*chat)->leftOut.empty())
    rt::reportWarning((*chat)->file + ": the chat templates \"" +
                      join((*chat)->leftOut, "\" and \"") +
                      "\" are ignored; programs support \"default\", and \"tool_use\" for tools");
  return isUsable;
}

/// Warns about settings of the model that the program ignores.
static void warnUnsupported(const ModelInput &input) {
  for (const IgnoredKey &key : input.ignoredKeys)
    if (key.missed)
      rt::reportWarning(
          formatv("{0}: \"{1}\" is ignored; it {2}", key.file, key.key, key.reason).str());
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
                      "; the program only accepts token ids (--tokens), no text and no chat");
}

/// Whether weights are stored in blocks.
static bool hasBlocks(const ModelInput &input) {
  mlir::ModuleOp module = input.module.get();
  return any_of(module.getOps<WeightOp>(), [](WeightOp weight) { return !!weight.getStored(); });
}

/// Whether `--weights` converts block-quantized weights to another format.
static bool isConverted(const ModelInput &input, const ModelArguments &arguments) {
  return precisionNamed(arguments.weights) && hasBlocks(input);
}

/// The cost of converting blocks; empty if there is none.
static std::string costOfConversion(Precision asked, bool hasInt8Rows,
                                    ActivationStatistics statistics) {
  const PrecisionCosts &known = costsOf(asked, CheckpointKind::Blocks);
  std::string cost = known.textOf(statistics, hasInt8Rows);
  if (statistics == ActivationStatistics::None && !known.calibrated.exactRows.empty())
    cost +=
        " (" + known.textOf(ActivationStatistics::Calibrated, hasInt8Rows) + " with --calibrate)";
  return cost;
}

void warnAboutConversion(const ModelInput &input, const ModelArguments &arguments,
                         ActivationStatistics statistics) {
  if (!isConverted(input, arguments))
    return;
  Precision asked = *precisionNamed(arguments.weights);
  bool hasInt8Rows = promptRowsNamed(arguments.rows) == PromptRows::Int8;
  std::string cost = costOfConversion(asked, hasInt8Rows, statistics);
  // f32 keeps their precision.
  if (cost.empty())
    return;
  rt::reportWarning(formatv("{0}: --weights {1} {2} block-quantized weights; on {3}, this costs a "
                            "KL divergence of {4}, see docs/quality.md; leave --weights out to "
                            "preserve the blocks",
                            input.folder, nameOf(asked),
                            isInteger(asked) ? "requantizes" : "expands",
                            measuredModelOf(CheckpointKind::Blocks), cost)
                        .str());
}

void warnAboutRows(const ModelArguments &arguments, bool hasBlocks) {
  if (promptRowsNamed(arguments.rows) == PromptRows::Int8 && !hasBlocks)
    rt::reportWarning(arguments.model + ": --rows int8 has no effect: the program has no "
                                        "block-quantized weights");
}

namespace {
/// A type of floats that bf16 rounds.
struct RoundedType {
  StringLiteral name;
  int significantBits;
  bool (mlir::Type::*is)() const;
};
constexpr RoundedType kRoundedTypes[] = {{"F16", 11, &mlir::Type::isF16},
                                         {"F32", 24, &mlir::Type::isF32}};
} // namespace

/// The number of the checkpoint's tensors of each type that become bf16: the matrices that are not
/// stored in blocks, except for routers.
static SmallVector<std::pair<RoundedType, int64_t>> roundedTensors(const ModelInput &input,
                                                                   Precision weights) {
  if (weights != Precision::BF16)
    return {};
  SmallVector<WeightOp> matrices =
      weightsUsedAs(input.module.get(), {WeightUse::Product, WeightUse::Table});
  SmallVector<std::pair<RoundedType, int64_t>> counts;
  for (const RoundedType &type : kRoundedTypes) {
    auto isRounded = [&](WeightOp weight) {
      return !weight.getStored() && (weight.getTensorType().getElementType().*type.is)();
    };
    if (int64_t count = cpu::countTensors(to_vector(make_filter_range(matrices, isRounded))))
      counts.push_back({type, count});
  }
  return counts;
}

/// Warns that matrices are rounded although no precision was requested.
static void warnOfRounding(const ModelInput &input, const RoundedType &type, int64_t count,
                           bool preservesBlocks) {
  rt::reportWarning(formatv("{0}: {1} matri{2} in {3} {4} rounded to bf16, which has 8 of {5} {6} "
                            "bits; --weights f32 keeps {5} precision, {7}",
                            input.folder, count, count == 1 ? "x" : "ces", type.name,
                            count == 1 ? "is" : "are", count == 1 ? "its" : "their",
                            type.significantBits,
                            preservesBlocks ? "but expands all blocks to f32" : "at twice the size")
                        .str());
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
  StringMap<GgufTensorRef> names;
  if (input.config && isGguf(input.folder) && !remarks.empty())
    names = ggufTensorRefs(*input.config);
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
  if (input.storage && options.weights && !options.preserveBlocks)
    errs() << formatv("{0}: most weights are {1} ({2:f2} bits each), the program's are {3}\n",
                      input.folder, input.storage->type, input.storage->bits,
                      nameOf(*options.weights));
  for (const IgnoredKey &key : input.ignoredKeys)
    errs() << key.file << ": \"" << key.key << "\" is ignored (reason: " << key.reason << ")\n";
  for (const IgnoredTensor &tensor : input.ignoredTensors)
    errs() << input.folder << ": tensor \"" << tensor.name
           << "\" is ignored (reason: " << tensor.reason << ")\n";
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
      readModel(context, arguments.model, program ? WeightsNeeded::Yes : WeightsNeeded::No,
                arguments.mtpHead());
  if (!input)
    return input.takeError();
  bar.hide();
  CompileResult result;
  cpu::ColumnImportance importance;
  if (findImportance) {
    Expected<FoundImportance> found = findImportance(*input);
    if (!found)
      return found.takeError();
    importance = std::move(found->columns);
    result.statistics = found->statistics;
    options.importance = &importance;
  }
  bool speaks = messages != Messages::None;
  result.isConverted = isConverted(*input, arguments);
  if (speaks)
    warnAboutConversion(*input, arguments, result.statistics);
  if (input->storage)
    cpu::chooseWeights(options, input->storage->bits);
  Precision weights = options.weights.value_or(cpu::checkpointPrecision(*input->module));
  for (const auto &[type, count] : roundedTensors(*input, weights)) {
    result.rounded.push_back(type.name.str());
    if (speaks && arguments.weights.empty())
      warnOfRounding(*input, type, count, hasBlocks(*input));
  }
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
  std::optional<FileWeights> file;
  if (input->weights)
    file.emplace(*input->weights);
  Expected<cpu::CompileReport> report =
      cpu::compile(*input->module, file ? &*file : nullptr, options, output);
  if (!report)
    return input->config && isGguf(input->folder) ? inGgufNames(report.takeError(), *input->config)
                                                  : report.takeError();
  bar.hide();
  result.hasBlocks = !report->preservedBlocks.empty() || isInteger(report->weights);
  if (speaks) {
    if (program)
      warnAboutRows(arguments, result.hasBlocks);
    warnAboutLength(arguments.model, *report);
    if (program && tokenizer.empty())
      warnAboutNoTokenizer(*input, arguments.model);
    reportRemarks(arguments.model, *input, report->remarks);
  }
  result.report = std::move(*report);
  result.ignored = std::move(input->ignoredTensors);
  result.source = input->storage ? input->storage->type : "";
  result.hasTokenizer = !tokenizer.empty();
  return result;
}

} // namespace mica::tool
