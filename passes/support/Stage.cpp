//===- Stage.cpp - the names of stages ------------------------------------===//

#include "passes/support/Stage.h"

#include <array>

using namespace llvm;
using namespace mica;

static constexpr std::array<StageInfo, kStageCount> kStages{{
    {Stage::Model, "model", "mica ops as the model's modules have them, imported and checked"},
    {Stage::Fused, "fused", "mica ops after fusion, with precision assigned"},
    {Stage::Kernels, "kernels", "mica ops with a chosen implementation and layout each"},
    {Stage::Loops, "loops", "kernels of vector, scf and memref ops, bufferized, caches in place"},
    {Stage::Llvm, "llvm", "the LLVM dialect"},
    {Stage::Ll, "ll", "optimized LLVM IR"},
    {Stage::Asm, "asm", "assembly"},
    {Stage::Obj, "obj", "an object file"},
    {Stage::Exe, "exe", "the program"},
}};

ArrayRef<StageInfo> mica::getStages() { return kStages; }

const StageInfo &mica::getStageInfo(Stage stage) { return kStages[static_cast<size_t>(stage)]; }

std::optional<Stage> mica::parseStage(StringRef name) {
  for (const StageInfo &info : kStages)
    if (info.name == name)
      return info.stage;
  return std::nullopt;
}
