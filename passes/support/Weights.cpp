//===- Weights.cpp - composed weights and uses of weights -----------------===//

#include "passes/support/Weights.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mica;

WeightUse mica::classifyWeightUse(OpOperand &operand) {
  Value value = operand.get();
  auto when = [](bool condition, WeightUse use) { return condition ? use : WeightUse::None; };
  auto vectorOf = [&](ArrayRef<Value> vectors) {
    return when(llvm::is_contained(vectors, value), WeightUse::Vector);
  };
  return TypeSwitch<Operation *, WeightUse>(operand.getOwner())
      .Case([&](GathersRows op) { return when(value == op.getTable(), WeightUse::Table); })
      .Case([&](MultipliesRows op) {
        return llvm::is_contained(allMatricesOf(op), value) ? WeightUse::Product
                                                            : vectorOf(op.getBiases());
      })
      .Case([&](RoutesRows op) {
        return value == op.getGate() ? WeightUse::Router : vectorOf(op.getVectors());
      })
      .Case([&](ReadsVectors op) { return vectorOf(op.getVectors()); })
      .Default(WeightUse::None);
}

SmallVector<Value> mica::allMatricesOf(MultipliesRows product) {
  SmallVector<Value> matrices = product.getMatrices();
  llvm::append_range(matrices, product.getInnerMatrices());
  return matrices;
}

Value mica::multipliedRows(OpOperand &weight) {
  auto product = dyn_cast<MultipliesRows>(weight.getOwner());
  return product && llvm::is_contained(product.getMatrices(), weight.get())
             ? product.getMultipliedRows().get()
             : Value();
}

WeightOp mica::lookupWeight(Value value, const SymbolTable &symbols) {
  auto get = value.getDefiningOp<GetWeightOp>();
  return get ? symbols.lookup<WeightOp>(get.getWeightAttr().getAttr()) : WeightOp();
}

WeightProperty::WeightProperty(ModuleOp module, StringRef what)
    : module(module), what(what), symbols(module) {
  module.walk(
      [&](GetWeightOp get) { gets[get.getWeightAttr().getAttr()].push_back(get.getResult()); });
  module.walk([&](func::CallOp call) { calls[call.getCalleeAttr().getAttr()].push_back(call); });
}

LogicalResult WeightProperty::require(Value value, Attribute property, Operation *user) {
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    auto [known, isNew] = properties.insert({next, property});
    if (!isNew && known->second != property)
      return user->emitOpError() << "needs " << what << " " << property
                                 << " in a weight, but another use of it needs " << known->second;
    if (isNew)
      appendSame(next, open);
  }
  return success();
}

llvm::SetVector<Value> WeightProperty::sameAs(Value value) {
  llvm::SetVector<Value> found;
  SmallVector<Value> open{value};
  while (!open.empty())
    if (Value next = open.pop_back_val(); found.insert(next))
      appendSame(next, open);
  return found;
}

WeightOp WeightProperty::symbolOf(Value value) { return lookupWeight(value, symbols); }

SmallVector<WeightOp> mica::weightsUsedAs(ModuleOp module, ArrayRef<WeightUse> uses) {
  llvm::SetVector<Operation *> found;
  WeightProperty weights(module, "uses of");
  module.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (llvm::is_contained(uses, classifyWeightUse(operand)))
        for (Value same : weights.sameAs(operand.get()))
          if (WeightOp weight = weights.symbolOf(same))
            found.insert(weight);
  });
  return llvm::map_to_vector(found, [](Operation *op) { return cast<WeightOp>(op); });
}

void WeightProperty::appendSame(Value value, SmallVectorImpl<Value> &open) {
  if (auto get = value.getDefiningOp<GetWeightOp>())
    llvm::append_range(open, gets[get.getWeightAttr().getAttr()]);
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      for (func::CallOp call : calls[function.getSymNameAttr()])
        open.push_back(call.getOperand(argument.getArgNumber()));
  for (OpOperand &use : value.getUses())
    if (auto call = dyn_cast<func::CallOp>(use.getOwner()))
      if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
          callee && !callee.isExternal())
        open.push_back(callee.getArgument(use.getOperandNumber()));
}

void WeightProperty::apply(
    llvm::function_ref<RankedTensorType(RankedTensorType, Attribute)> convert) {
  for (auto [value, property] : properties) {
    RankedTensorType type = convert(cast<RankedTensorType>(value.getType()), property);
    value.setType(type);
    if (WeightOp weight = lookupWeight(value, symbols))
      weight.setType(type);
  }
  module.walk(updateFunctionType);
}

