#include "frontend/config/KeyReader.h"

#include "frontend/config/Quantization.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {

namespace {

/// Stores values of one key into its slot; one call operator per type of slot.
class Store {
public:
  /// `twin` is another present key of the same slot; empty: none.
  Store(Hyperparameters &h, const KeySource &source, const KeyRule &rule, llvm::StringRef twin)
      : h(h), source(source), rule(rule), value(*source.find(rule.name)), twin(twin) {}

  llvm::Error operator()(std::optional<int64_t> Hyperparameters::*slot) const {
    return set(slot, readInteger(source.path(), source.named(rule.name), value, rule.range));
  }
  llvm::Error operator()(std::optional<double> Hyperparameters::*slot) const {
    return set(slot, readNumber(source.path(), source.named(rule.name), value, rule.range));
  }
  llvm::Error operator()(std::optional<bool> Hyperparameters::*slot) const {
    if (auto flag = value.getAsBoolean())
      return set(slot, llvm::Expected<bool>(*flag));
    return source.wrongValue(rule.name, "true or false");
  }
  llvm::Error operator()(std::optional<std::string> Hyperparameters::*slot) const {
    if (auto text = value.getAsString())
      return set(slot, llvm::Expected<std::string>(text->str()));
    return source.wrongValue(rule.name, "a string");
  }
  llvm::Error operator()(std::vector<int64_t> Hyperparameters::*slot) const;
  llvm::Error operator()(const llvm::json::Object *Hyperparameters::*slot) const {
    h.*slot = value.getAsObject();
    return h.*slot ? llvm::Error::success() : source.wrongValue(rule.name, "an object");
  }
  llvm::Error operator()(const llvm::json::Array *Hyperparameters::*slot) const {
    h.*slot = value.getAsArray();
    return h.*slot ? llvm::Error::success() : source.wrongValue(rule.name, "a list");
  }
  llvm::Error operator()(NotNull notNull) const {
    h.*notNull.slot = value.kind() != llvm::json::Value::Null;
    return llvm::Error::success();
  }

private:
  /// Two keys may set one slot (torch_dtype and dtype) if they agree.
  template <typename T>
  llvm::Error set(std::optional<T> Hyperparameters::*slot, llvm::Expected<T> read) const {
    if (!read)
      return read.takeError();
    if (h.*slot && *(h.*slot) != *read)
      return inputError(source.path(),
                        "has " + inQuotes(source.named(rule.name)) + ": " + shown(value) +
                            ", which contradicts " + inQuotes(source.named(twin)),
                        "keep one of them");
    h.*slot = std::move(*read);
    return llvm::Error::success();
  }

  Hyperparameters &h;
  const KeySource &source;
  const KeyRule &rule;
  const llvm::json::Value &value;
  llvm::StringRef twin;
};

llvm::Error Store::operator()(std::vector<int64_t> Hyperparameters::*slot) const {
  auto numbers = readIntegers(source.path(), source.named(rule.name), value, rule.range);
  if (!numbers)
    return numbers.takeError();
  h.*slot = std::move(*numbers);
  return llvm::Error::success();
}

/// Stores the default of `rule` if no key has set its slot.
class StoreDefault {
public:
  StoreDefault(Hyperparameters &h, const KeyRule &rule) : h(h), rule(rule) {}

  template <typename T> void operator()(std::optional<T> Hyperparameters::*slot) const {
    if constexpr (!std::is_same_v<T, std::string>)
      if (const T *value = std::get_if<T>(&rule.absent); value && !(h.*slot))
        h.*slot = *value;
  }
  void operator()(NotNull notNull) const { (*this)(notNull.slot); }
  template <typename T> void operator()(T) const {} // lists and objects have no defaults

private:
  Hyperparameters &h;
  const KeyRule &rule;
};

/// A file whose keys are being read.
class KeyReader {
public:
  KeyReader(const KeySource &source, const KeyTables &tables)
      : source(source), tables(tables), lists(tables.own.keys) {
    llvm::append_range(lists, tables.common.keys);
  }

  llvm::Expected<Hyperparameters> read(std::vector<IgnoredKey> &ignored);

private:
  const KeyRule *findRule(llvm::StringRef key) const;
  llvm::StringRef findTwin(const KeyRule &rule) const;
  llvm::Error checkFixed(const FixedKey &fixed) const;
  llvm::Error readPresent(llvm::StringRef key, std::vector<IgnoredKey> &ignored);
  llvm::Error fillAbsent();

