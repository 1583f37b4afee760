//===- ProgramFacts.h - what a module says about its program -------------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_COMPILE_PROGRAMFACTS_H
#define MICA_BACKENDS_CPU_COMPILE_PROGRAMFACTS_H

#include "backends/cpu/target/TargetDescription.h"
#include "ir/Mica/Mica.h"

#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace mica::cpu {

struct CacheFacts {
  std::string name;
  std::string element;              ///< "f32" or "bf16"
  llvm::SmallVector<int64_t> shape; ///< physical; the dynamic extents are the batch and then the blocks of positions
  int64_t bytesPerPosition;         ///< of one sequence, with padding
};

/// Read off the module at stage `kernels`; the scratch sizes come from stage `loops`.
struct ProgramFacts {
  std::string name, weights, kv;
  int64_t vocab = 0, maxSeq = 0, positionBlock = 0, crossing = 0;
  std::vector<CacheFacts> caches;
  int64_t scratchPerRow = 0, scratchFixed = 0;
  uint64_t weightBytes = 0;
  // Of one decoded token. Of stacked experts only those count that a token chooses, of a table that is only gathered from one row.
  uint64_t weightBytesPerToken = 0, flopsPerToken = 0;
  mlir::DictionaryAttr model;                          ///< `mica.model`
  std::map<std::string, std::map<std::string, int64_t>> ops; ///< function -> op -> how many
};

/// Errors say what the module lacks.
llvm::Expected<ProgramFacts> readFacts(mlir::ModuleOp module);

/// Adds what is known at stage `loops`.
void addScratchFacts(mlir::ModuleOp module, ProgramFacts &facts);

/// The manifest that a program carries.
llvm::json::Object makeManifest(const ProgramFacts &facts, const TargetDescription &target);

/// Every attribute as JSON; what JSON has no word for as MLIR's text.
llvm::json::Value toJson(mlir::Attribute attribute);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_COMPILE_PROGRAMFACTS_H