/// The function that has all of `weights` as arguments, or null.
static func::FuncOp getFunctionOf(ValueRange weights) {
  Block *entry = nullptr;
  for (Value weight : weights) {
    auto argument = dyn_cast<BlockArgument>(weight);
    if (!argument || (entry && argument.getOwner() != entry))
      return {};
    entry = argument.getOwner();
  }
  return entry && entry->isEntryBlock() ? dyn_cast<func::FuncOp>(entry->getParentOp())
                                        : func::FuncOp();
}

StringRef WeightComposer::rejectionReason(ValueRange weights, Composition composition) {
  func::FuncOp function = getFunctionOf(weights);
  if (!function)
    return "a weight is not an argument of the function";
  if (llvm::any_of(weights, [](Value weight) { return !weight.hasOneUse(); }))
    return "a weight has another use";
  auto calls = findCalls(function);
  if (!calls)
    return "the function may be called from elsewhere";
  for (func::CallOp call : *calls)
    if (StringRef reason = rejectionReasonAtCall(call, weights, composition); !reason.empty())
      return reason;
  return {};
}

StringRef WeightComposer::rejectionReasonAtCall(func::CallOp call, ValueRange weights,
                                                Composition composition) {
  std::optional<size_t> entries;
  std::optional<ShardAttr> shard;
  for (Value weight : weights) {
    WeightOp part =
        lookupWeight(call.getOperand(cast<BlockArgument>(weight).getArgNumber()), symbols);
    if (!part)
      return "a call passes something other than a weight";
    if (shard && *shard != part.getShardAttr())
      return "the weights are partitioned differently";
    shard = part.getShardAttr();
    Compose how = part.getCompose().value_or(Compose::Concat);
    size_t sources = part.getSourceList().size();
    if (composition == Composition::Concat && how != Compose::Concat)
      return "a weight is composed in another way already";
    if (composition == Composition::Interleave && sources != 1)
      return "a weight is composed already";
    if (composition == Composition::StackInterleave) {
      if (how != Compose::Stack || part.getParts() != 1)
        return "a weight is not a stack of matrices";
      if (entries && *entries != sources)
        return "the stacks have different numbers of matrices";
      entries = sources;
    }
  }
  return {};
}

/// The sources of the composition: part by part, or entry by entry for stacks.
static SmallVector<Attribute> composeSources(ArrayRef<WeightOp> parts, Composition composition) {
  SmallVector<SmallVector<Attribute>> sources;
  for (WeightOp part : parts)
    sources.push_back(part.getSourceList());
  SmallVector<Attribute> result;
  if (composition != Composition::StackInterleave) {
    for (ArrayRef<Attribute> own : sources)
      llvm::append_range(result, own);
    return result;
  }
  for (size_t entry = 0; entry < sources.front().size(); ++entry)
    for (ArrayRef<Attribute> own : sources)
      result.push_back(own[entry]);
  return result;
}

WeightOp WeightComposer::composeSymbols(OpBuilder &builder, ArrayRef<WeightOp> inputs,
                                        Composition composition, RankedTensorType type) {
  SmallVector<Attribute> key;
  SmallVector<StringRef> names;
  SmallVector<Location> locations;
  for (WeightOp part : inputs) {
    parts.insert(part);
    key.push_back(FlatSymbolRefAttr::get(part.getSymNameAttr()));
    names.push_back(part.getSymName());
    locations.push_back(part.getLoc());
  }
  key.push_back(builder.getI64IntegerAttr(static_cast<int64_t>(composition)));
  WeightOp &result = composed[builder.getArrayAttr(key)];
  if (result)
    return result;
  bool stacked = composition == Composition::StackInterleave;
  Compose how = stacked                                  ? Compose::Stack
                : composition == Composition::Interleave ? Compose::Interleave
                                                         : Compose::Concat;
  ShardAttr shard = WeightOp(inputs.front()).getShardAttr();
  OpBuilder detached(builder.getContext());
  result = WeightOp::create(
      detached, builder.getFusedLoc(locations), composeNames(names), type,
      builder.getArrayAttr(composeSources(inputs, composition)),
      ComposeAttr::get(builder.getContext(), how), stacked ? inputs.size() : 1,
      /*offset=*/IntegerAttr(), /*bytes=*/IntegerAttr(), /*stored=*/TypeAttr(), shard);
  // Next to its parts, so that the weights of a layer stay together; renamed if the name is taken.
  symbols.insert(result, Block::iterator(inputs.front()));
  return result;
}