  const KeySource &source;
  const KeyTables &tables;
  llvm::SmallVector<llvm::ArrayRef<KeyRule>> lists; ///< own keys, then common ones
  Hyperparameters h;
};

/// The row of a key; null if there is none.
template <typename Row> const Row *findRow(llvm::ArrayRef<Row> rows, llvm::StringRef key) {
  auto found = llvm::find_if(rows, [&](const Row &row) { return row.name == key; });
  return found == rows.end() ? nullptr : found;
}

const KeyRule *KeyReader::findRule(llvm::StringRef key) const {
  for (llvm::ArrayRef<KeyRule> list : lists)
    if (const KeyRule *rule = findRow(list, key))
      return rule;
  return nullptr;
}

/// Another present key that sets the slot of `rule`, such as dtype for torch_dtype.
llvm::StringRef KeyReader::findTwin(const KeyRule &rule) const {
  for (llvm::ArrayRef<KeyRule> list : lists)
    for (const KeyRule &other : list)
      if (other.name != rule.name && other.slot == rule.slot && source.find(other.name))
        return other.name;
  return "";
}

llvm::Error KeyReader::checkFixed(const FixedKey &fixed) const {
  llvm::json::Value allowed = llvm::cantFail(llvm::json::parse(fixed.values));
  if (llvm::is_contained(*allowed.getAsArray(), *source.find(fixed.name)))
    return llvm::Error::success();
  return source.wrongValue(fixed.name, "one of " + shown(allowed) + " (nothing else is supported)",
                           source.isText() ? hints::correct : hints::otherModel);
}

llvm::Error KeyReader::readPresent(llvm::StringRef key, std::vector<IgnoredKey> &ignored) {
  if (const FixedKey *fixed = findRow(tables.own.fixed, key))
    return checkFixed(*fixed);
  const llvm::json::Value &value = *source.find(key);
  bool isNull = value.kind() == llvm::json::Value::Null;
  if (const KeyRule *rule = findRule(key)) {
    if (isNull && rule->null == Null::Allowed)
      return llvm::Error::success();
    return std::visit(Store(h, source, *rule, findTwin(*rule)), rule->slot);
  }
  if (isQuantizationKey(key) && !isNull)
    return checkQuantization(source.path(), source.named(key), value, tables.subject);
  if (const FixedKey *fixed = findRow(tables.common.fixed, key))
    return checkFixed(*fixed);
  for (llvm::ArrayRef<IgnoredKeyRow> rows : {tables.own.ignoredKeys, tables.common.ignoredKeys})
    if (const IgnoredKeyRow *row = findRow(rows, key)) {
      if (row->reason != reasons::used)
        ignored.push_back(
            {source.path().str(), source.named(key), row->reason.str(), false, shown(value)});
      return llvm::Error::success();
    }
  return inputError(source.path(),
                    "has the key " + inQuotes(source.named(key)) + ", which is unknown for " +
                        tables.subject + " and could change what the model computes",
                    "remove it if it does not");
}

llvm::Error KeyReader::fillAbsent() {
  llvm::SmallVector<llvm::StringRef> done;
  for (llvm::ArrayRef<KeyRule> list : lists)
    for (const KeyRule &rule : list) {
      if (source.find(rule.name) || llvm::is_contained(done, rule.name))
        continue;
      done.push_back(rule.name);
      if (std::holds_alternative<Required>(rule.absent))
        return source.missingKey(rule.name, "which " + tables.subject + " needs");
      std::visit(StoreDefault(h, rule), rule.slot);
    }
  return llvm::Error::success();
}

llvm::Expected<Hyperparameters> KeyReader::read(std::vector<IgnoredKey> &ignored) {
  for (llvm::StringRef key : source.keys())
    if (llvm::Error error = readPresent(key, ignored))
      return std::move(error);
  if (llvm::Error error = fillAbsent())
    return std::move(error);
  return std::move(h);
}

} // namespace

llvm::Expected<Hyperparameters> readKeys(const KeySource &source, const KeyTables &tables,
                                         std::vector<IgnoredKey> &ignored) {
  return KeyReader(source, tables).read(ignored);
}

std::optional<std::string>
KeyNames::findKey(Slot slot, llvm::function_ref<bool(llvm::StringRef)> isSought) const {
  for (const KeyTable &table : {tables.own, tables.common})
    for (llvm::ArrayRef<KeyRule> list : table.keys)
      for (const KeyRule &rule : list)
        if (rule.slot == slot && isSought(rule.name))
          return source.named(rule.name);
  return std::nullopt;
}

std::optional<std::string> KeyNames::keyOf(Slot slot) const {
  return findKey(slot, [](llvm::StringRef) { return true; });
}

std::optional<std::string> KeyNames::presentKeyOf(Slot slot) const {
  return findKey(slot, [&](llvm::StringRef key) {
    const llvm::json::Value *value = source.find(key);
    return value && value->kind() != llvm::json::Value::Null;
  });
}

std::string KeyNames::hintToCorrect(std::initializer_list<Slot> slots) const {
  llvm::SmallVector<std::string> keys;
  for (const Slot &slot : slots)
    if (std::optional<std::string> key = keyOf(slot))
      keys.push_back(inQuotes(*key));
  return keys.empty() ? hints::correct.str()
                      : "correct " + joinWithOr(llvm::to_vector_of<llvm::StringRef>(keys));
}

} // namespace mica
