//===- CompileSummary.cpp - the last line of mica compile -----------------===//

#include "tools/mica/CompileSummary.h"

#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SizeText.h"
#include "frontend/support/InputError.h"
#include "tools/support/Support.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace mica::tool {

/// The names in descending order of the number of tensors.
static std::string formatNames(const std::map<std::string, int64_t> &formats) {
  SmallVector<std::pair<int64_t, std::string>> byCount;
  for (const auto &[name, count] : formats)
    byCount.push_back({-count, StringRef(name).upper()});
  sort(byCount);
  return joinWithAnd(
      map_to_vector(byCount, [](const auto &each) { return StringRef(each.second); }));
}

static std::string formatsText(const CompileSummary &summary) {
  std::string weights = nameOf(summary.weights).str(), text = weights;
  bool isOfNumbers = summary.source == "F32" || summary.source == "F16" || summary.source == "BF16";
  if (summary.isConverted && isInteger(summary.weights))
    text = summary.source + " requantized to " + weights;
  else if (summary.isConverted && !isOfNumbers)
    text = summary.source + " expanded to " + weights;
  else if (!summary.rounded.empty())
    text = joinWithAnd(to_vector_of<StringRef>(summary.rounded)) + " rounded to " + weights;
  if (!summary.preservedBlocks.empty()) {
    // In a file with blocks, few weights are numbers; they are mentioned if they lose precision.
    text = (isOfNumbers || !summary.rounded.empty() ? text + ", " : "") +
           formatNames(summary.preservedBlocks) + " preserved";
  }
  if (summary.hasInt8Rows)
    text += ", int8 activations in prefill";
  if (isInteger(summary.kv))
    text += ", " + nameOf(summary.kv).str() + " cache";
  return text;
}

/// The precision loss of the formats; empty if negligible.
static std::string costText(const CompileSummary &summary) {
  bool preserves = !summary.preservedBlocks.empty();
  CheckpointKind kind =
      summary.isConverted || preserves ? CheckpointKind::Blocks : CheckpointKind::Floats;
  const PrecisionCosts &known = costsOf(summary.weights, kind);
  std::string text;
  if (!preserves)
    text = known.textOf(summary.statistics, summary.hasInt8Rows);
  else if (summary.hasInt8Rows)
    text = "up to " + maxCostOfInt8Rows().str();
  // No program with both was measured.
  if (StringRef cache = costsOf(summary.kv, kind).cache; !cache.empty())
    text += (text.empty() ? "" : ", of the cache alone ") + cache.str();
  return text.empty() ? "" : "; KL divergence on " + measuredModelOf(kind).str() + ": " + text;
}

std::string shellCommand(StringRef path) {
  std::string command = path.contains('/') ? path.str() : ("./" + path).str();
  auto isPlain = [](char c) { return isAlnum(c) || StringRef("_-./+@%:,=").contains(c); };
  return all_of(command, isPlain) ? command : rt::shellQuoted(command);
}

std::string CompileSummary::toText() const {
  std::string text = "wrote " + output + " (" + rt::bytesText(static_cast<double>(bytes)) + ", " +
                     formatsText(*this) + costText(*this) + ")";
  if (!plugins.empty())
    text += ", with " + joinWithAnd(to_vector_of<StringRef>(plugins)) + " next to it";
  if (!foreignTarget.empty())
    text += "; copy " + std::string(plugins.empty() ? "it" : "them") + " to " +
            (ranks > 1 ? "machines" : "a machine") + " with a " + foreignTarget;
  else if (ranks == 1 || !plugins.empty())
    // OpenMPI binds each of two ranks to one core by default.
    text +=
        "; try " +
        (ranks > 1 ? "mpirun -n " + std::to_string(ranks) + " --bind-to none " : std::string()) +
        shellCommand(output) +
        (hasChat        ? " chat"
         : hasTokenizer ? " 'Once upon a time'"
                        : " --tokens 1,2,3");
  return rt::printable(text);
}

} // namespace mica::tool
