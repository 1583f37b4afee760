#include "frontend/config/KeyReader.h"

#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace mica {

static llvm::Error wrongValue(llvm::StringRef path, llvm::StringRef key,
                              const llvm::json::Value &value, const llvm::Twine &expected) {
  return inputError(path, "has " + inQuotes(key) + ": " + shown(value) + ", expected " + expected,
                    remedy::correct);
}

/// Numbers without a fraction print without one: "1048576", not "1.048576e+06".
static std::string shown(double number) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (number == std::floor(number) && std::abs(number) < 1e15)
    stream << static_cast<int64_t>(number);
  else
    stream << llvm::format("%g", number);
  return text;
}

static std::string shown(Range range) {
  if (range.most == Range().most)
    return range.least == Range().least ? "" : " of at least " + shown(range.least);
  return " from " + shown(range.least) + " to " + shown(range.most);
}

llvm::Expected<double> readNumber(llvm::StringRef path, llvm::StringRef key,
                                  const llvm::json::Value &value, Range range) {
  auto number = value.getAsNumber();
  if (!number || !std::isfinite(*number) || *number < range.least || *number > range.most)
    return wrongValue(path, key, value, "a number" + shown(range));
  return *number;
}

llvm::Expected<int64_t> readInteger(llvm::StringRef path, llvm::StringRef key,
                                    const llvm::json::Value &value, Range range) {
  auto number = value.getAsInteger();
  if (!number || *number < range.least || *number > range.most)
    return wrongValue(path, key, value, "an integer" + shown(range));
  return *number;
}

namespace {

/// Stores values of one key into its slot; one call operator per type of slot.
class Store {
public:
  /// `twin` is another key of the same slot that the config has; empty where there is none.
  Store(Hyperparameters &h, llvm::StringRef path, const KeyRule &rule,
        const llvm::json::Value &value, llvm::StringRef twin)
      : h(h), path(path), rule(rule), value(value), twin(twin) {}

  llvm::Error operator()(std::optional<int64_t> Hyperparameters::*slot) const {
    return set(slot, readInteger(path, rule.name, value, rule.range));
  }
  llvm::Error operator()(std::optional<double> Hyperparameters::*slot) const {
    return set(slot, readNumber(path, rule.name, value, rule.range));
  }
  llvm::Error operator()(std::optional<bool> Hyperparameters::*slot) const {
    if (auto flag = value.getAsBoolean())
      return set(slot, llvm::Expected<bool>(*flag));
    return wrongValue(path, rule.name, value, "true or false");
  }
  llvm::Error operator()(std::optional<std::string> Hyperparameters::*slot) const {
    if (auto text = value.getAsString())
      return set(slot, llvm::Expected<std::string>(text->str()));
    return wrongValue(path, rule.name, value, "a string");
  }
  llvm::Error operator()(std::vector<int64_t> Hyperparameters::*slot) const;
  llvm::Error operator()(const llvm::json::Object *Hyperparameters::*slot) const {
    h.*slot = value.getAsObject();
    return h.*slot ? llvm::Error::success() : wrongValue(path, rule.name, value, "an object");
  }
  llvm::Error operator()(const llvm::json::Array *Hyperparameters::*slot) const {
    h.*slot = value.getAsArray();
    return h.*slot ? llvm::Error::success() : wrongValue(path, rule.name, value, "a list");
  }
  llvm::Error operator()(NotNull notNull) const {
    h.*notNull.slot = value.kind() != llvm::json::Value::Null;
    return llvm::Error::success();
  }

private:
  /// Two keys may fill one slot (torch_dtype and dtype), if they agree.
  template <typename T>
  llvm::Error set(std::optional<T> Hyperparameters::*slot, llvm::Expected<T> read) const {
    if (!read)
      return read.takeError();
    if (h.*slot && *(h.*slot) != *read)
      return inputError(path,
                        "has " + inQuotes(rule.name) + ": " + shown(value) + ", but " +
                            inQuotes(twin) + " says otherwise",
                        "keep one of them");
    h.*slot = std::move(*read);
    return llvm::Error::success();
  }

  Hyperparameters &h;
  llvm::StringRef path;
  const KeyRule &rule;
  const llvm::json::Value &value;
  llvm::StringRef twin;
};

llvm::Error Store::operator()(std::vector<int64_t> Hyperparameters::*slot) const {
  llvm::SmallVector<llvm::json::Value> items;
  if (const llvm::json::Array *list = value.getAsArray())
    llvm::append_range(items, *list);
  else
    items.push_back(value);
  for (const llvm::json::Value &item : items) {
    auto number = readInteger(path, rule.name, item, rule.range);
    if (!number)
      return number.takeError();
    (h.*slot).push_back(*number);
  }
  return llvm::Error::success();
}

/// Puts the default of `rule` where no key filled its slot.
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

/// The config while its keys are read.
class KeyReader {
public:
  KeyReader(const llvm::json::Object &config, llvm::StringRef path, const Family &family)
      : config(config), path(path), family(family), lists(family.keys) {
    lists.push_back(everyKeys());
  }

  llvm::Expected<Hyperparameters> read(std::vector<IgnoredKey> &ignored);

private:
  const KeyRule *findRule(llvm::StringRef key) const;
  llvm::StringRef findTwin(const KeyRule &rule) const;
  llvm::Error readPresent(llvm::StringRef key, const llvm::json::Value &value,
                          std::vector<IgnoredKey> &ignored);
  llvm::Error fillAbsent();

