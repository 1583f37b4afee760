//===- SetTarget.cpp - set the target CPU of a module ---------------------===//

#include "backends/cpu/target/Passes.h"

namespace mica::cpu {
#define GEN_PASS_DEF_SETTARGET
#include "backends/cpu/target/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica::cpu;

namespace {
struct SetTarget : mica::cpu::impl::SetTargetBase<SetTarget> {
  using SetTargetBase::SetTargetBase;
  SetTarget() = default;
  explicit SetTarget(TargetDescription target) : described(std::move(target)) {}

  void runOnOperation() override {
    if (!described) {
      llvm::Expected<TargetDescription> named = describeTarget(cpu);
      if (!named) {
        emitError(getOperation().getLoc(), "cpu-set-target: ") << llvm::toString(named.takeError());
        return signalPassFailure();
      }
      described = std::move(*named);
    }
    setTarget(getOperation(), *described);
  }

private:
  std::optional<TargetDescription> described; ///< the target named by `cpu`, or given by the caller
};
} // namespace

std::unique_ptr<Pass> mica::cpu::createSetTarget(const TargetDescription &target) {
  return std::make_unique<SetTarget>(target);
}
