//===- CpuDialect.cpp - the target CPU of a module ------------------------===//

#include "backends/cpu/target/CpuDialect.h"

#include "backends/cpu/features/Cpu.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mica::cpu;

#include "backends/cpu/target/CpuDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "backends/cpu/target/CpuAttrs.cpp.inc"

namespace {
/// Prints the target as an alias before the module, because it is long.
struct CpuAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, llvm::raw_ostream &stream) const override {
    if (!isa<TargetAttr>(attribute))
      return AliasResult::NoAlias;
    stream << "target";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void CpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "backends/cpu/target/CpuAttrs.cpp.inc"
      >();
  addInterfaces<CpuAsmInterface>();
}

LogicalResult CpuDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kTargetAttr)
    return success();
  if (!isa<ModuleOp>(op))
    return op->emitOpError() << "has " << kTargetAttr << ", which belongs to modules";
  if (!isa<TargetAttr>(attribute.getValue()))
    return op->emitOpError() << "has a " << kTargetAttr
                             << " that is not a #cpu.target: " << attribute.getValue();
  return success();
}

/// Whether `features` are names that programs can check, sorted, without repetition: what
/// TargetDescription::has expects.
static LogicalResult verifyFeatures(function_ref<InFlightDiagnostic()> emitError,
                                    ArrayAttr features) {
  StringRef last;
  for (Attribute feature : features) {
    auto name = dyn_cast<StringAttr>(feature);
    if (!name || !mica::rt::knownCpuFeature(name.getValue()))
      return emitError() << "unknown feature " << feature;
    if (name.getValue() <= last)
      return emitError() << "feature " << feature
                         << " is out of order; features must be sorted and unique";
    last = name.getValue();
  }
  return success();
}

/// Both lists have the same parameters: else this is not the generated declaration.
LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef cpu,
#define MICA_TARGET_NUMBER(name, Getter, initial) int64_t name,
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) bool name,
#include "backends/cpu/target/TargetFacts.def"
                                 ArrayAttr features) {
  if (!isKnownCpu(cpu))
    return emitError() << "unknown processor '" << cpu << "'";
  if (failed(verifyFeatures(emitError, features)))
    return failure();
  TargetDescription target;
  for (auto name : features.getAsValueRange<StringAttr>())
    target.features.push_back(name.str());
  if (std::string missing = missingForLevel3(target); !missing.empty())
    return emitError() << "lacks " << missing << " of x86-64-v3, which every target has";
  if (vectorBits != 256 && vectorBits != 512)
    return emitError() << "has vectors of " << vectorBits << " bits, expected 256 or 512";
  if (prefetchBytes < 0 || prefetchBytes % 64 != 0)
    return emitError() << "has prefetch_bytes = " << prefetchBytes
                       << ", expected a multiple of 64, at least 0";
#define MICA_TARGET_NUMBER(name, Getter, initial) target.name = static_cast<unsigned>(name);
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) target.name = name;
#include "backends/cpu/target/TargetFacts.def"
  struct Need {
    bool wanted;
    StringRef parameter;
    bool met;
    StringRef what;
  };
  const Need needs[] = {
      {vectorBits == 512, "vector_bits = 512", target.hasAvx512(),
       "avx512f, avx512bw, avx512dq and avx512vl"},
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) {name, parameter, met, needs},
#include "backends/cpu/target/TargetFacts.def"
  };
  for (const Need &need : needs)
    if (need.wanted && !need.met)
      return emitError() << need.parameter << " needs " << need.what;
  return success();
}

TargetDescription mica::cpu::targetOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto attribute = module ? module->getAttrOfType<TargetAttr>(kTargetAttr) : TargetAttr();
  if (!attribute)
    return llvm::cantFail(describeTarget(kDefaultTarget));
  TargetDescription target;
  target.cpu = attribute.getCpu().str();
  for (auto name : attribute.getFeatures().getAsValueRange<StringAttr>())
    target.features.push_back(name.str());
  target.absent = absentFeatures(target);
#define MICA_TARGET_NUMBER(name, Getter, initial) target.name = attribute.get##Getter();
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) target.name = attribute.get##Getter();
#include "backends/cpu/target/TargetFacts.def"
  return target;
}

void mica::cpu::setTarget(ModuleOp module, const TargetDescription &target) {
  MLIRContext *context = module.getContext();
  context->getOrLoadDialect<CpuDialect>();
  SmallVector<StringRef> features(target.features.begin(), target.features.end());
  module->setAttr(kTargetAttr, TargetAttr::get(context, target.cpu,
#define MICA_TARGET_NUMBER(name, Getter, initial) target.name,
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) target.name,
#include "backends/cpu/target/TargetFacts.def"
                                               Builder(context).getStrArrayAttr(features)));
}
