//===- Names.cpp - names of values in printed IR --------------------------===//

#include "ir/Mica/Names.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mica {

std::string shortName(StringRef symbol) {
  SmallVector<StringRef> parts;
  symbol.split(parts, '.', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (parts.size() > 1 && parts.back() == "weight")
    parts.pop_back();
  auto isNumber = [](StringRef part) { return llvm::all_of(part, llvm::isDigit); };
  auto word = llvm::find_if_not(llvm::reverse(parts), isNumber);
  if (word == parts.rend())
    return "weight";
  std::string name = word->str();
  if (*word == "bias" && std::next(word) != parts.rend())
    name = (*std::next(word) + ".bias").str();
  for (StringRef part : llvm::make_filter_range(parts, isNumber))
    name += ("." + part).str();
  return name;
}

Location nameWithin(Location place, StringRef word) {
  auto module = place->findInstanceOf<NameLoc>();
  std::string name = module ? (module.getName().strref() + "." + word).str() : word.str();
  return NameLoc::get(StringAttr::get(place.getContext(), name), place);
}

/// Removes the names of the arguments of `block`, or with `keep` shortens them.
static void rename(Block &block, bool keep) {
  for (BlockArgument argument : block.getArguments()) {
    auto name = argument.getLoc()->findInstanceOf<NameLoc>();
    Location unknown = UnknownLoc::get(argument.getContext());
    argument.setLoc(keep && name ? NameLoc::get(StringAttr::get(argument.getContext(),
                                                                shortName(name.getName())))
                                 : unknown);
  }
}

// MLIR prints the names of all locations or of none. Locations of ops name modules, which would
// obscure the data flow, so print a clone without them.
static OwningOpRef<ModuleOp> cloneWithNames(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  copy->walk([&](Operation *op) {
    op->setLoc(UnknownLoc::get(op->getContext()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        rename(block, /*keep=*/isa<FunctionOpInterface>(op) && block.isEntryBlock());
  });
  return copy;
}

void printNamed(ModuleOp module, llvm::raw_ostream &os) {
  cloneWithNames(module)->print(os, OpPrintingFlags().printNameLocAsPrefix());
}

SmallVector<unsigned> printWithLines(ModuleOp module, llvm::raw_ostream &os, bool isNamed) {
  OwningOpRef<ModuleOp> copy = isNamed ? cloneWithNames(module) : OwningOpRef<ModuleOp>();
  ModuleOp printed = isNamed ? *copy : module;
  AsmState::LocationMap places;
  AsmState state(printed, OpPrintingFlags().printNameLocAsPrefix(isNamed), &places);
  printed.print(os, state);
  SmallVector<unsigned> lines;
  printed->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { lines.push_back(places.lookup(op).first); });
  return lines;
}

} // namespace mica
