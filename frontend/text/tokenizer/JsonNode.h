//===- JsonNode.h - a position in a JSON document ---------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_JSONNODE_H
#define MICA_FRONTEND_TEXT_TOKENIZER_JSONNODE_H

#include "frontend/support/InputError.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>

namespace mica {

/// The first problem found in a file. Readers continue with defaults after a problem, and the
/// caller checks once at the end.
class Problem {
public:
  explicit Problem(llvm::StringRef file) : file(file) {}
  /// Reports problem `what` at `path` with a hint.
  void report(llvm::StringRef path, const llvm::Twine &what, const llvm::Twine &hint);
  bool found() const { return !message.empty(); }
  llvm::Error take() const;

private:
  std::string file, message, hint;
};

/// A value and its path, such as `pre_tokenizer.pretokenizers[0].type`. All accessors report values
/// of the wrong type and return a default.
class JsonNode {
public:
  JsonNode(const llvm::json::Value *value, std::string path, Problem &problem)
      : value(value), path(std::move(path)), problem(&problem) {}

  /// Missing or null.
  bool absent() const { return !value || value->kind() == llvm::json::Value::Null; }
  JsonNode operator[](llvm::StringRef key) const;
  JsonNode at(size_t index) const;

  std::string string() const;
  std::string string(llvm::StringRef fallback) const {
    return absent() ? fallback.str() : string();
  }
  bool boolean(bool fallback) const;
  /// An integer in [min, max].
  int64_t integer(int64_t min, int64_t max) const;
  const llvm::json::Array &array() const;
  const llvm::json::Object &object() const;
  bool isString() const { return value && value->kind() == llvm::json::Value::String; }
  bool isObject() const { return value && value->kind() == llvm::json::Value::Object; }

  /// Reports keys that are not in `known`, because they might change the meaning of the object.
  void allowKeys(llvm::ArrayRef<llvm::StringRef> known) const;
  void refuse(const llvm::Twine &what, const llvm::Twine &hint = hints::correct) const {
    problem->report(path, what, hint);
  }
  /// Reports an option or a component that the runtime does not support.
  void refuseUnsupported(const llvm::Twine &what) const {
    refuse(what + " is not supported", anotherTokenizer);
  }
  /// A child that is about to be rejected: only then, paths into large arrays are built.
  void refuseAt(size_t index, const llvm::Twine &what,
                const llvm::Twine &hint = hints::correct) const {
    at(index).refuse(what, hint);
  }
  /// Reports that the `type` of this object is not supported.
  void refuseType(llvm::StringRef type, llvm::StringRef what) const;
  const std::string &where() const { return path; }

private:
  static constexpr llvm::StringLiteral anotherTokenizer =
      "use a model with a byte-level BPE or sentencepiece tokenizer";

  const llvm::json::Value *value;
  std::string path;
  Problem *problem;
};

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_JSONNODE_H
