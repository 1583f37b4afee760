//===- EntrySignature.cpp - arguments and results by their roles ----------===//

#include "ir/Mica/EntrySignature.h"

#include "ir/Mica/Mica.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mica;

static std::optional<EntryRole> roleNamed(Attribute attribute) {
  auto name = dyn_cast_if_present<StringAttr>(attribute);
  return name ? entryRoleNamed(name.getValue()) : std::nullopt;
}

/// Whether results may have a role of this kind; arguments may have any.
static bool isReturned(EntryKind kind) {
  return kind == EntryKind::State || kind == EntryKind::OutputRows || kind == EntryKind::TokenRows;
}

/// The names of roles of results or arguments, for messages: "logits, cache".
static std::string listRoles(bool ofResults) {
  SmallVector<StringRef> names;
  for (const EntryRoleInfo &info : kEntryRoles)
    if (!ofResults || isReturned(info.kind))
      names.push_back(info.name);
  return llvm::join(names, ", ");
}

/// Whether `type` is valid for `kind` at any stage up to `loops`.
static bool fits(Type type, EntryKind kind) {
  if (isa<SequenceState>(type))
    return kind == EntryKind::State;
  if (!isa<RankedTensorType, MemRefType>(type))
    return false;
  auto shaped = cast<ShapedType>(type);
  switch (kind) {
  case EntryKind::RowVector:
  case EntryKind::OutputVector:
    return shaped.getRank() == 1 && shaped.isDynamicDim(0) &&
           shaped.getElementType().isSignlessInteger(32);
  case EntryKind::State:
    return shaped.getRank() > 1 && !shaped.isDynamicDim(0);
  case EntryKind::Memory:
    return isa<MemRefType>(type) && shaped.getRank() == 1 && shaped.isDynamicDim(0) &&
           shaped.getElementType().isSignlessInteger(8);
  case EntryKind::OutputRows:
    return shaped.getRank() > 1 && shaped.isDynamicDim(0) && shaped.getNumDynamicDims() == 1;
  case EntryKind::TokenRows:
    return shaped.getRank() == 2 && shaped.isDynamicDim(0) && !shaped.isDynamicDim(1) &&
           shaped.getElementType().isF32();
  }
  llvm_unreachable("all kinds are handled above");
}

/// Describes the types that `fits` accepts.
static StringRef describeTypes(EntryKind kind) {
  switch (kind) {
  case EntryKind::RowVector:
  case EntryKind::OutputVector:
    return "tensor<?xi32> or memref<?xi32>";
  case EntryKind::State:
    return "a type of sequence state or a buffer with a static number of layers";
  case EntryKind::Memory:
    return "memref<?xi8>";
  case EntryKind::OutputRows:
    return "rows, such as tensor<?xVxf32>";
  case EntryKind::TokenRows:
    return "tensor<?xCxf32> or memref<?xCxf32>";
  }
  llvm_unreachable("all kinds are handled above");
}

std::optional<EntryRole> EntrySignature::argumentRole(unsigned index) const {
  return roleNamed(entry.getArgAttr(index, kEntryRoleAttr));
}

std::optional<EntryRole> EntrySignature::resultRole(unsigned index) const {
  return roleNamed(entry.getResultAttr(index, kEntryRoleAttr));
}

std::optional<EntryRole> EntrySignature::roleOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return std::nullopt;
  auto function = dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function ? EntrySignature(function).argumentRole(argument.getArgNumber()) : std::nullopt;
}

BlockArgument EntrySignature::argument(EntryRole role) const {
  for (BlockArgument argument : entry.getArguments())
    if (argumentRole(argument.getArgNumber()) == role)
      return argument;
  return {};
}

BlockArgument EntrySignature::rowVector() const {
  for (BlockArgument argument : entry.getArguments())
    if (std::optional<EntryRole> role = argumentRole(argument.getArgNumber());
        role && infoOf(*role).kind == EntryKind::RowVector)
      return argument;
  return {};
}

std::optional<unsigned> EntrySignature::result(EntryRole role) const {
  for (unsigned index = 0; index < entry.getNumResults(); ++index)
    if (resultRole(index) == role)
      return index;
  return std::nullopt;
}

static bool isState(std::optional<EntryRole> role) {
  return role && infoOf(*role).kind == EntryKind::State;
}

SmallVector<BlockArgument> EntrySignature::states() const {
  return llvm::filter_to_vector(entry.getArguments(), [&](BlockArgument argument) {
    return isState(argumentRole(argument.getArgNumber()));
  });
}

