//===- KeySource.h - where the facts about a model are read from -*- C++ -*-===//
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

/// What to do about a model that asks for arithmetic that Mica does not have.
namespace hints {
inline constexpr llvm::StringLiteral otherModel = "choose a model without it";
} // namespace hints

/// The numbers that a key may have, both ends included. Integers only where the slot holds
/// integers.
struct Range {
  double least = -std::numeric_limits<double>::max();
  double most = std::numeric_limits<double>::max();
};

/// The keys of a file and their values, each one scalar or a list, null, or of config.json an
/// object. What reads a source asks by the names of its tables of keys; diagnostics speak of keys
/// by the names that the file has.
class KeySource {
public:
  /// `path` names the file and must outlive the source, as whatever its values are views of.
  explicit KeySource(llvm::StringRef path) : itsPath(path) {}
  virtual ~KeySource();

  llvm::StringRef path() const { return itsPath; }
  /// All keys, sorted, so that of several wrong ones the same is named every time.
  virtual std::vector<llvm::StringRef> keys() const = 0;
  /// The value of a key; null where the file has no such key.
  virtual const llvm::json::Value *find(llvm::StringRef key) const = 0;
  /// The name that `key` has in the file, or would have.
  virtual std::string named(llvm::StringRef key) const = 0;
  /// Whether people correct such a file by hand: what a diagnostic advises depends on it.
  virtual bool isText() const = 0;

  /// `has "KEY": VALUE, expected EXPECTED`, for a key that there is.
  llvm::Error wrongValue(llvm::StringRef key, const llvm::Twine &expected,
                         llvm::StringRef hint = hints::correct) const;
  /// `has no key "KEY", WHY`.
  llvm::Error missingKey(llvm::StringRef key, const llvm::Twine &why) const;

private:
  llvm::StringRef itsPath;
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

/// Parameters that a GGUF file has in keys and tensors of unlike names, for a reader that asks for
/// them by the names of transformers.
class NamedParameters final : public KeySource {
public:
  using KeySource::KeySource;

  /// Adds a parameter that is in the file under `name`.
  void add(llvm::StringRef key, llvm::json::Value value, llvm::StringRef name) {
    entries.insert_or_assign(key.str(), Entry{std::move(value), name.str()});
  }
  /// Tells by which name the file would have a parameter that it lacks. The first name counts.
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

/// `value` of the key that the file calls `name`, a finite number within `range`. Errors name file,
/// key and value.
llvm::Expected<double> readNumber(llvm::StringRef path, llvm::StringRef name,
                                  const llvm::json::Value &value, Range range);
llvm::Expected<int64_t> readInteger(llvm::StringRef path, llvm::StringRef name,
                                    const llvm::json::Value &value, Range range);
/// The same of each element of a list; a number alone is a list of one.
llvm::Expected<std::vector<int64_t>> readIntegers(llvm::StringRef path, llvm::StringRef name,
                                                  const llvm::json::Value &value, Range range);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_KEYSOURCE_H
