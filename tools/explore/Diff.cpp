//===- Diff.cpp - differences of models and programs ----------------------===//

#include "tools/explore/Diff.h"

#include "backends/runtime/abi/ManifestKeys.h"
#include "frontend/support/InputError.h"
#include "passes/pipelines/Stages.h"
#include "tools/explore/LineDiff.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
namespace keys = mica::rt::manifest_keys;

namespace mica::explore {

Expected<json::Object> parseManifestJson(StringRef text, StringRef path) {
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed) {
    consumeError(parsed.takeError());
    return inputError(path, "has a manifest that is not JSON", "compile it again");
  }
  if (json::Object *object = parsed->getAsObject())
    return std::move(*object);
  return inputError(path, "has a manifest that is not an object", "compile it again");
}

/// Values by key, for both sides; null if a side does not have the key.
class Pairs {
  struct Pair {
    json::Value a = nullptr, b = nullptr;
  };

public:
  void setA(const std::string &key, json::Value value) { pairs[key].a = std::move(value); }
  void setB(const std::string &key, json::Value value) { pairs[key].b = std::move(value); }

  /// The values that differ, as objects with the key under `name`.
  json::Array differences(StringRef name) const {
    json::Array found;
    for (const auto &[key, pair] : pairs)
      if (pair.a != pair.b)
        found.push_back(json::Object{{name, json::fixUTF8(key)}, {"a", pair.a}, {"b", pair.b}});
    return found;
  }

private:
  std::map<std::string, Pair> pairs;
};

/// Calls `set` for each value nested in `value` that is not an object, with its keys joined by
/// dots.
static void flatten(const json::Value &value, const std::string &prefix,
                    function_ref<void(const std::string &, const json::Value &)> set) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return set(prefix, value);
  for (const auto &[key, inner] : *object)
    flatten(inner, prefix.empty() ? key.str() : prefix + "." + key.str(), set);
}

/// Manifest keys that are compared separately.
static constexpr rt::ManifestKey kElsewhere[] = {keys::kernels, keys::ops, keys::weightBytes,
                                                 keys::scratch, keys::cost};

template <typename Set> static void addConfig(const DiffSide &side, Set set) {
  for (const auto &[key, value] : side.manifest)
    if (none_of(kElsewhere, [&](rt::ManifestKey other) { return key.str() == other.text; }))
      flatten(value, key.str(), set);
}

/// The number of instructions of each kernel, if known.
static StringMap<int64_t> instructionsOf(const Record &record) {
  StringMap<int64_t> counts;
  for (const StageRecord &stage : record.stages)
    if (stage.name == getStageInfo(Stage::Asm).name)
      for (const OpRecord &op : stage.ops)
        if (op.parent >= 0)
          ++counts[stage.places[op.parent]];
  return counts;
}

template <typename Set> static void addKernels(const DiffSide &side, Set set) {
  StringMap<int64_t> counts;
  if (side.record)
    counts = instructionsOf(*side.record);
  if (const json::Object *kernels = side.manifest.getObject(keys::kernels.text))
    for (const auto &[key, places] : *kernels) {
      auto count = counts.find(key.str() + ".task");
      json::Object kernel{{"location", places}};
      if (count != counts.end())
        kernel["instructions"] = count->second;
      set(key.str(), std::move(kernel));
    }
}

static int64_t sumOfBytes(const Record &record) {
  int64_t sum = 0;
  for (const WeightRecord &weight : record.weights)
    sum += weight.bytes;
  return sum;
}

