//===- KeyReader.h - keys of a JSON object, by rule
//-----------------------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_KEYREADER_H
#define MICA_FRONTEND_CONFIG_KEYREADER_H

#include "frontend/families/Family.h"

namespace mica {

/// Reads `value` of `key`, a finite number within `range`. Errors name file, key and value.
llvm::Expected<double> readNumber(llvm::StringRef path, llvm::StringRef key,
                                  const llvm::json::Value &value, Range range);
llvm::Expected<int64_t> readInteger(llvm::StringRef path, llvm::StringRef key,
                                    const llvm::json::Value &value, Range range);

/// Reads the keys of `config` as `family` describes them; keys that nobody reads are listed in
/// `ignored`. Refuses, naming it, a key that is neither read nor known to be irrelevant, and a
/// value outside its key's rule.
llvm::Expected<Hyperparameters> readKeys(const llvm::json::Object &config, llvm::StringRef path,
                                         const Family &family, std::vector<IgnoredKey> &ignored);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_KEYREADER_H
