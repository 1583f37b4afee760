// Matmuls that generated code delegates to a library.
#ifndef MICA_BACKENDS_RUNTIME_ABI_MATMULSHAPE_H
#define MICA_BACKENDS_RUNTIME_ABI_MATMULSHAPE_H

#include <compare>
#include <cstdint>
#include <string>

namespace mica::rt {

/// The storage formats of operands. The numbers are part of the model object's interface
/// (RuntimeCalls.def).
enum class MatmulFormat : int32_t {
  F32 = 0,  ///< A f32; W f32 as [N/64][K/16][16][64], oneDNN's BA16a64b; K padded to 16, N to 64
            ///< with zeros.
  Bf16 = 1, ///< A bf16; W bf16 as [N/64][K/32][16][64][2], oneDNN's BA16a64b2a; K padded to 32, N
            ///< to 64 with zeros.
};

/// C[m, n] = A[m, k] W, or += with `accumulate`. C is f32; lda and ldc count elements.
struct MatmulShape {
  int64_t m, n, k, lda, ldc;
  MatmulFormat format;
  bool accumulate;

  auto operator<=>(const MatmulShape &) const = default;
};

/// The name of a matmul in profiles; independent of the number of rows.
inline std::string matmulName(int64_t n, int64_t k, bool accumulate) {
  return "onednn_" + std::to_string(n) + "x" + std::to_string(k) + (accumulate ? "_residual" : "");
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_MATMULSHAPE_H
