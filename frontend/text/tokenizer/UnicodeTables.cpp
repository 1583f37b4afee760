#include "frontend/text/tokenizer/UnicodeTables.h"

#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/base/Utf8.h"

#include "llvm/ADT/StringExtras.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

namespace mica {
namespace {

constexpr UChar32 hangulFirst = 0xAC00, hangulLast = 0xD7A3; // composed by arithmetic at run time

/// The decomposition of `point` returned by `lookUp`; empty if there is none.
template <typename LookUp>
std::vector<uint32_t> decomposition(LookUp lookUp, const UNormalizer2 *form, UChar32 point) {
  UChar units[64]; // the longest is 18 units
  UErrorCode status = U_ZERO_ERROR;
  int32_t length = lookUp(form, point, units, 64, &status);
  std::vector<uint32_t> out;
  if (length <= 0 || U_FAILURE(status))
    return out;
  for (int32_t i = 0; i < length;) {
    UChar32 part;
    U16_NEXT(units, i, length, part);
    out.push_back(static_cast<uint32_t>(part));
  }
  return out;
}

/// Whether `point` is in Unicode 9, the version used by the tokenizers package: later code points
/// are left unchanged.
bool isKnown(UChar32 point) {
  UVersionInfo age;
  u_charAge(point, age);
  return age[0] <= 9;
}

/// Calls `visit` for all code points that decompose or have a combining class.
template <typename Visit> void forEachActive(const UNormalizer2 *decomposing, Visit visit) {
  for (UChar32 point = 0x80; point <= UCHAR_MAX_VALUE; ++point)
    if (!unorm2_isInert(decomposing, point) && isKnown(point))
      visit(point);
}

void addDecompositions(const UNormalizer2 *form, const UNormalizer2 *decomposing,
                       TokenizerTable::NormalizerStep &step) {
  forEachActive(decomposing, [&](UChar32 point) {
    if (uint8_t itsClass = u_getCombiningClass(point))
      step.classes.insert(step.classes.end(), {static_cast<uint32_t>(point), itsClass});
    if (point >= hangulFirst && point <= hangulLast)
      return;
    auto parts = decomposition(unorm2_getDecomposition, form, point);
    if (parts.empty())
      return;
    step.decompositions.push_back(static_cast<uint32_t>(point));
    step.decompositions.push_back(static_cast<uint32_t>(parts.size()));
    step.decompositions.insert(step.decompositions.end(), parts.begin(), parts.end());
  });
}

void addCompositions(const UNormalizer2 *canonical, const UNormalizer2 *decomposing,
                     TokenizerTable::NormalizerStep &step) {
  forEachActive(decomposing, [&](UChar32 point) {
    auto pair = decomposition(unorm2_getRawDecomposition, canonical, point);
    if (pair.size() != 2 || unorm2_composePair(canonical, pair[0], pair[1]) != point)
      return;
    if (point >= hangulFirst && point <= hangulLast)
      return;
    step.compositions.insert(step.compositions.end(),
                             {pair[0], pair[1], static_cast<uint32_t>(point)});
  });
}

/// The numbers that complete a character class.
struct NumberSearch {
  rt::tokenizer::Regex known;
  rt::tokenizer::Regex::Searcher searcher{known};
  std::string missing = {};

  void meet(UChar32 point) {
    std::string character;
    rt::tokenizer::appendChar(character, static_cast<uint32_t>(point));
    if (rt::tokenizer::Regex::Match match; !searcher.find(character, 0, match))
      missing += "\\x{" + llvm::utohexstr(static_cast<uint32_t>(point)) + "}";
  }
};

/// Callback of u_enumCharTypes, which passes ranges of one category.
UBool addRange(const void *context, UChar32 start, UChar32 limit, UCharCategory category) {
  if (U_MASK(category) & U_GC_N_MASK)
    for (UChar32 point = start; point < limit; ++point)
      static_cast<NumberSearch *>(const_cast<void *>(context))->meet(point);
  return true;
}

} // namespace

TokenizerTable::NormalizerStep lowercaseStep() {
  TokenizerTable::NormalizerStep step{rt::tokenizer::NormalizerKind::CharacterMap};
  for (UChar32 point = 0; point <= UCHAR_MAX_VALUE; ++point) {
    if (!u_hasBinaryProperty(point, UCHAR_CHANGES_WHEN_LOWERCASED))
      continue;
    UChar from[2], to[16];
    int32_t length = 0, at = 0;
    U16_APPEND_UNSAFE(from, length, point);
    UErrorCode status = U_ZERO_ERROR;
    int32_t size = u_strToLower(to, 16, from, length, "", &status);
    std::vector<uint32_t> parts;
    while (at < size) {
      UChar32 part;
      U16_NEXT(to, at, size, part);
      parts.push_back(static_cast<uint32_t>(part));
    }
    step.characters.push_back(static_cast<uint32_t>(point));
    step.characters.push_back(static_cast<uint32_t>(parts.size()));
    step.characters.insert(step.characters.end(), parts.begin(), parts.end());
  }
  return step;
}

const std::string &numbersBesidePcre2() {
  static const std::string missing = [] {
    auto known = rt::tokenizer::Regex::compile("\\p{N}");
    if (!known)
      return std::string();
    NumberSearch search{std::move(*known)};
    u_enumCharTypes(addRange, &search);
    return std::move(search.missing);
  }();
  return missing;
}

TokenizerTable::NormalizerStep unicodeFormStep(UnicodeForm form) {
  TokenizerTable::NormalizerStep step{rt::tokenizer::NormalizerKind::UnicodeForm};
  step.compose = form == UnicodeForm::NFC || form == UnicodeForm::NFKC;
  bool compatibility = form == UnicodeForm::NFKC || form == UnicodeForm::NFKD;
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2 *canonical = unorm2_getNFCInstance(&status);
  if (compatibility)
    addDecompositions(unorm2_getNFKCInstance(&status), unorm2_getNFKDInstance(&status), step);
  else
    addDecompositions(canonical, unorm2_getNFDInstance(&status), step);
  if (step.compose)
    addCompositions(canonical, unorm2_getNFDInstance(&status), step);
  return step;
}

} // namespace mica
