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

/// The first problem found in a file. Readers continue with defaults after one, and the caller asks
/// once at the end.
class Problem {
public:
  explicit Problem(llvm::StringRef file) : file(file) {}
  /// `what` is wrong at `path`; `hint` says what to do about it.
  void report(llvm::StringRef path, const llvm::Twine &what, const llvm::Twine &hint);
  bool found() const { return !message.empty(); }
  llvm::Error take() const;

private:
  std::string file, message, hint;
};

/// A value and the path that leads to it, such as `pre_tokenizer.pretokenizers[0].type`. Every
/// accessor reports what does not fit and returns a default.
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
  /// A whole number in [least, most].
  int64_t integer(int64_t least, int64_t most) const;
  const llvm::json::Array &array() const;
  const llvm::json::Object &object() const;
  bool isString() const { return value && value->kind() == llvm::json::Value::String; }
  bool isObject() const { return value && value->kind() == llvm::json::Value::Object; }

  /// Reports keys that are not in `known`: they might change what the object means.
  void allowKeys(llvm::ArrayRef<llvm::StringRef> known) const;
  void refuse(const llvm::Twine &what, const llvm::Twine &hint = hints::correct) const {
    problem->report(path, what, hint);
  }
  /// This is an option or a component that the run time cannot follow.
  void refuseUnsupported(const llvm::Twine &what) const {
    refuse(what + " is not supported", anotherTokenizer);
  }
  /// A child that is about to be refused: paths of large arrays are built only then.
  void refuseAt(size_t index, const llvm::Twine &what,
                const llvm::Twine &hint = hints::correct) const {
    at(index).refuse(what, hint);
  }
  /// This object is of a kind that is not supported: `type` says which.
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
