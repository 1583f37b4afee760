//===- Json.h - strict, bounded JSON ----------------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_SUPPORT_JSON_H
#define MICA_FRONTEND_SUPPORT_JSON_H

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica {

/// The limits of a JSON document, and the hint for rejected ones. The defaults suit the small files
/// of a model folder.
struct JsonLimits {
  size_t bytes = 4u << 20;
  size_t values = 1u << 18;
  unsigned depth = 32;
  llvm::StringRef hint = hints::correct;
};

/// Parses `text`; errors name `file`. Stricter than JSON: rejects duplicate keys in an object, NaN
/// and infinities (which Python writes), numbers beyond double, and documents beyond `limits`. Not
/// recursive.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef file,
                                            const JsonLimits &limits = {});

/// Reads and parses the file at `path`, whose root must be an object.
llvm::Expected<llvm::json::Object> readJsonObject(llvm::StringRef path,
                                                  const JsonLimits &limits = {});

/// `value` as text for messages: compact and truncated after 60 bytes.
std::string shown(const llvm::json::Value &value);

} // namespace mica

#endif // MICA_FRONTEND_SUPPORT_JSON_H
