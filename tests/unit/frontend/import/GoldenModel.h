//===- GoldenModel.h - imported models run by the interpreter ---*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_IMPORT_GOLDENMODEL_H
#define MICA_TESTS_UNIT_FRONTEND_IMPORT_GOLDENMODEL_H

#include "frontend/import/ModelInput.h"
#include "ir/Interpreter/Interpreter.h"
#include "tests/unit/Paths.h"

#include <filesystem>
#include <string>
#include <vector>

namespace mica::test {

/// The folder of the goldens of models, and their names in order.
inline std::filesystem::path goldens() { return MICA_SOURCE_DIR "/tests/goldens/models"; }
std::vector<std::string> goldenNames();

/// Logits [tokens, vocabulary] of a prompt of one sequence, computed in chunks of `chunk` tokens
/// with a cache. `entry` is the function of a step. Rope frequencies that depend on the sequence
/// length use `lengths`; by default, the prompt's length.
llvm::Expected<std::vector<float>> logitsOf(const ModelInput &model, llvm::ArrayRef<int64_t> tokens,
                                            size_t chunk, llvm::StringRef entry = "main",
                                            llvm::ArrayRef<int64_t> lengths = {});

/// max |a - b| / max |b|; infinite if the sizes differ.
double distance(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b);

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_IMPORT_GOLDENMODEL_H
