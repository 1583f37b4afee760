//===- RopeParameters.h - reader of rope's parameters -----------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_ROPEPARAMETERS_H
#define MICA_FRONTEND_FAMILIES_ROPEPARAMETERS_H

#include "frontend/families/KeySource.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mica {

/// The parameters of rope by transformers' names: a dictionary of config.json, or keys of a GGUF
/// file. Records the keys that are read, so that the rest can be rejected as unknown.
class RopeParameters {
public:
  /// `source` is null if the file at `path` has no parameters.
  RopeParameters(llvm::StringRef path, const KeySource *source) : file(path), source(source) {}

  llvm::StringRef path() const { return file; }
  bool isEmpty() const { return !source; }
  /// The value of `key`; null: absent or null.
  const llvm::json::Value *get(llvm::StringRef key);
  /// The name of `key` in the file.
  std::string named(llvm::StringRef key) const { return source->named(key); }

  /// The value of `key` within `range`. If it is absent: the default, or an error without one.
  llvm::Expected<double> number(llvm::StringRef key, Range range,
                                std::optional<double> absent = std::nullopt);
  llvm::Expected<bool> flag(llvm::StringRef key, bool absent);
  /// The context length before scaling.
  llvm::Expected<int64_t> original(std::optional<int64_t> absent = std::nullopt);
  /// A list of `size` numbers.
  llvm::Expected<std::vector<double>> numbers(llvm::StringRef key, int64_t size, Range range);

  llvm::Error missing(llvm::StringRef key) const {
    return source->missingKey(key, "which this scaling needs");
  }
  /// Accepts these keys, which have no effect.
  void accept(llvm::ArrayRef<llvm::StringRef> keys) { asked.append(keys.begin(), keys.end()); }
  /// Rejects keys that were not read.
  llvm::Error rejectUnknown() const;

private:
  llvm::StringRef file;
  const KeySource *source;
  llvm::SmallVector<llvm::StringRef> asked;
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_ROPEPARAMETERS_H
