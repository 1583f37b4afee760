//===- OpComparison.cpp - comparison op by op -----------------------------===//

#include "tools/verify/OpComparison.h"

#include "frontend/support/InputError.h"
#include "ir/Interpreter/Moe.h"

using namespace llvm;

namespace mica::tool {

/// The maximum difference of expert scores that counts as a tie, relative to the possible rounding
/// error: for a gate that uses the program's rows, that of an f32 op; for one after other layers,
/// that of logits.
constexpr double kNearTie = 1e-5, kNearTieOfModel = 1e-4;

/// The values of a tensor in the form of probe files.
static std::vector<float> shownBy(const interp::Tensor &tensor) {
  return tensor.isFloat() ? tensor.floats
                          : std::vector<float>(tensor.ints.begin(), tensor.ints.end());
}

Error OpComparison::otherShape(const std::string &name) const {
  return inputError(reference, "has no op '" + name + "' of the program's shape",
                    "pass a model of the same shape to --against");
}

/// The probe of the experts chosen by `gate`; null if there is none.
static ProbeOp choicesOf(MoeGateOp gate) {
  for (mlir::Operation *user : gate.getExperts().getUsers())
    if (auto probe = dyn_cast<ProbeOp>(user))
      return probe;
  return {};
}

/// If the scores of two experts are nearly equal, the order of f32 sums decides, and everything
/// after the gate differs. A row for which the program has made another choice takes that choice if
/// it is a near tie. Returns the number of such rows.
static size_t takeNearTies(MoeGateOp gate, ArrayRef<interp::Value> operands,
                           MutableArrayRef<interp::Value> results, const ProbeRecords &seen,
                           size_t occurrence, double slack) {
  ProbeOp probe = choicesOf(gate);
  const ProbeRecords::Record *record =
      probe ? seen.find(probe.getName().str(), occurrence) : nullptr;
  interp::Tensor weights = *results[0].getTensor(), experts = *results[1].getTensor();
  // Another shape is reported at the probe.
  if (!record || record->values.size() != experts.ints.size())
    return 0;
  size_t count = gate.getK(), taken = 0;
  for (size_t at = 0; at < experts.ints.size(); at += count) {
    SmallVector<int64_t> chosen(ArrayRef(record->values).slice(at, count));
    if (ArrayRef(experts.ints).slice(at, count) == ArrayRef(chosen))
      continue;
    std::optional<SmallVector<float>> own =
        interp::weightsIfNearTie(gate, operands, static_cast<int64_t>(at / count), chosen, slack);
    if (!own)
      continue;
    copy(*own, weights.floats.begin() + static_cast<ptrdiff_t>(at));
    copy(chosen, experts.ints.begin() + static_cast<ptrdiff_t>(at));
    ++taken;
  }
  results[0] = interp::Value(std::move(weights));
  results[1] = interp::Value(std::move(experts));
  return taken;
}

Error OpComparison::compareOps(const ProgramRun &run, const ReferenceModel &alike,
                               Progress progress) {
  std::map<std::string, size_t> met;
  std::string other;
  size_t done = 0;
  auto trace = [&](mlir::Operation *op, ArrayRef<interp::Value> operands,
                   MutableArrayRef<interp::Value> results) {
    if (auto gate = dyn_cast<MoeGateOp>(op))
      if (ProbeOp choices = choicesOf(gate))
        findings.nearTies +=
            takeNearTies(gate, operands, results, run.seen, met[choices.getName().str()], kNearTie);
    auto probe = dyn_cast<ProbeOp>(op);
    if (!probe)
      return;
    std::string name = probe.getName().str();
    size_t occurrence = met[name]++;
    interp::Tensor tensor = *results.front().getTensor();
    std::vector<float> values = shownBy(tensor);
    const ProbeRecords::Record *record = run.seen.find(name, occurrence);
    // Norms with results in integer rows are not recorded, but the reference may store floats
    // instead.
    if (!record && !findings.manifest.blockFormats.empty())
      return;
    if (!record || record->values.size() != values.size()) {
      other = other.empty() ? name : other;
      return;
    }
    size_t experts = tensor.isFloat() ? 0 : static_cast<size_t>(tensor.rowSize());
    auto place = found.try_emplace(
        {name, occurrence},
        Comparison{name, record->layer, record->order, experts, run.role, {}, {}});
    Comparison &comparison = place.first->second;
    Distance distance = comparison.distance(record->values, values);
    if (distance.nmse > comparison.own.nmse)
      comparison.role = run.role;
    comparison.own.raise(distance);
    if (tensor.isFloat())
      tensor.floats = record->values;
    else
      tensor.ints.assign(record->values.begin(), record->values.end());
    results.front() = std::move(tensor);
    progress(static_cast<double>(++done) / (2 * static_cast<double>(run.seen.size())));
  };
  Expected<std::vector<float>> rows = alike.logits(run.text, run.role, trace);
  if (!rows)
    return rows.takeError();
  for (const auto &[name, occurrences] : run.seen)
    if (met[name] != occurrences.size())
      other = other.empty() ? name : other;
  if (!other.empty())
    return otherShape(other);
  // No test: an op of another shape is found first.
  if (rows->size() != run.logits.size())
    return inputError(reference, "has another vocabulary than the program",
                      "pass a model of the same shape to --against");
  return Error::success();
}

Error OpComparison::compareWithF32(const ProgramRun &run, const ReferenceModel &exact,
                                   Progress progress) {
  ProbeRecords own;
  std::map<std::string, size_t> met;
  auto trace = [&](mlir::Operation *op, ArrayRef<interp::Value> operands,
                   MutableArrayRef<interp::Value> results) {
    if (auto gate = dyn_cast<MoeGateOp>(op))
      if (ProbeOp choices = choicesOf(gate))
        findings.nearTiesOfModel += takeNearTies(gate, operands, results, run.seen,
                                                 met[choices.getName().str()]++, kNearTieOfModel);
    auto probe = dyn_cast<ProbeOp>(op);
    if (!probe)
      return;
    own.add(probe.getName(), /*layer=*/-1, shownBy(*results.front().getTensor()));
    progress(0.5 + 0.5 * static_cast<double>(own.size()) /
                       static_cast<double>(std::max<size_t>(run.seen.size(), 1)));
  };
  Expected<std::vector<float>> rows = exact.logits(run.text, run.role, trace);
  if (!rows)
    return rows.takeError();
  for (const auto &[name, occurrences] : run.seen)
    for (auto [number, record] : enumerate(occurrences)) {
      const ProbeRecords::Record *other = own.find(name, number);
      // The program shows an op only in some layers: in others, it quantizes its results.
      if (record.layer >= 0 && own.find(name, occurrences.size()))
        other = own.find(name, static_cast<size_t>(record.layer));
      if (!other || other->values.size() != record.values.size())
        return otherShape(name);
      Comparison &comparison = found.at({name, number});
      comparison.fromF32.raise(comparison.distance(record.values, other->values));
    }
  findings.ofLogits.raise(Distance(run.logits, *rows));
  auto vocab = static_cast<size_t>(findings.manifest.vocab);
  for (size_t row = 0; row < run.text.size(); ++row)
    if (!findings.quality.add(ArrayRef(run.logits).slice(row * vocab, vocab),
                              ArrayRef(*rows).slice(row * vocab, vocab),
                              run.text[std::min(row + 1, run.text.size() - 1)]))
      // No test: the program reports such logits first.
      return createStringError(findings.model +
                               ": computes logits that are not finite; compile it with --weights "
                               "f32 or check the checkpoint");
  return Error::success();
}

std::vector<Comparison> OpComparison::comparisons() const {
  std::vector<Comparison> result;
  for (const auto &[place, comparison] : found)
    result.push_back(comparison);
  sort(result, [](const Comparison &a, const Comparison &b) { return a.order < b.order; });
  return result;
}

} // namespace mica::tool
