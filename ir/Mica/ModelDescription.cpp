//===- ModelDescription.cpp - properties of a model besides its ops -------===//

#include "ir/Mica/ModelDescription.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <functional>

using namespace mlir;
using namespace mica;

static constexpr llvm::StringLiteral kMaxPositions = "max_positions";

namespace {
/// Reads the entries of a dictionary, each with the function for its name.
class DescriptionReader {
public:
  DescriptionReader(int64_t vocabulary, llvm::function_ref<InFlightDiagnostic()> emitError)
      : vocabulary(vocabulary), emitError(emitError) {}

  LogicalResult read(DictionaryAttr entries, ModelDescription &model) {
    return readAll(
        entries,
        {
            {"family", [&](Attribute value) { return text(value, model.family); }},
            {kMaxPositions,
             [&](Attribute value) {
               return integer(value, kMaxPositions, bounds::maxPositions, model.maxPositions);
             }},
            {"bos", [&](Attribute value) { return token(value, model.bos.emplace()); }},
            {"eos", [&](Attribute value) { return tokens(value, model.eos); }},
            {"generation", [&](Attribute value) { return sampling(value, model.generation); }},
        });
  }

private:
  using Entry = std::pair<StringRef, std::function<LogicalResult(Attribute)>>;

  LogicalResult readAll(DictionaryAttr entries, ArrayRef<Entry> known) {
    for (NamedAttribute entry : entries) {
      const auto *found = llvm::find_if(
          known, [&](const Entry &candidate) { return candidate.first == entry.getName(); });
      if (found == known.end())
        return emitError() << "has a mica.model with an entry " << entry.getName().getValue()
                           << ", which is unknown: expected one of "
                           << llvm::join(llvm::make_first_range(known), ", ");
      if (failed(found->second(entry.getValue())))
        return failure();
    }
    return success();
  }

  LogicalResult sampling(Attribute value, SamplingDefaults &into) {
    auto entries = dyn_cast<DictionaryAttr>(value);
    if (!entries)
      return refuse("generation", "a dictionary of defaults for sampling");
    SmallVector<Entry> known;
    for (const SamplingSetting<double> &setting : kSamplingNumbers)
      known.emplace_back(setting.name, [&](Attribute value) {
        return number(value, setting.name, setting.range, (into.*setting.slot).emplace());
      });
    known.emplace_back(kSamplingTopK.name, [&](Attribute value) {
      return integer(value, kSamplingTopK.name, kSamplingTopK.range, into.topK.emplace());
    });
    known.emplace_back(kDoSample,
                       [&](Attribute value) { return boolean(value, into.doSample.emplace()); });
    return readAll(entries, known);
  }

  LogicalResult text(Attribute value, std::string &into) {
    auto string = dyn_cast<StringAttr>(value);
    if (!string)
      return refuse("family", "a string");
    into = string.str();
    return success();
  }

  LogicalResult boolean(Attribute value, bool &into) {
    auto flag = dyn_cast<BoolAttr>(value);
    if (!flag)
      return refuse(kDoSample, "true or false");
    into = flag.getValue();
    return success();
  }

  LogicalResult integer(Attribute value, StringRef name, SettingRange<int64_t> range,
                        int64_t &into) {
    auto number = dyn_cast<IntegerAttr>(value);
    if (!number || !number.getType().isSignlessInteger(64) || !range.contains(number.getInt()))
      return refuse(name,
                    "an i64 from " + llvm::Twine(range.min) + " to " + llvm::Twine(range.max));
    into = number.getInt();
    return success();
  }

  LogicalResult number(Attribute value, StringRef name, SettingRange<double> range, double &into) {
    auto number = dyn_cast<FloatAttr>(value);
    // No range contains NaN.
    if (!number || !range.contains(number.getValueAsDouble())) {
      std::string expected;
      llvm::raw_string_ostream(expected) << llvm::format("%g to %g", range.min, range.max);
      return refuse(name, "an f64 from " + expected);
    }
    into = number.getValueAsDouble();
    return success();
  }

  LogicalResult token(Attribute value, int64_t &into) {
    return integer(value, "bos", {0, vocabulary - 1}, into);
  }

  LogicalResult tokens(Attribute value, std::vector<int64_t> &into) {
    auto list = dyn_cast<ArrayAttr>(value);
    if (!list)
      return refuse("eos", "a list of i64");
    for (Attribute id : list)
      if (failed(integer(id, "eos", {0, vocabulary - 1}, into.emplace_back())))
        return failure();
    return success();
  }

  LogicalResult refuse(StringRef name, const llvm::Twine &expected) {
    return emitError() << "has a mica.model whose entry " << name << " is not " << expected;
  }

  int64_t vocabulary;
  llvm::function_ref<InFlightDiagnostic()> emitError;
};
} // namespace

FailureOr<ModelDescription>
mica::readModelDescription(Attribute model, int64_t vocabulary,
                           llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto entries = dyn_cast_or_null<DictionaryAttr>(model);
  if (!entries || !entries.get(kMaxPositions))
    return emitError() << "has a mica.model without a number of positions: add an entry "
                          "max_positions = N : i64 of at least 1";
  ModelDescription description;
  if (failed(DescriptionReader(vocabulary, emitError).read(entries, description)))
    return failure();
  return description;
}
