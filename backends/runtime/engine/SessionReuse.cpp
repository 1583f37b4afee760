// Which positions of a sequence can be kept or copied, and how.
#include "backends/runtime/engine/Session.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <numeric>

namespace mica::rt {

/// Whether a cache still stores what a row at position `length` reads.
bool Session::isStored(const CacheSpec &cache, int64_t sequence, int64_t length) const {
  if (cache.window == 0)
    return true;
  const Computed &end = computed[sequence];
  // Positions before `kept` have been overwritten by computed positions.
  int64_t kept = (cache.slots > 0 ? end.states : end.caches) -
                 positionsOfCache(model.manifest(), cache, maxRows);
  // The first row of a chunk reads the whole chunk before it, and the matrix before that.
  int64_t first = cache.chunk > 0 ? (length - 1) / cache.chunk * cache.chunk //
                                  : length + 1 - cache.window;
  return kept <= 0 || first >= kept;
}

bool Session::areCachesStored(int64_t sequence, int64_t length) const {
  const std::vector<CacheSpec> &specs = model.manifest().caches;
  return std::all_of(specs.begin(), specs.end(), [&](const CacheSpec &cache) {
    return cache.slots > 0 || isStored(cache, sequence, length);
  });
}

bool Session::areStatesStored(int64_t sequence, int64_t length) const {
  const std::vector<CacheSpec> &specs = model.manifest().caches;
  return length >= computed[sequence].firstInState &&
         std::all_of(specs.begin(), specs.end(), [&](const CacheSpec &cache) {
           return cache.slots == 0 || isStored(cache, sequence, length);
         });
}

int64_t Session::rewindable(int64_t sequence, int64_t length) const {
  if (!areStatesStored(sequence, length))
    length = checkpoints->nearest(sequence, length);
  return areCachesStored(sequence, length) ? length : 0;
}

int64_t Session::rewind(int64_t sequence, int64_t length) {
  length = rewindable(sequence, length);
  if (length == 0) {
    startOver(sequence);
  } else if (!areStatesStored(sequence, length)) {
    checkpoints->restore(sequence, length);
    computed[sequence].states = computed[sequence].firstInState = length;
  }
  checkpoints->drop(sequence, length);
  forget(sequence, length);
  return length;
}

/// The number of thresholds that a length exceeds.
size_t Session::ropeRegime(int64_t length) const {
  const std::vector<int64_t> &thresholds = model.manifest().ropeLengthThresholds;
  return static_cast<size_t>(std::lower_bound(thresholds.begin(), thresholds.end(), length) -
                             thresholds.begin());
}

bool Session::canCopy(int64_t from, int64_t length, int64_t total) const {
  return model.manifest().ranks == 1 && areStatesStored(from, length) &&
         areCachesStored(from, length) &&
         (histories.empty() || histories[from].regime == ropeRegime(total));
}

bool Session::haveSameFrequencies(int64_t total, int64_t other) const {
  if (histories.empty())
    return true;
  size_t regime = ropeRegime(total);
  return regime == ropeRegime(other) &&
         (!model.manifest().ropeThetaGrows || regime == 0 || total == other);
}

void Session::copy(int64_t from, int64_t to, int64_t length) {
  assert(from != to);
  auto start = std::chrono::steady_clock::now();
  startOver(to);
  struct Part {
    const std::byte *from;
    std::byte *to;
    size_t bytes;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < caches.size(); ++i) {
    const CacheSpec &spec = model.manifest().caches[i];
    auto indexOf = [&](int64_t placeholder) {
      return std::ranges::find(spec.shape, placeholder) - spec.shape.begin();
    };
    // [layers, sequences, heads, blocks, elements] or [layers, sequences, ...]
    auto sizeOf = [&, &shape = cacheShapes[i]](int64_t begin, int64_t end) {
      return std::accumulate(shape.begin() + begin, shape.begin() + end, size_t(1),
                             std::multiplies<size_t>());
    };
    auto rank = static_cast<int64_t>(spec.shape.size()),
         ofSequences = indexOf(CacheSpec::batchSize), ofBlocks = indexOf(CacheSpec::blockCount);
    size_t layers = sizeOf(0, ofSequences), sequences = sizeOf(ofSequences, ofSequences + 1),
           bytesOfSequence = sizeOf(ofSequences + 1, rank) * spec.elementBytes(), numHeads = 1;
    size_t bytes = bytesOfSequence;
    // States are copied as a whole, and so are ring buffers that later positions have overwritten.
    if (ofBlocks < rank &&
        computed[from].caches <= positionsOfCache(model.manifest(), spec, maxRows)) {
      numHeads = sizeOf(ofSequences + 1, ofBlocks);
      int64_t block = model.manifest().positionBlock;
      bytes = static_cast<size_t>((length + block - 1) / block) * sizeOf(ofBlocks + 1, rank) *
              spec.elementBytes();
    }
    auto *data = static_cast<std::byte *>(caches[i].data());
    for (size_t layer = 0; layer < layers; ++layer)
      for (size_t head = 0; head < numHeads; ++head) {
        auto at = [&](int64_t sequence) {
          return data + (layer * sequences + static_cast<size_t>(sequence)) * bytesOfSequence +
                 head * (bytesOfSequence / numHeads);
        };
        parts.push_back({at(from), at(to), bytes});
      }
  }
  forEachTask(model.runtime().pool(), static_cast<int64_t>(parts.size()), [&](int64_t i) {
    const Part &part = parts[static_cast<size_t>(i)];
    std::memcpy(part.to, part.from, part.bytes);
  });
  secondsCopying += secondsSince(start);
  computed[to] = computed[from];
  if (!heads.empty() && heads[to].isWanted)
    heads[to].rows = heads[from].rows;
  if (!histories.empty())
    histories[to] = histories[from];
  forget(to, length);
}

/// Discards everything that a sequence has computed.
void Session::startOver(int64_t sequence) {
  computed[sequence] = {};
  checkpoints->drop(sequence, 0);
}

/// Discards all positions of a sequence after the first `length`.
void Session::forget(int64_t sequence, int64_t length) {
  lengths[sequence] = length;
  if (!heads.empty())
    heads[sequence].rows.rewind(length);
  if (histories.empty())
    return;
  SequenceHistory &known = histories[sequence];
  known.ids.resize(std::min(known.ids.size(), static_cast<size_t>(length)));
  known.roles.resize(std::min(known.roles.size(), static_cast<size_t>(length)));
  known.totalLength = std::min(known.totalLength, length);
  known.uniform = std::min(known.uniform, length);
}

int64_t Session::reusableFor(int64_t total, int64_t sequence, int64_t length) const {
  if (!model.manifest().ropeThetaGrows || histories.empty() || histories[sequence].regime == 0)
    return length;
  const SequenceHistory &known = histories[sequence];
  return known.lengthOfFirst == total ? std::min(length, known.uniform) : 0;
}

} // namespace mica::rt
