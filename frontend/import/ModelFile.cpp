#include "frontend/import/ModelFile.h"

#include "frontend/support/InputError.h"
#include "frontend/support/MappedFile.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/ModelDescription.h"
#include "ir/Mica/Shard.h"
#include "ir/Mica/TensorPart.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace mica {
namespace {

constexpr size_t maxBytes = 256u << 20;
constexpr unsigned maxDepth = 200;

/// The nesting depth of brackets in `text`, outside of strings and comments. MLIR's parser is
/// recursive, so a malicious file could exhaust the stack.
unsigned depthOf(llvm::StringRef text) {
  unsigned depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
    } else if (c == '/' && text.substr(i).starts_with("//")) {
      i = text.find('\n', i);
      if (i == llvm::StringRef::npos)
        break;
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ')' || c == ']' || c == '}' || c == '>') && depth > 0) {
      depth -= c != '>' || i == 0 || text[i - 1] != '-'; // not a closing bracket if part of an
                                                         // arrow
    }
  }
  return deepest;
}

llvm::Error checkText(llvm::StringRef path, llvm::StringRef text) {
  if (text.size() > maxBytes)
    return inputError(path,
                      "is larger than the " + llvm::Twine(maxBytes) + " bytes that IR may have",
                      hints::correct);
  if (text.starts_with("ML\xefR"))
    return inputError(path, "is MLIR bytecode", "write the IR as text");
  if (depthOf(text) > maxDepth)
    return inputError(path, "nests brackets deeper than " + llvm::Twine(maxDepth) + " levels",
                      hints::correct);
  return llvm::Error::success();
}

/// The stage after `model` whose attributes the module has; empty: none.
llvm::StringRef laterStageOf(ModuleOp module) {
  auto holds = [&](llvm::function_ref<bool(Operation *)> test) {
    auto stop = [&](Operation *op) {
      return test(op) ? WalkResult::interrupt() : WalkResult::advance();
    };
    return module.walk(stop).wasInterrupted();
  };
  auto isOf = [](llvm::StringRef dialect) {
    return [=](Operation *op) { return op->getName().getDialectNamespace() == dialect; };
  };
  if (holds(isOf("llvm")))
    return "llvm";
  if (holds(isOf("memref")))
    return "loops";
  if (holds([](Operation *op) {
        auto weight = dyn_cast<WeightOp>(op);
        return weight && (weight.getOffset() || weight.getTensorType().getEncoding());
      }))
    return "kernels";
  return holds([](Operation *op) { return op->hasTrait<MadeByFusion>(); }) ? "fused" : "";
}

/// For unregistered dialects, MLIR suggests an option of mlir-opt, which would not help: they
/// cannot be compiled.
std::string withoutAdvice(llvm::StringRef message) {
  auto [fact, advice] = message.split(". If this is intended");
  if (advice.empty())
    return message.str();
  return (fact + ", and only Mica's and upstream's dialects are supported").str();
}

llvm::Error checkStage(ModuleOp module, llvm::StringRef path) {
  constexpr llvm::StringLiteral hint = "use IR written by `mica compile --emit model`";
  if (llvm::StringRef stage = laterStageOf(module); !stage.empty())
    return inputError(path, "looks like stage " + stage + ", but is expected at stage model",
                      hint + " or lower this file with mica-opt");
  if (!module->getAttrOfType<DictionaryAttr>(kModelAttr))
    return inputError(path, "is not stage model (no attribute mica.model)", hint);
  if (!module.lookupSymbol<func::FuncOp>("main"))
    return inputError(path, "is not stage model (no @main)", hint);
  // What would be compiled is a program of one rank, with some of the weights.
  if (module->hasAttr(kRanksAttr))
    return inputError(path, "is partitioned for several ranks, but is expected as a whole", hint);
  return llvm::Error::success();
}

/// Records the names of arguments in the text, so that they are printed with the same names: see
/// ir/Mica/Names.h.
void nameArguments(func::FuncOp function, const AsmParserState &text) {
  const AsmParserState::BlockDefinition *entry =
      function.isExternal() ? nullptr : text.getBlockDef(&function.front());
  if (!entry)
    return;
  for (auto [argument, definition] : llvm::zip(function.getArguments(), entry->arguments)) {
    llvm::SMRange range = definition.loc;
    llvm::StringRef name(range.Start.getPointer(),
                         range.End.getPointer() - range.Start.getPointer());
    auto called = StringAttr::get(function.getContext(), name.ltrim('%'));
    argument.setLoc(NameLoc::get(called, argument.getLoc()));
  }
}

llvm::StringRef storedNameOf(Type element) {
  return element.isF32() ? "F32" : element.isBF16() ? "BF16" : "F16";
}

