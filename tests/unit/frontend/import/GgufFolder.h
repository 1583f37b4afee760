//===- GgufFolder.h - a model folder as a GGUF file -------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_IMPORT_GGUFFOLDER_H
#define MICA_TESTS_UNIT_FRONTEND_IMPORT_GGUFFOLDER_H

#include "frontend/families/ModelConfig.h"
#include "frontend/formats/checkpoint/WeightFiles.h"
#include "tests/unit/frontend/GgufWriter.h"

namespace mica::test {

/// Converts a folder with f32 weights like llama.cpp's converter: its names, its order of rows of q
/// and k, stacked experts, rope factors.
class GgufFolder {
public:
  explicit GgufFolder(const std::string &folder);

  /// llama.cpp's architecture; empty if it has none, or if its keys cannot describe the model.
  std::string architecture() const;
  GgufWriter write() const;

private:
  const SparseConfig *sparse() const;
  bool reorders() const;
  void writeKeys(GgufWriter &file) const;
  void writeScales(GgufWriter &file) const;
  void writeExpertKeys(GgufWriter &file) const;
  void writeRope(GgufWriter &file) const;
  void writeLayer(GgufWriter &file, int64_t layer) const;
  void writeNetwork(GgufWriter &file, const std::string &to, const std::string &from) const;
  void writeExperts(GgufWriter &file, const std::string &name, const std::string &prefix,
                    const std::string &product) const;
  /// Stores the tensor `from` as `to`; if `heads` is not 0, the halves of each head's rows are
  /// interleaved.
  void put(GgufWriter &file, const std::string &to, const std::string &from,
           int64_t heads = 0) const;
  /// The same for a norm's weight, including the family's weight_offset.
  void putNorm(GgufWriter &file, const std::string &to, const std::string &from) const;

  WeightFiles weights;
  ModelConfig config;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_IMPORT_GGUFFOLDER_H
