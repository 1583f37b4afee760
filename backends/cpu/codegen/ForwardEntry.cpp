//===- ForwardEntry.cpp - build mica_forward ------------------------------===//

#include "backends/cpu/codegen/ModelSymbols.h"
#include "backends/cpu/codegen/Passes.h"

#include "backends/runtime/abi/RowRole.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"
#include "passes/support/Phases.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_FORWARDENTRYPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

using mica::EntryRole;
using mica::EntrySignature;
using mica::kDecodeRole;
using mica::kDraftRole;
using mica::kEntryRoleAttr;
using mica::kMaxRowsAttr;
using mica::kPromptRole;
using mica::kRowRoleAttr;
using mica::cpu::kForwardSymbol;

/// The module's entry functions in ascending order of their row limits, unlimited ones last.
SmallVector<func::FuncOp> entriesOf(ModuleOp module) {
  auto limit = [](func::FuncOp function) {
    auto rows = function->getAttrOfType<IntegerAttr>(kMaxRowsAttr);
    return rows ? rows.getInt() : INT64_MAX;
  };
  auto isLess = [&](func::FuncOp a, func::FuncOp b) { return limit(a) < limit(b); };
  SmallVector<func::FuncOp> entries;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      entries.insert(llvm::upper_bound(entries, function, isLess), function);
  return entries;
}

/// The entry functions for a row role, in the same order.
SmallVector<func::FuncOp> entriesOfRole(ArrayRef<func::FuncOp> entries, StringRef role) {
  return llvm::filter_to_vector(entries,
                                [&](func::FuncOp entry) { return mica::rowRoleOf(entry) == role; });
}

/// The entry functions of the model, without those of its multi-token prediction head.
SmallVector<func::FuncOp> entriesOfModel(ArrayRef<func::FuncOp> entries) {
  return llvm::filter_to_vector(
      entries, [](func::FuncOp entry) { return mica::rowRoleOf(entry) != kDraftRole; });
}

/// Checks that exactly one of `entries`, all with the same role or none, has no row limit.
LogicalResult checkLimits(ArrayRef<func::FuncOp> entries) {
  for (func::FuncOp entry : entries) {
    bool unlimited = !entry->hasAttr(kMaxRowsAttr);
    if (unlimited == (entry == entries.back()))
      continue;
    InFlightDiagnostic error = func::FuncOp(entry).emitError()
                               << "exactly one entry function must have no " << kMaxRowsAttr;
    if (StringRef role = mica::rowRoleOf(entry); !role.empty())
      error << " among those with " << kRowRoleAttr << " = \"" << role << "\"";
    return error;
  }
  return success();
}

/// Checks that there are entry functions for all rows of the model: either without roles or for
/// both roles.
LogicalResult checkRoles(ArrayRef<func::FuncOp> entries) {
  func::FuncOp first = entries.front();
  bool byRole = first->hasAttr(kRowRoleAttr);
  for (func::FuncOp entry : entries) {
    StringRef role = mica::rowRoleOf(entry);
    if (entry->hasAttr(kRowRoleAttr) && role != kPromptRole && role != kDecodeRole)
      return entry.emitError() << "entry function @" << entry.getName() << " has " << kRowRoleAttr
                               << " = " << entry->getAttr(kRowRoleAttr) << "; write \""
                               << kPromptRole << "\", \"" << kDecodeRole << "\" or \"" << kDraftRole
                               << "\"";
    if (entry->hasAttr(kRowRoleAttr) != byRole)
      return entry.emitError() << "entry functions @" << first.getName() << " and @"
                               << entry.getName() << ": either both or none must have "
                               << kRowRoleAttr;
  }
  if (!byRole)
    return checkLimits(entries);
  for (StringRef role : {kPromptRole, kDecodeRole}) {
    SmallVector<func::FuncOp> ofRole = entriesOfRole(entries, role);
    if (ofRole.empty())
      return first.emitError() << "no entry function has " << kRowRoleAttr << " = \"" << role
                               << "\"";
    if (failed(checkLimits(ofRole)))
      return failure();
  }
  return success();
}

SmallVector<std::optional<EntryRole>> rolesOf(func::FuncOp entry) {
  return llvm::map_to_vector(llvm::seq<unsigned>(entry.getNumArguments()), [&](unsigned index) {
    return EntrySignature(entry).argumentRole(index);
  });
}

LogicalResult checkEntries(ModuleOp module, MutableArrayRef<func::FuncOp> entries) {
  SmallVector<func::FuncOp> ofModel = entriesOfModel(entries),
                            ofHead = entriesOfRole(entries, kDraftRole);
  if (ofModel.empty())
    return module.emitError("has no public function to enter (stage loops)");
  for (func::FuncOp entry : entries) {
    if (entry.getNumResults() != 0)
      return entry.emitError() << "entry function @" << entry.getName()
                               << " returns values, but results are buffers at "
                               << "stage loops";
    if (entry.getFunctionType() != entries.front().getFunctionType())
      return entry.emitError() << "entry functions @" << entries.front().getName() << " and @"
                               << entry.getName() << " have different types";
    if (rolesOf(entry) != rolesOf(entries.front()))
      return entry.emitError() << "entry functions @" << entries.front().getName() << " and @"
                               << entry.getName() << " have different " << kEntryRoleAttr;
    if (!llvm::all_of(entry.getArgumentTypes(), llvm::IsaPred<MemRefType>))
      return entry.emitError() << "entry function @" << entry.getName()
                               << " takes something that is not a memref";
  }
  if (failed(checkRoles(ofModel)) || (!ofHead.empty() && failed(checkLimits(ofHead))))
    return failure();
  if (!EntrySignature(entries.front()).rowVector())
    return entries.front().emitError()
           << "entry function @" << entries.front().getName() << " has no argument with "
           << kEntryRoleAttr << " = \"tokens\" or others that have a number of each row";
  return success();
}

