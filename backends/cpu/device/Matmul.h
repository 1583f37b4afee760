// Large matrix products through oneDNN, run on the program's own pool.
#ifndef MICA_BACKENDS_CPU_DEVICE_MATMUL_H
#define MICA_BACKENDS_CPU_DEVICE_MATMUL_H

#include "backends/cpu/device/Pool.h"
#include "backends/runtime/abi/MatmulShape.h"
#include "backends/runtime/support/Result.h"

#include <memory>
#include <string>
#include <vector>

namespace mica::rt {

/// The threads that a primitive may expect; no more work for it. How it blocks its work depends on
/// them; sums over K must not, or results would depend on the number of threads. oneDNN 3.7 shares
/// those out among 16 and more threads where tile registers multiply bf16 and K exceeds 1024, and
/// in f32 where K is huge beside the rest and threads outnumber blocks of columns; so it is given
/// fewer (unit test ThreadsChangeNoBit; oneDNN promises nothing). Products that are as deep and
/// that Mica's own tiles do not take are rare.
int expectedThreads(const MatmulShape &shape, int threads, bool tileRegisters);

/// Makes oneDNN use no instructions beyond LLVM's `features`: which ones multiply decides the order
/// of a sum. Holds for the process, from the first call on that precedes all products; later ones
/// have no effect.
void limitInstructions(const std::vector<std::string> &features);

/// Creates a oneDNN primitive per shape, once, and keeps the most recently used ones.
class Matmul {
public:
  /// Primitives kept. A model has some ten shapes per number of rows.
  static constexpr size_t capacity = 256;

  explicit Matmul(Pool &pool);
  ~Matmul();

  /// Errors: a shape without an implementation in oneDNN on this CPU. May be called from a body of
  /// the pool (runs inline then) and from several threads.
  Status run(const MatmulShape &shape, const void *a, const void *w, void *c);
  size_t primitives() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_CPU_DEVICE_MATMUL_H