template <typename Set> static void addBytes(const DiffSide &side, Set set) {
  if (side.record)
    set("weights", sumOfBytes(*side.record));
  else if (std::optional<int64_t> bytes = side.manifest.getInteger(keys::weightBytes.text))
    set("weights", *bytes);
  for (rt::ManifestKey key : {keys::scratch, keys::cost})
    if (const json::Object *values = side.manifest.getObject(key.text))
      for (const auto &[name, value] : *values)
        set(std::string(key.text) + "." + name.str(), value);
  int64_t perToken = 0;
  if (const json::Array *caches = side.manifest.getArray(keys::caches.text))
    for (const json::Value &cache : *caches)
      if (const json::Object *each = cache.getAsObject())
        perToken += each->getInteger(keys::bytesPerToken.text).value_or(0);
  set("caches_per_token", perToken);
}

template <typename Set> static void addWeights(const DiffSide &side, Set set) {
  for (const WeightRecord &weight : side.record->weights)
    set(weight.name, json::Object{{"type", json::fixUTF8(weight.type)}, {"bytes", weight.bytes}});
}

static void countOps(const StageRecord &stage,
                     function_ref<void(const std::string &, json::Value)> set) {
  std::vector<int64_t> counts(stage.kinds.size());
  for (const OpRecord &op : stage.ops)
    ++counts[op.kind];
  for (auto [kind, count] : zip(stage.kinds, counts))
    set(kind, count);
}

static json::Array hunksOf(const LineDiff &lines) {
  json::Array hunks;
  for (const Hunk &hunk : lines.hunks) {
    json::Array texts;
    for (const std::string &line : hunk.lines)
      texts.push_back(json::fixUTF8(line));
    hunks.push_back(json::Object{{"line_a", static_cast<int64_t>(hunk.beginA)},
                                 {"lines_a", static_cast<int64_t>(hunk.countA)},
                                 {"line_b", static_cast<int64_t>(hunk.beginB)},
                                 {"lines_b", static_cast<int64_t>(hunk.countB)},
                                 {"lines", std::move(texts)}});
  }
  return hunks;
}

static json::Array diffStages(const Record &a, const Record &b, ArrayRef<std::string> shown) {
  json::Array stages;
  for (const auto &[first, second] : zip(a.stages, b.stages)) {
    Pairs ops;
    countOps(first,
             [&](const std::string &kind, json::Value count) { ops.setA(kind, std::move(count)); });
    countOps(second,
             [&](const std::string &kind, json::Value count) { ops.setB(kind, std::move(count)); });
    if (first.text == second.text)
      continue;
    LineDiff lines = diffLines(first.text, second.text);
    json::Object stage{{"stage", first.name},
                       {"lines_only_in_a", static_cast<int64_t>(lines.onlyInA)},
                       {"lines_only_in_b", static_cast<int64_t>(lines.onlyInB)},
                       {"ops", ops.differences("op")}};
    if (is_contained(shown, first.name))
      stage["hunks"] = hunksOf(lines);
    stages.push_back(std::move(stage));
  }
  return stages;
}

json::Object diffOf(const DiffSide &a, const DiffSide &b, ArrayRef<std::string> stages) {
  json::Object diff{{"mica_diff", 1}, {"a", json::fixUTF8(a.path)}, {"b", json::fixUTF8(b.path)}};
  bool isIdentical = true;
  auto put = [&](StringRef key, json::Array differences) {
    isIdentical &= differences.empty();
    diff[key] = std::move(differences);
  };
  auto compare = [&](StringRef key, StringRef name, auto add) {
    Pairs pairs;
    add(a, [&](const std::string &each, json::Value value) { pairs.setA(each, std::move(value)); });
    add(b, [&](const std::string &each, json::Value value) { pairs.setB(each, std::move(value)); });
    put(key, pairs.differences(name));
  };
  compare("config", "key", [](const DiffSide &side, auto set) { addConfig(side, set); });
  compare("bytes", "of", [](const DiffSide &side, auto set) { addBytes(side, set); });
  compare("kernels", "kernel", [](const DiffSide &side, auto set) { addKernels(side, set); });
  if (a.record && b.record) {
    compare("weights", "weight", [](const DiffSide &side, auto set) { addWeights(side, set); });
    put("stages", diffStages(*a.record, *b.record, stages));
  }
  diff["identical"] = isIdentical;
  return diff;
}

