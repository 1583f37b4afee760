#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/ReservedTokens.h"
#include "backends/runtime/text/tokenizer/TokenizerParts.h"

#include <cstring>
#include <functional>

namespace mica::rt {

using namespace tokenizer;

namespace {

/// A cache of the ids of words: English text repeats a few thousand words. Direct-mapped, one cache
/// line per entry.
class WordCache {
public:
  static constexpr size_t entries = 1u << 14, maxBytes = 22, maxIds = 10;

  /// Appends the word's ids and returns true, or false when it must be encoded.
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t> &ids) const {
    const Entry &entry = table[hash % entries];
    if (entry.bytes != word.size() || std::memcmp(entry.word, word.data(), word.size()) != 0)
      return false;
    ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
    return true;
  }
  void remember(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (ids.size() > maxIds)
      return;
    Entry &entry = table[hash % entries];
    entry.bytes = static_cast<uint8_t>(word.size());
    entry.count = static_cast<uint8_t>(ids.size());
    std::memcpy(entry.word, word.data(), word.size());
    std::memcpy(entry.ids, ids.data(), ids.size_bytes());
  }

private:
  struct Entry {
    uint8_t bytes = 0, count = 0; // bytes 0: empty
    char word[maxBytes];
    int32_t ids[maxIds];
  };
  std::vector<Entry> table = std::vector<Entry>(entries);
};

/// `error` at this byte of a text.
Error at(size_t byte, const Error &error) {
  return {error.message + " from byte " + std::to_string(byte) +
          " of the text on; change the text there or split it"};
}

class Encoding final : public PreTokenizer::Sink {
public:
  /// Takes words until there are more than `maxIds`.
  Encoding(const Model &model, const SplitPoints &splitPoints, bool cached,
           std::vector<int32_t> &ids, size_t maxIds)
      : model(model), splitPoints(splitPoints), ids(ids), maxIds(maxIds) {
    if (cached)
      cache.emplace();
  }
  bool word(std::string_view text) override {
    return splitPoints.forEach(text, [this](std::string_view part) {
      encode(part);
      return ids.size() <= maxIds;
    });
  }

private:
  void encode(std::string_view text) {
    if (!cache || text.size() > WordCache::maxBytes)
      return model.encode(text, ids);
    uint64_t hash = hashBytes(text);
    if (cache->find(text, hash, ids))
      return;
    size_t first = ids.size();
    model.encode(text, ids);
    cache->remember(text, hash, std::span<const int32_t>(ids).subspan(first));
  }

  const Model &model;
  const SplitPoints &splitPoints;
  std::vector<int32_t> &ids;
  const size_t maxIds;
  std::optional<WordCache> cache;
};

} // namespace

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(std::span<const std::byte> bytes,
                                  std::span<const std::string> templateLiterals) {
  Result<Table> table = openTable(bytes);
  if (!table)
    return table.error();
  reserveTokens(*table, templateLiterals);
  auto parts = std::make_unique<Parts>(std::move(*table));
  Result<AddedTokens> added = AddedTokens::create(parts->table, parts->normalizer);
  if (!added)
    return added.error();
  parts->addedTokens = std::move(*added);
  Result<PreTokenizer> preTokenizer = PreTokenizer::create(parts->table);
  if (!preTokenizer)
    return preTokenizer.error();
  parts->preTokenizer = std::move(*preTokenizer);
  for (uint32_t id = 0; id < parts->table.pieces(); ++id)
    if (parts->table.pieceFlags[id] & PieceFlags::control)
      parts->special[id] = true;
  return Tokenizer(std::move(parts));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool addSpecial,
                                               const ByteRanges &given, size_t maxIds) const {
  constexpr size_t worthCaching = 4096; // bytes; below, clearing the cache costs more than it saves
  std::string repaired;
  ByteRanges untrusted = given;
  if (!isUtf8(text)) {
    text = repaired = repairUtf8(text);
    if (!given.empty())
      (untrusted = {}).add(0, text.size());
  }
  std::vector<int32_t> ids;
  if (addSpecial)
    ids = parts->table.prefixIds;
  bool words = !parts->table.preTokenizer.empty() || parts->splitPoints.any();
  bool cached = words && text.size() >= worthCaching;
  Encoding encoding(*parts->model, parts->splitPoints, cached, ids, maxIds);
  PreTokenizer::Scratch scratch = parts->preTokenizer.makeScratch();
  for (const AddedTokens::Part &raw :
       parts->addedTokens.split(text, /*normalized=*/false, untrusted)) {
    if (ids.size() > maxIds)
      break;
    if (raw.id != -1) {
      ids.push_back(raw.id);
      continue;
    }
    std::string_view segment = text.substr(raw.begin, raw.end - raw.begin);
    std::string normalized;
    Normalizer::Trace trace;
    if (parts->addedTokens.normalizedGuarded())
      trace.untrusted.add(untrusted, raw.begin, raw.end, 0);
    if (!parts->normalizer.identity()) {
      Result<std::string> applied = parts->normalizer.apply(segment, trace);
      if (!applied)
        return at(raw.begin + trace.failedAt, applied.error());
      segment = normalized = *std::move(applied);
    }
    for (const AddedTokens::Part &part :
         parts->addedTokens.split(segment, /*normalized=*/true, trace.untrusted)) {
      if (ids.size() > maxIds)
        break;
      bool atStart = raw.begin == 0 && part.begin == 0 && !trace.moved;
      if (part.id != -1)
        ids.push_back(part.id);
      else
        parts->preTokenizer.split(segment.substr(part.begin, part.end - part.begin), atStart,
                                  scratch, encoding);
    }
    if (const Regex::Searcher *failed = PreTokenizer::failure(scratch)) {
      // Steps that change the text have their own range lookup.
      const char *place = failed->failedText().data();
      bool own =
          std::less<>()(place, text.data()) || std::less<>()(text.data() + text.size(), place);
      return at(own ? raw.begin : place - text.data(), failed->failure().error());
    }
  }
  if (addSpecial && ids.size() <= maxIds)
    ids.insert(ids.end(), parts->table.suffixIds.begin(), parts->table.suffixIds.end());
  return ids;
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(parts->table.pieces()); }

bool Tokenizer::isSpecial(int32_t id) const { return id < 0 || id >= size() || parts->special[id]; }

std::optional<int32_t> Tokenizer::find(std::string_view spelling) const {
  for (const AddedToken &token : parts->table.addedTokens)
    if (token.content == spelling)
      return token.id;
  for (uint32_t id = 0; id < parts->table.pieces(); ++id)
    if (!spelling.empty() && parts->table.piece(id) == spelling)
      return static_cast<int32_t>(id);
  return std::nullopt;
}

} // namespace mica::rt