SmallVector<unsigned> EntrySignature::stateResults() const {
  return llvm::filter_to_vector(llvm::seq<unsigned>(entry.getNumResults()),
                                [&](unsigned index) { return isState(resultRole(index)); });
}

int64_t EntrySignature::vocabulary() const {
  std::optional<unsigned> logits = result(EntryRole::Logits);
  auto rows =
      logits ? dyn_cast<RankedTensorType>(entry.getResultTypes()[*logits]) : RankedTensorType();
  return rows ? rows.getShape().back() : 0;
}

static StringAttr attributeOf(MLIRContext *context, EntryRole role) {
  return StringAttr::get(context, infoOf(role).name);
}

void EntrySignature::setArgumentRole(unsigned index, EntryRole role) {
  entry.setArgAttr(index, kEntryRoleAttr, attributeOf(entry.getContext(), role));
}

void EntrySignature::setResultRole(unsigned index, EntryRole role) {
  entry.setResultAttr(index, kEntryRoleAttr, attributeOf(entry.getContext(), role));
}

void EntrySignature::eraseRoles() {
  auto name = StringAttr::get(entry.getContext(), kEntryRoleAttr);
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    entry.removeArgAttr(index, name);
  for (unsigned index = 0; index < entry.getNumResults(); ++index)
    entry.removeResultAttr(index, name);
}

LogicalResult EntrySignature::verifyComplete() const {
  auto fail = [&](StringRef what, unsigned index, bool ofResult) {
    return entry.emitOpError("@") << SymbolTable::getSymbolName(entry).getValue() << " has no "
                                  << kEntryRoleAttr << " on " << what << " #" << index
                                  << ", which says what it is: write {mica.role = \"ROLE\"} after "
                                     "its type, where ROLE is "
                                     "one of "
                                  << listRoles(ofResult);
  };
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    if (!argumentRole(index))
      return fail("argument", index, false);
  for (unsigned index = 0; index < entry.getNumResults(); ++index)
    if (!resultRole(index))
      return fail("result", index, true);
  return success();
}

static std::string renamedHintOf(Attribute role) {
  auto name = dyn_cast<StringAttr>(role);
  return name ? renamedHint(name.getValue()) : std::string();
}

static LogicalResult verifyRole(Operation *op, bool ofResult, unsigned index, Type type,
                                Attribute attribute, ArrayRef<Attribute> earlier) {
  StringRef what = ofResult ? "result" : "argument";
  if (SymbolTable::getSymbolVisibility(op) != SymbolTable::Visibility::Public)
    return op->emitOpError() << what << " #" << index << " has " << kEntryRoleAttr
                             << ", but only entry functions, which are public, have roles";
  std::optional<EntryRole> role = roleNamed(attribute);
  if (!role || (ofResult && !isReturned(infoOf(*role).kind)))
    return op->emitOpError() << what << " #" << index << " has " << kEntryRoleAttr << " = "
                             << attribute << ", expected one of " << listRoles(ofResult)
                             << renamedHintOf(attribute);
  if (!fits(type, infoOf(*role).kind))
    return op->emitOpError() << what << " #" << index << " has " << kEntryRoleAttr << " = "
                             << attribute << " and the type " << type << ", expected "
                             << describeTypes(infoOf(*role).kind);
  if (const auto *same = llvm::find(earlier, attribute);
      !infoOf(*role).isRepeated && same != earlier.end())
    return op->emitOpError() << what << " #" << index << " has " << kEntryRoleAttr << " = "
                             << attribute << ", as has " << what << " #"
                             << (same - earlier.begin());
  return success();
}

LogicalResult EntrySignature::verifyArgument(Operation *op, unsigned index, Attribute role) {
  auto function = cast<FunctionOpInterface>(op);
  SmallVector<Attribute> earlier;
  for (unsigned other = 0; other < index; ++other)
    earlier.push_back(function.getArgAttr(other, kEntryRoleAttr));
  return verifyRole(op, /*ofResult=*/false, index, function.getArgumentTypes()[index], role,
                    earlier);
}

LogicalResult EntrySignature::verifyResult(Operation *op, unsigned index, Attribute role) {
  auto function = cast<FunctionOpInterface>(op);
  SmallVector<Attribute> earlier;
  for (unsigned other = 0; other < index; ++other)
    earlier.push_back(function.getResultAttr(other, kEntryRoleAttr));
  return verifyRole(op, /*ofResult=*/true, index, function.getResultTypes()[index], role, earlier);
}

int64_t mica::getVocabulary(ModuleOp module) {
  int64_t vocabulary = 0;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (function.isPublic())
      vocabulary = std::max(vocabulary, EntrySignature(function).vocabulary());
  return vocabulary;
}
