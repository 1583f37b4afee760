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
/// dots. Named objects in an array are nested under their names.
static void flatten(const json::Value &value, const std::string &prefix,
                    function_ref<void(const std::string &, const json::Value &)> set) {
  if (const json::Array *array = value.getAsArray()) {
    auto nameOf = [](const json::Value &each) {
      const json::Object *object = each.getAsObject();
      return object ? object->getString(keys::cacheName.text) : std::nullopt;
    };
    if (array->empty() || !all_of(*array, nameOf))
      return set(prefix, value);
    for (const json::Value &each : *array)
      flatten(each, prefix + "." + nameOf(each)->str(), set);
    return;
  }
  const json::Object *object = value.getAsObject();
  if (!object)
    return set(prefix, value);
  for (const auto &[key, inner] : *object)
    flatten(inner, prefix.empty() ? key.str() : prefix + "." + key.str(), set);
}

/// Manifest keys that are compared separately.
static constexpr rt::ManifestKey kElsewhere[] = {keys::kernels, keys::ops, keys::weightBytes,
                                                 keys::scratch, keys::cost};

/// What is known about both sides: only a program has a chat template, only a model the sizes of
/// its layers.
struct Known {
  bool programs, models;
};

template <typename Set> static void addConfig(const DiffSide &side, Known known, Set set) {
  auto isElsewhere = [&](StringRef key) {
    return any_of(kElsewhere, [&](rt::ManifestKey other) { return key == other.text; }) ||
           (!known.programs && key == keys::chat.text);
  };
  for (const auto &[key, value] : side.manifest)
    if (!isElsewhere(key.str()))
      flatten(value, key.str(), set);
  if (known.models)
    for (const auto &[name, size] : side.record->sizes)
      set("model." + name, size);
}

/// The numbers of ops of each function at stage `kernels`, as manifests have them.
template <typename Set> static void addOps(const DiffSide &side, Set set) {
  if (const json::Object *ops = side.manifest.getObject(keys::ops.text))
    for (const auto &[function, counts] : *ops)
      set(function.str(), counts);
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

template <typename Set> static void addKernels(const DiffSide &side, Known known, Set set) {
  StringMap<int64_t> counts;
  if (known.models)
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

/// The bytes of all weights in memory, as in the manifest of a program.
static int64_t bytesOfWeights(const Record &record) {
  int64_t end = 0;
  for (const WeightRecord &weight : record.weights)
    end = std::max(end, weight.offset + weight.bytes);
  return end;
}

template <typename Set> static void addBytes(const DiffSide &side, Set set) {
  if (side.record)
    set("weights", bytesOfWeights(*side.record));
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
  Known known = {!a.record && !b.record, a.record && b.record};
  compare("config", "key", [&](const DiffSide &side, auto set) { addConfig(side, known, set); });
  compare("bytes", "of", [](const DiffSide &side, auto set) { addBytes(side, set); });
  compare("kernels", "kernel",
          [&](const DiffSide &side, auto set) { addKernels(side, known, set); });
  if (!known.models) {
    compare("functions", "function", [](const DiffSide &side, auto set) { addOps(side, set); });
  } else {
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
    if (object->get("location"))
      return "present";
    int64_t ops = 0;
    for (const auto &[op, count] : *object)
      ops += count.getAsInteger().value_or(0);
    return formatv("{0} ops", ops);
  }
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  return formatv("{0}", *value);
}

/// ", mica.cast - -> 2": the ops of a function whose numbers differ, if both sides have it.
static std::string differentOps(const json::Value *a, const json::Value *b) {
  const json::Object *first = a->getAsObject(), *second = b->getAsObject();
  if (!first || !second)
    return {};
  Pairs pairs;
  for (const auto &[op, count] : *first)
    pairs.setA(op.str(), count);
  for (const auto &[op, count] : *second)
    pairs.setB(op.str(), count);
  std::string text;
  for (const json::Value &each : pairs.differences("op")) {
    const json::Object &pair = *each.getAsObject();
    text += formatv(", {0} {1} -> {2}", *pair.getString("op"), shown(pair.get("a")),
                    shown(pair.get("b")));
  }
  return text;
}

/// Functions of stage `kernels` with their numbers of ops.
static void printFunctions(raw_ostream &out, const json::Object &diff) {
  const json::Array *functions = diff.getArray("functions");
  if (!functions || functions->empty())
    return;
  out << "functions at stage kernels\n";
  for (const json::Value &each : *functions) {
    const json::Object &pair = *each.getAsObject();
    const json::Value *a = pair.get("a"), *b = pair.get("b");
    out << formatv("  @{0}: {1} -> {2}{3}\n", *pair.getString("function"), shown(a), shown(b),
                   differentOps(a, b));
  }
}

/// "model.layers.3.mlp.down_proj.weight" => "model.layers.*.mlp.down_proj.weight".
static std::string withoutNumbers(StringRef name) {
  SmallVector<StringRef> words;
  name.split(words, '.');
  for (StringRef &word : words)
    if (!word.empty() && all_of(word, isDigit))
      word = "*";
  return join(words, ".");
}

/// Prints the differences, and the equal ones of several layers as one with their number.
static void printSection(raw_ostream &out, const json::Object &diff, StringRef key,
                         StringRef name) {
  const json::Array *differences = diff.getArray(key);
  if (!differences || differences->empty())
    return;
  struct Line {
    std::string name, change;
    size_t count;
  };
  std::vector<Line> lines;
  StringMap<size_t> known;
  for (const json::Value &each : *differences) {
    const json::Object &pair = *each.getAsObject();
    std::string a = shown(pair.get("a")), b = shown(pair.get("b"));
    // Kernels of equal size that belong to other ops.
    std::string change =
        a != b ? formatv(": {0} -> {1}", a, b).str() : ": " + a + ", used by different ops";
    StringRef own = *pair.getString(name);
    auto [line, isNew] = known.try_emplace(withoutNumbers(own) + change, lines.size());
    if (isNew)
      lines.push_back({own.str(), std::move(change), 1});
    else
      ++lines[line->second].count;
  }
  out << key << "\n";
  for (const Line &line : lines)
    if (line.count > 1)
      out << formatv("  {0} ({1} times){2}\n", withoutNumbers(line.name), line.count, line.change);
    else
      out << "  " << line.name << line.change << "\n";
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
  printFunctions(out, diff);
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
