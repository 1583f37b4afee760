//===- PackFixture.h - packs modules of weights -----------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_PACK_PACKFIXTURE_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_PACK_PACKFIXTURE_H

#include "backends/cpu/pack/PackWeights.h"
#include "ir/Mica/Mica.h"
#include "ir/Mica/Shard.h"
#include "tests/unit/backends/cpu/pack/MemorySource.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <map>

namespace mica::cpu {

class PackTest : public testing::Test {
protected:
  PackTest() { context.loadDialect<MicaDialect>(); }

  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }

  /// The weights of a module; of all its ranks, one after the other at multiples of `rankStride`.
  llvm::Expected<std::vector<uint8_t>> pack(llvm::StringRef text, unsigned threads = 2,
                                            uint64_t rankStride = 0) {
    mlir::OwningOpRef<mlir::ModuleOp> module = parse(text);
    if (!module)
      return llvm::createStringError("the text is no module");
    std::vector<uint8_t> bytes;
    auto sink = [&](llvm::ArrayRef<uint8_t> piece) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return llvm::Error::success();
    };
    uint64_t done = 0, all = 0;
    auto progress = [&](uint64_t d, uint64_t a) { done = d, all = a; };
    auto count = [&](WeightOp weight, int64_t bytes) {
      padding[weight.getSymName().str()] = bytes;
    };
    if (llvm::Error error =
            packWeights(*module, source, {sink, progress, threads, &importance, rankStride, count}))
      return error;
    EXPECT_EQ(done, bytes.size());
    EXPECT_EQ(all, (getRanks(*module) - 1) * rankStride + packedBytes(*module));
    return bytes;
  }
  std::string errorOf(llvm::StringRef text) {
    llvm::Expected<std::vector<uint8_t>> bytes = pack(text);
    return bytes ? "" : llvm::toString(bytes.takeError());
  }

  mlir::MLIRContext context;
  MemorySource source;
  ColumnImportance importance{"imatrix.gguf"};
  std::map<std::string, int64_t> padding; ///< of the packed weights
};

} // namespace mica::cpu

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_PACK_PACKFIXTURE_H
