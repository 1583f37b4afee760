// Copies of the states of fixed size, from which sequences continue after a rewind.
//
// A recurrent state holds the matrices of the last two multiples of its chunk, a rolling state the
// last rows. A sequence that is rewound further continues at a checkpoint: the matrix of each head
// after a multiple of the chunk, and the rows of rolling states that the next row reads. When it is
// restored, the ring of a recurrent state is filled with positions that add nothing (zeros, with a
// decay of one), so the matrices computed from it are bit-identical to those of a sequence that was
// never rewound. The matrices of a state and its ring are described in docs/state.md.
//
// All sequences share a budget. If a new checkpoint does not fit, the one goes whose loss lengthens
// a recomputation least in relation to what the rewind discards: they become sparser toward the
// beginning of a sequence, by a constant factor. Among equals, the least recently used one goes.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_STATECHECKPOINTS_H
#define MICA_BACKENDS_RUNTIME_ENGINE_STATECHECKPOINTS_H

#include "backends/runtime/abi/Manifest.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>

namespace mica::rt {

/// The bytes of checkpoints that all sequences may take: `asked` or an eighth of the memory that is
/// `available` (Model::memoryBesidesWeights); 0 for models without states of fixed size. Errors:
/// `asked` is positive, but too small for a single checkpoint.
Result<uint64_t> checkpointBudget(const Manifest &manifest, std::optional<uint64_t> asked,
                                  uint64_t available);

class StateCheckpoints {
public:
  /// The positions between checkpoints of a growing sequence, except for those on request.
  static constexpr int64_t kSpacing = 256;

  /// A state's memory, [layers, sequences, ...] as in `spec`, which must outlive the checkpoints.
  struct State {
    const CacheSpec *spec;
    std::byte *data;
  };

  StateCheckpoints(std::vector<State> states, int64_t sequences, uint64_t budget);

  /// Whether the budget allows any, and the model has states.
  bool isEnabled() const { return maxCount > 0; }
  /// The bytes of all checkpoints; may be called from any thread.
  uint64_t bytes() const { return count * bytesOfEach; }

  /// The last position before `end` at which a checkpoint is possible; 0: none.
  int64_t positionBefore(int64_t end) const;
  /// The longest checkpoint of at most `length` positions; 0: none.
  int64_t nearest(int64_t sequence, int64_t length) const;
  /// Copies the states after the first `length` positions, a result of positionBefore that is
  /// longer than all checkpoints of the sequence. The states must have computed at least one
  /// further position, and still hold what these positions left; see isStored.
  void take(int64_t sequence, int64_t length);
  /// Makes the states those after the first `length` positions, a result of nearest.
  void restore(int64_t sequence, int64_t length);
  /// Drops the checkpoints of more than `length` positions.
  void drop(int64_t sequence, int64_t length);
  /// Whether states that have computed `end` positions still hold what the first `length` left.
  bool isStored(int64_t length, int64_t end) const;

private:
  struct Checkpoint {
    int64_t length = 0;
    uint64_t used = 0; ///< larger: later
    std::unique_ptr<std::byte[]> data;
  };
  using Checkpoints = std::vector<Checkpoint>; ///< ascending

  std::unique_ptr<std::byte[]> evict();

  std::vector<State> states;
  std::vector<Checkpoints> ofSequence;
  int64_t unit = 1; ///< lengths are multiples of it
  uint64_t bytesOfEach = 0, maxCount = 0, uses = 0;
  std::atomic<uint64_t> count = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_STATECHECKPOINTS_H