struct ForwardEntry : mica::cpu::impl::ForwardEntryPassBase<ForwardEntry> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> entries = entriesOf(getOperation());
    if (failed(checkEntries(getOperation(), entries)))
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    SmallVector<Location> places;
    for (func::FuncOp entry : entries)
      places.push_back(entry.getLoc());
    Location loc = FusedLoc::get(&getContext(), places);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    auto forward = func::FuncOp::create(
        builder, loc, kForwardSymbol, builder.getFunctionType({pointer, builder.getI64Type()}, {}));
    builder.setInsertionPointToStart(forward.addEntryBlock());
    SmallVector<Value> arguments =
        loadArguments(builder, loc, forward.getArgument(0), entries.front());
    unsigned vector = EntrySignature(entries.front()).rowVector().getArgNumber();
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value rows = memref::DimOp::create(builder, loc, arguments[vector], zero);
    Value role = forward.getArgument(1);
    if (SmallVector<func::FuncOp> ofHead = entriesOfRole(entries, kDraftRole); ofHead.empty()) {
      buildModelDispatch(builder, loc, entries, role, rows, arguments);
    } else {
      scf::IfOp choice = buildChoice(builder, loc, role, mica::rt::RowRole::Draft);
      OpBuilder drafts = choice.getThenBodyBuilder(), others = choice.getElseBodyBuilder();
      buildDispatch(drafts, loc, ofHead, rows, arguments);
      buildModelDispatch(others, loc, entriesOfModel(entries), role, rows, arguments);
    }
    func::ReturnOp::create(builder, loc);
    hideAllBut(forward);
    // The offsets of weights are constants in the code now.
    for (Operation &op : llvm::make_early_inc_range(*getOperation().getBody()))
      if (isa<mica::WeightOp, mica::EqualizeOp>(op))
        op.erase();
  }

  /// Makes all functions except `forward` internal. If a shared object exported them, they could be
  /// bound to symbols with the same names in the program.
  void hideAllBut(func::FuncOp forward) {
    auto internal = LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal);
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function == forward || function.isExternal())
        continue;
      EntrySignature(function).eraseRoles();
      function.setPrivate();
      function->setAttr("llvm.linkage", internal);
    }
  }

  /// Loads the arguments: descriptors[i] points to the entry function's i-th memref.
  SmallVector<Value> loadArguments(OpBuilder &builder, Location loc, Value descriptors,
                                   func::FuncOp entry) {
    LLVMTypeConverter converter(&getContext());
    Type pointer = descriptors.getType();
    SmallVector<Value> arguments;
    for (auto [index, type] : llvm::enumerate(entry.getArgumentTypes())) {
      Value slot =
          LLVM::GEPOp::create(builder, loc, pointer, pointer, descriptors, LLVM::GEPArg(index));
      Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
      Value descriptor = LLVM::LoadOp::create(builder, loc, converter.convertType(type), address);
      arguments.push_back(
          UnrealizedConversionCastOp::create(builder, loc, type, descriptor).getResult(0));
    }
    return arguments;
  }

  /// Whether the role of a call is `wanted`.
  static scf::IfOp buildChoice(OpBuilder &builder, Location loc, Value role,
                               mica::rt::RowRole wanted) {
    Value number = arith::ConstantIntOp::create(builder, loc, static_cast<int64_t>(wanted), 64);
    Value isWanted = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, role, number);
    return scf::IfOp::create(builder, loc, isWanted, /*withElseRegion=*/true);
  }

  void buildModelDispatch(OpBuilder &builder, Location loc, ArrayRef<func::FuncOp> entries,
                          Value role, Value rows, ValueRange arguments) {
    if (!entries.front()->hasAttr(kRowRoleAttr))
      return buildDispatch(builder, loc, entries, rows, arguments);
    scf::IfOp choice = buildChoice(builder, loc, role, mica::rt::RowRole::Prompt);
    OpBuilder ofPrompt = choice.getThenBodyBuilder(), ofDecode = choice.getElseBodyBuilder();
    buildDispatch(ofPrompt, loc, entriesOfRole(entries, kPromptRole), rows, arguments);
    buildDispatch(ofDecode, loc, entriesOfRole(entries, kDecodeRole), rows, arguments);
  }

  void buildDispatch(OpBuilder &builder, Location loc, ArrayRef<func::FuncOp> entries, Value rows,
                     ValueRange arguments) {
    func::FuncOp entry = entries.front();
    auto limit = entry->getAttrOfType<IntegerAttr>(kMaxRowsAttr);
    if (!limit) {
      func::CallOp::create(builder, loc, entry, arguments);
      return;
    }
    Value bound = arith::ConstantIndexOp::create(builder, loc, limit.getInt());
    Value enough = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, rows, bound);
    auto choice = scf::IfOp::create(builder, loc, enough, /*withElseRegion=*/true);
    OpBuilder taken = choice.getThenBodyBuilder(), otherwise = choice.getElseBodyBuilder();
    func::CallOp::create(taken, loc, entry, arguments);
    buildDispatch(otherwise, loc, entries.drop_front(), rows, arguments);
  }
};

} // namespace