/// The required number of rows of each source is known only for a single source and for stacks;
/// for concatenations, only the sum is known.
llvm::Error matchSource(WeightOp weight, const WeightFiles &weights, const TensorPart &source,
                        llvm::ArrayRef<int64_t> shape) {
  auto tensor = findSource(weights, source, shape);
  if (!tensor)
    return tensor.takeError();
  llvm::StringRef wanted = storedNameOf(weight.getTensorType().getElementType());
  if (nameOf((*tensor)->type) != wanted)
    return inputError(weights.pathOf(**tensor),
                      "tensor " + inQuotes(source.text()) + " has the type " +
                          nameOf((*tensor)->type) + ", but the IR says " + wanted,
                      "correct the IR or download the weights that belong to it");
  return llvm::Error::success();
}

/// Sources that are concatenated along the rows: they must have the columns of the weight, and
/// their rows must add up to its rows.
llvm::Error matchConcat(WeightOp weight, const WeightFiles &weights) {
  llvm::ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  int64_t rows = 0;
  for (Attribute named : weight.getSourceList()) {
    TensorPart source = TensorPart::of(named);
    const TensorInfo *tensor = weights.find(source.tensor);
    llvm::SmallVector<int64_t> expected(shape);
    if (auto found = tensor ? source.shapeIn(tensor->shape) : std::nullopt)
      expected.front() = found->front();
    if (llvm::Error error = matchSource(weight, weights, source, expected))
      return error;
    rows += expected.front();
  }
  if (rows != shape.front())
    return inputError(weights.folder(),
                      "the sources of " + inQuotes(weight.getSymName()) + " have " +
                          llvm::Twine(rows) + " rows, but the IR says " +
                          llvm::Twine(shape.front()),
                      "correct the IR or download the weights that belong to it");
  return llvm::Error::success();
}

llvm::Error matchWeight(WeightOp weight, const WeightFiles &weights) {
  llvm::ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  auto compose = weight.getCompose();
  if (compose == Compose::Interleave || weight.getParts() != 1 ||
      weight.getTensorType().getEncoding())
    return inputError(weights.folder(),
                      "the weight " + inQuotes(weight.getSymName()) +
                          " is interleaved or packed, which is not stage model",
                      "correct the IR");
  if (compose == Compose::Concat && !shape.empty())
    return matchConcat(weight, weights);
  if (compose == Compose::Stack)
    shape = shape.drop_front();
  for (Attribute source : weight.getSourceList())
    if (llvm::Error error = matchSource(weight, weights, TensorPart::of(source), shape))
      return error;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> parseModelFile(MLIRContext &context, llvm::StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::StringRef text = llvm::toStringRef(file->bytes());
  if (llvm::Error error = checkText(path, text))
    return std::move(error);
  context.loadDialect<MicaDialect, func::FuncDialect, arith::ArithDialect, tensor::TensorDialect>();
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, path), llvm::SMLoc());
  FirstDiagnostic diagnostics(&context);
  Block parsed;
  AsmParserState names;
  if (failed(parseAsmSourceFile(source, &parsed, ParserConfig(&context), &names)))
    // No test: a parser that fails reports why; these words are used only if it does not.
    return inputError(diagnostics.place(path),
                      withoutAdvice(diagnostics.message("is not an MLIR module")),
                      "correct the IR");
  auto module = parsed.empty() ? ModuleOp() : dyn_cast<ModuleOp>(parsed.front());
  if (!module || !llvm::hasSingleElement(parsed))
    return inputError(path, "is not an MLIR module", "correct the IR");
  if (llvm::Error error = checkStage(module, path))
    return std::move(error);
  for (auto function : module.getOps<func::FuncOp>())
    nameArguments(function, names);
  module->remove();
  return OwningOpRef<ModuleOp>(module);
}

llvm::Expected<std::vector<IgnoredTensor>> matchModule(ModuleOp module,
                                                       const WeightFiles &weights) {
  llvm::StringSet<> used;
  for (WeightOp weight : module.getOps<WeightOp>()) {
    if (llvm::Error error = matchWeight(weight, weights))
      return std::move(error);
    for (Attribute source : weight.getSourceList()) {
      std::string name = TensorPart::of(source).tensor;
      used.insert(name);
      const TensorInfo *tensor = weights.find(name);
      if (const TensorInfo *scales = tensor ? weights.scalesOf(*tensor) : nullptr)
        used.insert(scales->name);
    }
  }
  std::vector<IgnoredTensor> ignored;
  for (const TensorInfo &tensor : weights.tensors())
    if (!used.contains(tensor.name))
      ignored.push_back({tensor.name, "not referenced by the IR"});
  llvm::sort(ignored,
             [](const IgnoredTensor &a, const IgnoredTensor &b) { return a.name < b.name; });
  return ignored;
}

} // namespace mica
