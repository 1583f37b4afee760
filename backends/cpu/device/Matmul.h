// Large matmuls with oneDNN, run on the program's thread pool.
#ifndef MICA_BACKENDS_CPU_DEVICE_MATMUL_H
#define MICA_BACKENDS_CPU_DEVICE_MATMUL_H

#include "backends/cpu/device/Pool.h"
#include "backends/runtime/abi/MatmulShape.h"
#include "backends/runtime/support/Result.h"

#include <memory>
#include <string>
#include <vector>

namespace mica::rt {

/// The number of threads that a primitive is created for; no more threads work on it. oneDNN's
/// blocking depends on this number, but the blocking of sums over K must not, or results would
/// depend on the number of threads. oneDNN 3.7 distributes K among threads if there are at least
/// 16, bf16 uses AMX tiles and K exceeds 1024; and in f32 if K is much larger than the other
/// dimensions and there are more threads than blocks of columns. In these cases the returned number
/// is lower than `threads` (unit test ThreadsChangeNoBit; oneDNN guarantees nothing). Matmuls with
/// such a K that are not computed by Mica's own AMX kernels are rare.
int expectedThreads(const MatmulShape &shape, int threads, bool tileRegisters);

/// Restricts oneDNN to instructions in LLVM's `features`, because the instruction set determines
/// the order of sums. Applies to the whole process; only the first call has an effect, and must
/// precede all matmuls.
void limitInstructions(const std::vector<std::string> &features);

/// Creates a oneDNN primitive per shape, once, and keeps the most recently used ones.
class Matmul {
public:
  /// The maximum number of cached primitives. A model has about ten shapes per number of rows.
  static constexpr size_t capacity = 256;

  explicit Matmul(Pool &pool);
  ~Matmul();

  /// c = a w^T with the shapes, strides and accumulation of `shape`. Fails if oneDNN has no
  /// implementation of the shape on this CPU. May be called from several threads, and from a body
  /// of the pool, in which case it runs inline.
  Status run(const MatmulShape &shape, const void *a, const void *w, void *c);
  size_t primitives() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_MATMUL_H
