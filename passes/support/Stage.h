//===- Stage.h - the stages of a compilation --------------------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_STAGE_H
#define MICA_PASSES_SUPPORT_STAGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mica {

enum class Stage { Model, Fused, Kernels, Loops, Llvm, Ll, Asm, Obj, Exe };
inline constexpr size_t kStageCount = 9;

struct StageInfo {
  Stage stage;
  llvm::StringRef name;
  llvm::StringRef help;
};

/// All stages in order.
llvm::ArrayRef<StageInfo> getStages();
const StageInfo &getStageInfo(Stage stage);
/// The stage with this name, or nullopt.
std::optional<Stage> parseStage(llvm::StringRef name);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_STAGE_H
