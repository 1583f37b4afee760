//===- Json.h - strict, bounded JSON ----------------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_SUPPORT_JSON_H
#define MICA_FRONTEND_SUPPORT_JSON_H

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// What a JSON document may cost, and what to do about one that is refused. The defaults suit the
/// small files of a model folder.
struct JsonLimits {
  size_t bytes = 4u << 20;
  size_t values = 1u << 18;
  unsigned depth = 32;
  llvm::StringRef hint = hints::correct;
};

/// Parses `text`, naming `file` in errors. Stricter than JSON asks for: a key that occurs twice in
/// an object, NaN and infinities (Python writes them), numbers beyond double, and documents beyond
/// `limits` are refused. Does not recurse.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef file,
                                            const JsonLimits &limits = {});

/// Reads and parses the file at `path`, whose root must be an object.
llvm::Expected<llvm::json::Object> readJsonObject(llvm::StringRef path,
                                                  const JsonLimits &limits = {});

/// `value` as it may be in a message: compact and cut after 60 bytes.
std::string shown(const llvm::json::Value &value);

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_JSON_H
