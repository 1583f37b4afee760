#include "backends/runtime/engine/StateCheckpoints.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <numeric>

namespace mica::rt {

namespace {
/// The part of a checkpoint that belongs to one state, as blocks of bytes in the state's memory.
class StateCopy {
public:
  StateCopy(const StateCheckpoints::State &state, int64_t sequences, int64_t sequence)
      : spec(*state.spec), data(state.data), sequences(sequences), sequence(sequence) {
    bytesOfLayer = spec.elementBytes();
    for (size_t i = 2; i < spec.shape.size(); ++i)
      bytesOfLayer *= static_cast<uint64_t>(spec.shape[i]);
  }

  /// Calls `visit` with the address and the size of each block, in the order of the checkpoint.
  template <typename Visit> void eachBlock(int64_t length, Visit visit) const {
    for (int64_t layer = 0; layer < spec.shape[0]; ++layer)
      if (spec.matrix > 0)
        for (int64_t head = 0; head < spec.shape[2]; ++head)
          visit(matrix(layer, head, length / spec.chunk), matrixBytes());
      else
        for (int64_t position = length + 1 - spec.window; position < length; ++position)
          visit(row(layer, position), bytesOfLayer / static_cast<uint64_t>(spec.slots));
  }

  /// Makes the ring of a recurrent state one of positions that add nothing to the matrix before
  /// them, which is the one after the first `length` positions.
  void neutralizeRing(int64_t length) const {
    if (spec.matrix == 0)
      return;
    uint64_t ofRing = static_cast<uint64_t>(spec.shape[3]) * sizeof(float) - 2 * matrixBytes();
    auto slots = static_cast<size_t>(spec.slots);
    for (int64_t layer = 0; layer < spec.shape[0]; ++layer)
      for (int64_t head = 0; head < spec.shape[2]; ++head) {
        std::byte *ring = at(layer, head) + 2 * matrixBytes();
        std::memset(ring, 0, ofRing);
        std::fill_n(reinterpret_cast<float *>(ring + ofRing) - slots, slots, 1.0f);
        std::memcpy(matrix(layer, head, length / spec.chunk - 1),
                    matrix(layer, head, length / spec.chunk), matrixBytes());
      }
  }

private:
  uint64_t matrixBytes() const { return static_cast<uint64_t>(spec.matrix) * sizeof(float); }
  std::byte *at(int64_t layer) const {
    return data + static_cast<uint64_t>(layer * sequences + sequence) * bytesOfLayer;
  }
  std::byte *at(int64_t layer, int64_t head) const {
    return at(layer) +
           static_cast<uint64_t>(head) * bytesOfLayer / static_cast<uint64_t>(spec.shape[2]);
  }
  std::byte *matrix(int64_t layer, int64_t head, int64_t chunk) const {
    return at(layer, head) + static_cast<uint64_t>(chunk % 2) * matrixBytes();
  }
  std::byte *row(int64_t layer, int64_t position) const {
    return at(layer) + static_cast<uint64_t>(position % spec.slots) * bytesOfLayer /
                           static_cast<uint64_t>(spec.slots);
  }