/// The fused locations of `weights`, with the name that their composition has.
static Location composeLocations(Builder &builder, ValueRange weights) {
  SmallVector<Location> locations;
  SmallVector<StringRef> names;
  for (Value weight : weights) {
    locations.push_back(weight.getLoc());
    if (auto name = weight.getLoc()->findInstanceOf<NameLoc>())
      names.push_back(name.getName());
  }
  Location all = builder.getFusedLoc(locations);
  return names.size() == weights.size()
             ? NameLoc::get(builder.getStringAttr(composeNames(names)), all)
             : all;
}

BlockArgument WeightComposer::compose(RewriterBase &rewriter, ValueRange weights,
                                      Composition composition, RankedTensorType type) {
  func::FuncOp function = getFunctionOf(weights);
  SmallVector<func::CallOp> calls = *findCalls(function);
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Value> values;
  for (func::CallOp call : calls) {
    SmallVector<WeightOp> inputs;
    SmallVector<Location> locations;
    for (Value weight : weights) {
      Value operand = call.getOperand(cast<BlockArgument>(weight).getArgNumber());
      inputs.push_back(lookupWeight(operand, symbols));
      locations.push_back(operand.getLoc());
    }
    WeightOp weight = composeSymbols(rewriter, inputs, composition, type);
    rewriter.setInsertionPoint(call);
    values.push_back(
        GetWeightOp::create(rewriter, rewriter.getFusedLoc(locations), type, weight.getSymName()));
  }
  unsigned index = cast<BlockArgument>(weights.front()).getArgNumber();
  return insertArgument(rewriter, function, index, type, composeLocations(rewriter, weights), calls,
                        values);
}

void WeightComposer::eraseArguments(RewriterBase &rewriter, ValueRange weights) {
  func::FuncOp function = getFunctionOf(weights);
  llvm::BitVector indices(function.getNumArguments());
  for (Value weight : weights)
    indices.set(cast<BlockArgument>(weight).getArgNumber());
  mica::eraseArguments(rewriter, function, indices, *findCalls(function));
}

void WeightComposer::eraseUnusedWeights(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  module.walk([&](GetWeightOp get) { used.insert(get.getWeightAttr().getAttr()); });
  for (Operation *part : parts)
    if (!used.contains(cast<WeightOp>(part).getSymNameAttr()))
      symbols.erase(part);
  parts.clear();
}

/// "q_proj", "k_proj", "v_proj" => "qkv_proj"; "gate", "up" => "gate_up"; "wq", "wk" => "wqk".
static std::string joinWords(ArrayRef<StringRef> words) {
  StringRef first = words.front();
  size_t shortest = llvm::min_element(words, [](StringRef a, StringRef b) {
                      return a.size() < b.size();
                    })->size();
  size_t prefix = 0, suffix = 0;
  auto allHave = [&](auto charOf) {
    return llvm::all_of(words, [&](StringRef word) { return charOf(word) == charOf(first); });
  };
  while (prefix + 1 < shortest && allHave([&](StringRef word) { return word[prefix]; }))
    ++prefix;
  while (prefix + suffix + 1 < shortest &&
         allHave([&](StringRef word) { return word[word.size() - 1 - suffix]; }))
    ++suffix;
  auto middles = llvm::map_to_vector(
      words, [&](StringRef word) { return word.drop_front(prefix).drop_back(suffix); });
  bool letters = llvm::all_of(middles, [](StringRef middle) { return middle.size() == 1; });
  return (first.take_front(prefix) + llvm::join(middles, letters ? "" : "_") +
          first.take_back(suffix))
      .str();
}

std::string mica::composeNames(ArrayRef<StringRef> names) {
  SmallVector<SmallVector<StringRef>> parts;
  for (StringRef name : names)
    name.split(parts.emplace_back(), '.');
  auto sameSize = [&](auto &part) { return part.size() == parts.front().size(); };
  if (!llvm::all_of(parts, sameSize))
    return llvm::join(names, "+");
  SmallVector<std::string> words;
  for (size_t i = 0; i < parts.front().size(); ++i) {
    SmallVector<StringRef> column = llvm::map_to_vector(parts, [&](auto &part) { return part[i]; });
    words.push_back(llvm::all_equal(column) ? column.front().str() : joinWords(column));
  }
  return llvm::join(words, ".");
}