/// A value of a difference; a dash if a side does not have it.
static std::string shown(const json::Value *value) {
  if (!value || value->kind() == json::Value::Null)
    return "-";
  if (const json::Object *object = value->getAsObject()) {
    if (std::optional<StringRef> type = object->getString("type"))
      return formatv("{0} ({1} bytes)", *type, object->getInteger("bytes").value_or(0));
    if (std::optional<int64_t> count = object->getInteger("instructions"))
      return formatv("{0} instructions", *count);
    return "present";
  }
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  return formatv("{0}", *value);
}

static void printSection(raw_ostream &out, const json::Object &diff, StringRef key,
                         StringRef name) {
  const json::Array *differences = diff.getArray(key);
  if (!differences || differences->empty())
    return;
  out << key << "\n";
  for (const json::Value &each : *differences) {
    const json::Object &pair = *each.getAsObject();
    std::string a = shown(pair.get("a")), b = shown(pair.get("b"));
    // Kernels of equal size that belong to other ops.
    if (a != b)
      out << formatv("  {0}: {1} -> {2}\n", *pair.getString(name), a, b);
    else
      out << formatv("  {0}: {1}, used by different ops\n", *pair.getString(name), a);
  }
}

static void printHunks(raw_ostream &out, const json::Object &stage) {
  const json::Array *hunks = stage.getArray("hunks");
  if (!hunks)
    return;
  StringRef name = *stage.getString("stage");
  out << "--- A: " << name << "\n+++ B: " << name << "\n";
  for (const json::Value &each : *hunks) {
    const json::Object &hunk = *each.getAsObject();
    out << formatv("@@ -{0},{1} +{2},{3} @@\n", *hunk.getInteger("line_a"),
                   *hunk.getInteger("lines_a"), *hunk.getInteger("line_b"),
                   *hunk.getInteger("lines_b"));
    for (const json::Value &line : *hunk.getArray("lines"))
      out << *line.getAsString() << "\n";
  }
}

std::string diffText(const json::Object &diff) {
  std::string text;
  raw_string_ostream out(text);
  out << "A: " << *diff.getString("a") << "\nB: " << *diff.getString("b") << "\n";
  if (diff.getBoolean("identical").value_or(false))
    out << "no differences\n";
  printSection(out, diff, "config", "key");
  printSection(out, diff, "bytes", "of");
  printSection(out, diff, "weights", "weight");
  printSection(out, diff, "kernels", "kernel");
  if (const json::Array *stages = diff.getArray("stages"))
    for (const json::Value &each : *stages) {
      const json::Object &stage = *each.getAsObject();
      out << formatv("stage {0}: {1} lines only in A, {2} only in B\n", *stage.getString("stage"),
                     *stage.getInteger("lines_only_in_a"), *stage.getInteger("lines_only_in_b"));
      for (const json::Value &op : *stage.getArray("ops")) {
        const json::Object &pair = *op.getAsObject();
        out << formatv("  {0}: {1} -> {2}\n", *pair.getString("op"), shown(pair.get("a")),
                       shown(pair.get("b")));
      }
      printHunks(out, stage);
    }
  if (const json::Object *kl = diff.getObject("kl"))
    out << formatv("KL(A || B): {0:e3} +- {1:e1}, same top {2:f2} %\n", *kl->getNumber("mean"),
                   *kl->getNumber("error"), 100 * diff.getNumber("same_top").value_or(0));
  if (const json::Array *speed = diff.getArray("speed"))
    for (const json::Value &each : *speed) {
      const json::Object &test = *each.getAsObject();
      out << formatv("{0}: {1:f2} -> {2:f2} tokens/s\n", *test.getString("test"),
                     *test.getNumber("a"), *test.getNumber("b"));
    }
  return text;
}

} // namespace mica::explore