  const CacheSpec &spec;
  std::byte *data;
  int64_t sequences, sequence;
  uint64_t bytesOfLayer; ///< of one sequence
};
} // namespace

Result<uint64_t> checkpointBudget(const Manifest &manifest, std::optional<uint64_t> asked,
                                  uint64_t available) {
  // Those of several ranks would have to be restored together.
  uint64_t each = manifest.ranks > 1 ? 0 : checkpointBytes(manifest);
  if (each == 0) {
    if (asked && *asked > 0)
      reportWarning(std::string(manifest.ranks > 1
                                    ? "programs for several ranks take no checkpoints"
                                    : "the model has no states of fixed size") +
                    "; --checkpoint-bytes has no effect");
    return uint64_t(0);
  }
  if (asked && *asked > 0 && *asked < each)
    return Error{"--checkpoint-bytes " + std::to_string(*asked) +
                 " is too small for a single checkpoint of " + std::to_string(each) +
                 " bytes; raise it, or pass 0 for no checkpoints"};
  constexpr uint64_t share = 8;
  return asked.value_or(available / share);
}

StateCheckpoints::StateCheckpoints(std::vector<State> given, int64_t sequences, uint64_t budget)
    : states(std::move(given)), ofSequence(static_cast<size_t>(sequences)) {
  for (const State &state : states) {
    unit = std::lcm(unit, checkpointUnit(*state.spec));
    bytesOfEach += checkpointBytes(*state.spec);
  }
  if (bytesOfEach > 0)
    maxCount = budget / bytesOfEach;
}

int64_t StateCheckpoints::positionBefore(int64_t end) const {
  int64_t position = (end - 1) / unit * unit;
  // The matrix before the first chunk is never read.
  return position >= 2 * unit ? position : 0;
}

int64_t StateCheckpoints::nearest(int64_t sequence, int64_t length) const {
  int64_t best = 0;
  for (const Checkpoint &each : ofSequence[static_cast<size_t>(sequence)])
    if (each.length <= length)
      best = each.length;
  return best;
}

bool StateCheckpoints::isStored(int64_t length, int64_t end) const {
  return std::all_of(states.begin(), states.end(), [&](const State &state) {
    const CacheSpec &spec = *state.spec;
    return spec.matrix > 0 ? end <= length + 2 * spec.chunk
                           : end - spec.slots <= length + 1 - spec.window;
  });
}

void StateCheckpoints::take(int64_t sequence, int64_t length) {
  std::unique_ptr<std::byte[]> data;
  if (count < maxCount)
    data.reset(new (std::nothrow) std::byte[bytesOfEach]);
  if (!data) {
    // There is not as much memory as when the budget was chosen; checkpoints are optional. No test:
    // it would have to exhaust memory at this place.
    if (count == 0)
      return;
    data = evict();
  }
  std::byte *to = data.get();
  for (const State &state : states)
    StateCopy(state, std::ssize(ofSequence), sequence)
        .eachBlock(length, [&](const std::byte *from, uint64_t size) {
          std::memcpy(to, from, size);
          to += size;
        });
  ofSequence[static_cast<size_t>(sequence)].push_back({length, ++uses, std::move(data)});
  ++count;
}

void StateCheckpoints::restore(int64_t sequence, int64_t length) {
  Checkpoints &own = ofSequence[static_cast<size_t>(sequence)];
  auto found = std::find_if(own.begin(), own.end(),
                            [&](const Checkpoint &each) { return each.length == length; });
  found->used = ++uses;
  const std::byte *from = found->data.get();
  for (const State &state : states) {
    StateCopy copy(state, std::ssize(ofSequence), sequence);
    copy.eachBlock(length, [&](std::byte *to, uint64_t size) {
      std::memcpy(to, from, size);
      from += size;
    });
    copy.neutralizeRing(length);
  }
}

void StateCheckpoints::drop(int64_t sequence, int64_t length) {
  count -= std::erase_if(ofSequence[static_cast<size_t>(sequence)],
                         [&](const Checkpoint &each) { return each.length > length; });
}

/// Removes the least valuable checkpoint, and returns its memory. A rewind to just before the next
/// checkpoint recomputes everything since the previous one instead of since this one; the value is
/// what it then recomputes, divided by what it recomputes and discards, as if the sequence ended
/// one unit after its last checkpoint.
std::unique_ptr<std::byte[]> StateCheckpoints::evict() {
  Checkpoints *from = nullptr;
  size_t index = 0;
  double minValue = 0;
  for (Checkpoints &own : ofSequence)
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t end = own.back().length + unit, before = i > 0 ? own[i - 1].length : 0,
              after = i + 1 < own.size() ? own[i + 1].length : end;
      double value = static_cast<double>(after - before) / static_cast<double>(end - before);
      if (!from || value < minValue || (value == minValue && own[i].used < (*from)[index].used)) {
        from = &own;
        index = i;
        minValue = value;
      }
    }
  std::unique_ptr<std::byte[]> data = std::move((*from)[index].data);
  from->erase(from->begin() + static_cast<std::ptrdiff_t>(index));
  --count;
  return data;
}

} // namespace mica::rt
