//===- CpuDialect.cpp - the processor that a module is compiled for -------===//

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
/// A target is long: it is printed once, before the module.
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
                         << " is not in its place: they are sorted, each once";
    last = name.getValue();
  }
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef cpu,
                                 int64_t vectorBits, bool bf16Dot, bool fastBf16Dot, bool int8Dot,
                                 bool tiles, bool /*prefetchPages*/, int64_t prefetchBytes,
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
  bool wide = vectorBits == 512;
  struct Need {
    bool wanted;
    StringRef parameter;
    bool met;
    StringRef what;
  };
  const Need needs[] = {
      {wide, "vector_bits = 512", target.hasAvx512(), "avx512f, avx512bw, avx512dq and avx512vl"},
      {bf16Dot, "bf16_dot", wide && target.has("avx512bf16"), "avx512bf16 and vector_bits = 512"},
      {fastBf16Dot, "fast_bf16_dot", bf16Dot, "bf16_dot"},
      {int8Dot, "int8_dot", target.has("avx512vnni") || (!wide && target.has("avxvnni")),
       "avx512vnni, or avxvnni and vector_bits = 256"},
      {tiles, "tiles", bf16Dot && int8Dot && target.has("amx-bf16") && target.has("amx-int8"),
       "bf16_dot, int8_dot, amx-bf16 and amx-int8"},
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
  target.vectorBits = attribute.getVectorBits();
  target.bf16Dot = attribute.getBf16Dot();
  target.fastBf16Dot = attribute.getFastBf16Dot();
  target.int8Dot = attribute.getInt8Dot();
  target.tiles = attribute.getTiles();
  target.prefetchPages = attribute.getPrefetchPages();
  target.prefetchBytes = attribute.getPrefetchBytes();
  return target;
}

void mica::cpu::setTarget(ModuleOp module, const TargetDescription &target) {
  MLIRContext *context = module.getContext();
  context->getOrLoadDialect<CpuDialect>();
  SmallVector<StringRef> features(target.features.begin(), target.features.end());
  module->setAttr(kTargetAttr,
                  TargetAttr::get(context, target.cpu, target.vectorBits, target.bf16Dot,
                                  target.fastBf16Dot, target.int8Dot, target.tiles,
                                  target.prefetchPages, target.prefetchBytes,
                                  Builder(context).getStrArrayAttr(features)));
}
