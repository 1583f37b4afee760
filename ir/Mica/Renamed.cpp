//===- Renamed.cpp - names of earlier versions of the IR ------------------===//

#include "ir/Mica/Renamed.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mica;

static constexpr Renaming kRenamings[] = {
    // Ops.
    {"mica.balance", "mica.equalize"},
    {"mica.join_heads", "mica.concat_heads"},
    {"mica.select_number", "mica.index_table"},
    // Attributes of ops, their values, and the keywords of their textual form.
    {"after_gain", "after_weight"},
    {"before_gain", "before_weight"},
    {"correction", "e_score_correction_bias"},
    {"gain_offset", "weight_offset"},
    {"kept_groups", "topk_group"},
    // Attributes of modules.
    {"mica.crossing", "mica.gemm_threshold"},
    {"mica.few_rows", "mica.small_batch"},
    // Parameters of types.
    {"limbs", "bits"},
    // Roles of arguments.
    {"outputs", "logit_indices"},
};

ArrayRef<Renaming> mica::renamings() { return kRenamings; }

StringRef mica::renamedTo(StringRef name) {
  const auto *found =
      llvm::find_if(kRenamings, [&](const Renaming &renaming) { return renaming.from == name; });
  return found == std::end(kRenamings) ? StringRef() : StringRef(found->to);
}

std::string mica::renamedHint(StringRef name) {
  StringRef to = renamedTo(name);
  return to.empty() ? std::string() : ("; it was renamed to '" + to + "'").str();
}

StringRef mica::replacementOfType(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("block_int", "use !mica.block<q8_0> or !mica.block<q4_0> for weights, and "
                         "!mica.int_rows<bits = 8, group = 32> for activations")
      .Case("int4", "use !mica.block<int4_g32> for weights")
      .Default({});
}

LogicalResult mica::verifyKnownAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName();
    bool isOfSymbols = isa<SymbolOpInterface>(op) && name == SymbolTable::getVisibilityAttrName();
    if (!name.contains('.') && !isOfSymbols)
      return op->emitOpError() << "has no attribute '" << name << "'" << renamedHint(name);
  }
  return success();
}