  const llvm::json::Object &config;
  llvm::StringRef path;
  const Family &family;
  llvm::SmallVector<llvm::ArrayRef<KeyRule>> lists; ///< the family's keys, then those of all
  Hyperparameters h;
};

const KeyRule *KeyReader::findRule(llvm::StringRef key) const {
  for (llvm::ArrayRef<KeyRule> list : lists)
    for (const KeyRule &rule : list)
      if (rule.name == key)
        return &rule;
  return nullptr;
}

static const FixedKey *findFixed(llvm::ArrayRef<FixedKey> keys, llvm::StringRef key) {
  auto found = llvm::find_if(keys, [&](const FixedKey &fixed) { return fixed.name == key; });
  return found == keys.end() ? nullptr : found;
}

/// Another key that fills the slot of `rule` and that the config has, as dtype for torch_dtype.
llvm::StringRef KeyReader::findTwin(const KeyRule &rule) const {
  for (llvm::ArrayRef<KeyRule> list : lists)
    for (const KeyRule &other : list)
      if (other.name != rule.name && other.slot == rule.slot && config.get(other.name))
        return other.name;
  return "";
}

llvm::Error checkFixed(llvm::StringRef path, const FixedKey &fixed,
                       const llvm::json::Value &value) {
  llvm::json::Value allowed = llvm::cantFail(llvm::json::parse(fixed.values));
  if (llvm::is_contained(*allowed.getAsArray(), value))
    return llvm::Error::success();
  return wrongValue(path, fixed.name, value,
                    "one of " + shown(allowed) + " (nothing else is computed)");
}

/// The method that quantized a checkpoint, nothing where it cannot be told. Older configs imply it:
/// only compressed-tensors wrote compression_config, only bitsandbytes has load_in_8bit.
static std::optional<llvm::StringRef> quantizationMethod(llvm::StringRef key,
                                                         const llvm::json::Value &quantization) {
  const llvm::json::Object *object = quantization.getAsObject();
  if (!object)
    return quantization.getAsString();
  if (auto method = object->getString("quant_method"))
    return method;
  if (key == "compression_config")
    return "compressed-tensors";
  if (object->getBoolean("load_in_8bit").value_or(false) ||
      object->getBoolean("load_in_4bit").value_or(false))
    return "bitsandbytes";
  return std::nullopt;
}

/// Checkpoints whose tensors are codes of a method (gptq, awq, fp8, compressed-tensors,
/// bitsandbytes).
static llvm::Error refuseQuantized(llvm::StringRef path, llvm::StringRef key,
                                   const llvm::json::Value &quantization) {
  std::optional<llvm::StringRef> method = quantizationMethod(key, quantization);
  return inputError(path,
                    inQuotes(key) + ": the checkpoint is quantized" +
                        (method ? " by " + inQuotes(*method) : std::string()) +
                        ", which is not read",
                    remedy::notQuantized);
}

llvm::Error KeyReader::readPresent(llvm::StringRef key, const llvm::json::Value &value,
                                   std::vector<IgnoredKey> &ignored) {
  // A family may fix what is read for others, and read what is fixed for others.
  if (const FixedKey *fixed = findFixed(family.fixed, key))
    return checkFixed(path, *fixed, value);
  if (const KeyRule *rule = findRule(key)) {
    bool isNull = value.kind() == llvm::json::Value::Null;
    if (isNull && rule->null == Null::Allowed)
      return llvm::Error::success();
    return std::visit(Store(h, path, *rule, value, findTwin(*rule)), rule->slot);
  }
  if ((key == "quantization_config" || key == "compression_config") &&
      value.kind() != llvm::json::Value::Null)
    return refuseQuantized(path, key, value);
  if (const FixedKey *fixed = findFixed(commonFixedKeys(), key))
    return checkFixed(path, *fixed, value);
  if (auto reason = whyIrrelevant(key, family.unread)) {
    if (*reason != reasons::used)
      ignored.push_back({path.str(), key.str(), reason->str()});
    return llvm::Error::success();
  }
  return inputError(path,
                    "has the key " + inQuotes(key) + ", which is not known for " + family.name +
                        " and could change what the model computes",
                    "remove it if it does not");
}

llvm::Error KeyReader::fillAbsent() {
  llvm::SmallVector<llvm::StringRef> done;
  for (llvm::ArrayRef<KeyRule> list : lists)
    for (const KeyRule &rule : list) {
      if (config.get(rule.name) || llvm::is_contained(done, rule.name))
        continue;
      done.push_back(rule.name);
      if (std::holds_alternative<Required>(rule.absent))
        return inputError(path,
                          "has no key " + inQuotes(rule.name) + ", which " + family.name + " needs",
                          "add it");
      std::visit(StoreDefault(h, rule), rule.slot);
    }
  return llvm::Error::success();
}

llvm::Expected<Hyperparameters> KeyReader::read(std::vector<IgnoredKey> &ignored) {
  llvm::SmallVector<llvm::StringRef> keys;
  for (const auto &entry : config)
    keys.push_back(entry.first);
  llvm::sort(keys); // so that of several wrong keys the same one is named every time
  for (llvm::StringRef key : keys)
    if (llvm::Error error = readPresent(key, *config.get(key), ignored))
      return std::move(error);
  if (llvm::Error error = fillAbsent())
    return std::move(error);
  return std::move(h);
}

} // namespace

llvm::Expected<Hyperparameters> readKeys(const llvm::json::Object &config, llvm::StringRef path,
                                         const Family &family, std::vector<IgnoredKey> &ignored) {
  return KeyReader(config, path, family).read(ignored);
}

} // namespace mica
