//===- KeySource.h - sources of a model's hyperparameters -------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_KEYSOURCE_H
#define MICA_FRONTEND_FAMILIES_KEYSOURCE_H

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace mica {

/// Hints for models that require unsupported arithmetic.
namespace hints {
inline constexpr llvm::StringLiteral otherModel = "choose a model without it";
} // namespace hints

/// The range of a key, inclusive. Integers only if the field holds integers.
struct Range {
  double min = -std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::max();
};

/// The keys of a file and their values: scalars, lists, null or, in config.json, objects. Readers
/// use the names of their tables of keys; diagnostics use the names in the file.
class KeySource {
public:
  /// `path` names the file. It must outlive the source, as must the data that its values refer to.
  explicit KeySource(llvm::StringRef path) : sourcePath(path) {}
  virtual ~KeySource();

  llvm::StringRef path() const { return sourcePath; }
  /// All keys, sorted, so that errors are deterministic.
  virtual std::vector<llvm::StringRef> keys() const = 0;
  /// The value of a key; null if the file does not have it.
  virtual const llvm::json::Value *find(llvm::StringRef key) const = 0;
  /// The name that `key` has in the file, or would have.
  virtual std::string named(llvm::StringRef key) const = 0;
  /// Whether users can edit such a file, which determines the hints of diagnostics.
  virtual bool isText() const = 0;

  /// `has "KEY": VALUE, expected EXPECTED`, for a key that is present.
  llvm::Error wrongValue(llvm::StringRef key, const llvm::Twine &expected,
                         llvm::StringRef hint = hints::correct) const;
  /// `has no key "KEY", WHY`.
  llvm::Error missingKey(llvm::StringRef key, const llvm::Twine &why) const;

private:
  llvm::StringRef sourcePath;
};

/// The keys of a JSON object; in diagnostics `prefix` precedes their names.
class JsonKeys final : public KeySource {
public:
  JsonKeys(const llvm::json::Object &object, llvm::StringRef path, llvm::StringRef prefix = "")
      : KeySource(path), object(object), prefix(prefix) {}

  std::vector<llvm::StringRef> keys() const override;
  const llvm::json::Value *find(llvm::StringRef key) const override { return object.get(key); }
  std::string named(llvm::StringRef key) const override { return (prefix + key).str(); }
  bool isText() const override { return true; }

private:
  const llvm::json::Object &object;
  std::string prefix;
};

/// Parameters that a GGUF file has in keys and tensors of different names, for a reader that uses
/// the names of transformers.
class NamedParameters final : public KeySource {
public:
  using KeySource::KeySource;

  /// Adds a parameter that is in the file under `name`.
  void add(llvm::StringRef key, llvm::json::Value value, llvm::StringRef name) {
    entries.insert_or_assign(key.str(), Entry{std::move(value), name.str()});
  }
  /// Sets the name that a missing parameter would have in the file. The first name applies.
  void expect(llvm::StringRef key, llvm::StringRef name) {
    expected.try_emplace(key.str(), name.str());
  }

  std::vector<llvm::StringRef> keys() const override;
  const llvm::json::Value *find(llvm::StringRef key) const override;
  std::string named(llvm::StringRef key) const override;
  bool isText() const override { return false; }

private:
  struct Entry {
    llvm::json::Value value;
    std::string name;
  };
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> expected;
};

/// `value` of the key `name` of the file as a finite number within `range`. Errors name file, key
/// and value.
llvm::Expected<double> readNumber(llvm::StringRef path, llvm::StringRef name,
                                  const llvm::json::Value &value, Range range);
llvm::Expected<int64_t> readInteger(llvm::StringRef path, llvm::StringRef name,
                                    const llvm::json::Value &value, Range range);
/// The same for each element of a list; a single number is a list of one.
llvm::Expected<std::vector<int64_t>> readIntegers(llvm::StringRef path, llvm::StringRef name,
                                                  const llvm::json::Value &value, Range range);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_KEYSOURCE_H
