//===- Findings.cpp - a program compared with the interpreter -------------===//

#include "tools/verify/Findings.h"

#include "tools/verify/ReferenceModel.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace mica::tool {

const Comparison *Findings::firstFault() const {
  auto fault = find_if(comparisons, [&](const Comparison &comparison) {
    return !(comparison.own.nmse <= bounds.op);
  });
  return fault == comparisons.end() ? nullptr : &*fault;
}

double Findings::worstOp() const {
  double worst = 0;
  for (const Comparison &comparison : comparisons)
    worst = std::max(worst, comparison.own.nmse);
  return worst;
}

/// Whether the number of mismatches is within three standard deviations of the bound.
bool Findings::reachesSameTop(double bound) const {
  auto count = static_cast<double>(quality.positions());
  double missed = (1 - quality.sameTop()) * count, expected = (1 - bound) * count;
  return missed <= expected + 3 * std::sqrt(expected * bound);
}

bool Findings::logitsPassed() const {
  return (!bounds.logits || ofLogits.largest <= *bounds.logits) &&
         (!bounds.kl || quality.divergence().mean() <= *bounds.kl) &&
         (!bounds.sameTop || reachesSameTop(*bounds.sameTop));
}

bool Findings::passed() const { return !firstFault() && logitsPassed(); }

std::string Findings::verdict() const {
  std::string ops =
      firstFault() ? "an op exceeds its tolerance" : "every op is within its tolerance";
  std::string ofTheLogits = !bounds.checksLogits()
                                ? "logits are not checked because " + bounds.reasonUnchecked.str()
                            : logitsPassed() ? "logits are within their tolerance"
                                             : "logits exceed their tolerance";
  return (passed() ? "passed: " : "FAILED: ") + ops + "; " + ofTheLogits;
}

std::string Findings::locationOf(const Comparison &comparison) const {
  std::string place = comparison.layer < 0
                          ? comparison.name
                          : formatv("layer {0}, {1}", comparison.layer, comparison.name).str();
  if (manifest.dependsOnRole)
    place += (" (" + nameOf(comparison.role) + ")").str();
  return place;
}

json::Object Findings::toJson() const {
  json::Array ops;
  for (const Comparison &comparison : comparisons) {
    json::Object op{
        {"op", json::fixUTF8(comparison.name)},
        {"layer", comparison.layer < 0 ? json::Value(nullptr) : json::Value(comparison.layer)},
        {"max", comparison.own.largest},
        {"nmse", comparison.own.nmse},
        {"nmse_from_f32", comparison.fromF32.nmse}};
    if (manifest.dependsOnRole)
      op["role"] = nameOf(comparison.role);
    ops.push_back(std::move(op));
  }
  const Comparison *fault = firstFault();
  auto limit = [](Bounds::Bound bound) {
    return bound ? json::Value(*bound) : json::Value(nullptr);
  };
  return json::Object{
      {"model", json::fixUTF8(model)},
      {"weights", rt::weightsText(manifest)},
      {"kv", nameOf(manifest.kv)},
      {"positions", static_cast<int64_t>(positions)},
      {"not_reached", json::Array(notReached)},
      {"ops", std::move(ops)},
      {"near_ties", json::Object{{"ops", static_cast<int64_t>(nearTies)},
                                 {"logits", static_cast<int64_t>(nearTiesOfModel)}}},
      {"logits", json::Object{{"max", ofLogits.largest}, {"nmse", ofLogits.nmse}}},
      {"kl", quality.divergence().mean()},
      {"same_top", quality.sameTop()},
      {"bounds", json::Object{{"op_nmse", bounds.op},
                              {"logits_max", limit(bounds.logits)},
                              {"kl", limit(bounds.kl)},
                              {"same_top", limit(bounds.sameTop)}}},
      {"verdict", verdict()},
      {"fault", fault ? json::Value(json::fixUTF8(locationOf(*fault))) : json::Value(nullptr)},
      {"passed", passed()}};
}

std::string Findings::toText() const {
  std::string text;
  raw_string_ostream out(text);
  out << formatv("{0}: weights {1}, kv {2}, {3} positions compared with the interpreter\n", model,
                 nameOf(manifest.weights), nameOf(manifest.kv), positions);
  for (const std::string &place : notReached)
    out << "not reached; see --positions: " << place << "\n";
  out << formatv("{0,5}  {1,-40} {2,10} {3,10} {4,12}\n", "layer", "op", "max", "NMSE",
                 "NMSE to f32");
  for (const Comparison &comparison : comparisons)
    out << formatv("{0,5}  {1,-40} {2,10:e2} {3,10:e2} {4,12:e2}{5}\n",
                   comparison.layer < 0 ? std::string("-") : std::to_string(comparison.layer),
                   comparison.name, comparison.own.largest, comparison.own.nmse,
                   comparison.fromF32.nmse,
                   comparison.own.nmse <= bounds.op ? "" : "  <- exceeds the tolerance");
  if (nearTies + nearTiesOfModel > 0)
    out << formatv(
        "near-tied routing, resolved as in the program: {0} rows of ops, {1} of the logits\n",
        nearTies, nearTiesOfModel);
  auto limit = [](Bounds::Bound bound, const char *format, double unit = 1) {
    return bound ? formatv(format, unit * *bound).str() : std::string();
  };
  out << formatv("ops       NMSE {0:e2} (tolerance {1:e1})\n", worstOp(), bounds.op);
  out << formatv("logits    max {0:e2}{1}, NMSE {2:e2}\n", ofLogits.largest,
                 limit(bounds.logits, " (tolerance {0:e0})"), ofLogits.nmse);
  out << formatv("KL        {0:e2}{1}\n", quality.divergence().mean(),
                 limit(bounds.kl, " (tolerance {0:e0})"));
  out << formatv("same top  {0:f1} %{1}\n", 100 * quality.sameTop(),
                 limit(bounds.sameTop, " (tolerance {0:f0} %)", 100));
  out << "verdict   " << verdict() << "\n";
  return text;
}

} // namespace mica::tool
