// The shapes of linear/onednn in bf16, over the same layout of weights, on the pool.
#include "tests/bench/UkernelBenchmarks.h"

#include <cmath>
#include <cstring>
#include <oneapi/dnnl/dnnl_ukernel.hpp>
#include <random>
#include <stdexcept>

namespace mica::bench {

#ifdef DNNL_EXPERIMENTAL_UKERNEL
namespace {
using dnnl::memory;
using dnnl::ukernel::brgemm;
using test::GuardedMemory;

constexpr int64_t panel = 64;
/// The operands of a ukernel call: rows times a part of a panel. The part, the sums of all rows for
/// the panel, and the columns of 512 rows for the part fit in an L2 cache of 1 MiB.
constexpr int64_t tileRows = 64, tileBytes = 64 << 10;

float floatOf(uint16_t bf16) { return llvm::bit_cast<float>(uint32_t(bf16) << 16); }

/// y = x W for `copies` equal matrices.
class Product {
public:
  Product(rt::WorkPool &pool, Shape shape, int64_t rows)
      : pool(pool), n(shape.n), k(shape.k), rows(rows), copies(copiesOf(double(n * k * size))),
        x(rows * k * size, 64), w(copies * n * k * size, 64), y(rows * n * 4, 64),
        offsets(1, {0, 0}) {
    tile = std::min(tileRows, rows);
    depth = std::min(k, tileBytes / panel / size);
    if (rows % tile || k % depth || n % panel)
      throw std::runtime_error("no whole number of tiles");
    start = kernel(/*add=*/false);
    goOn = kernel(/*add=*/true);
    std::mt19937 random(1);
    fill(random, x.bytes());
    fill(random, w.bytes().take_front(n * k * size));
    for (int64_t copy = 1; copy < copies; ++copy)
      std::memcpy(w.data() + copy * n * k * size, w.data(), n * k * size);
  }

  int64_t count() const { return copies; }

  void run(int64_t copy) {
    struct Context {
      const Product &product;
      const uint8_t *w;
    } context{*this, w.data() + copy * n * k * size};
    pool.parallelFor(
        [](void *opaque, int64_t begin, int64_t end) {
          auto &self = *static_cast<Context *>(opaque);
          self.product.start.set_hw_context();
          for (int64_t panel = begin; panel < end; ++panel)
            self.product.runPanel(self.w, panel);
        },
        &context, n / panel);
  }

  /// Whether the first and the last elements of y equal a plain sum.
  bool isRight() const {
    for (int64_t row : {int64_t(0), rows - 1})
      for (int64_t column : {int64_t(0), panel - 1, panel, n - 1}) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += numberAt(x, row * k + i) * numberAt(w, weightAt(column, i));
        float is;
        std::memcpy(&is, y.data() + (row * n + column) * 4, 4);
        if (!(std::abs(is - sum) < 1e-3))
          return false;
      }
    return true;
  }

private:
  static constexpr int64_t size = 2; ///< of bf16

  brgemm kernel(bool add) const {
    using type = memory::data_type;
    brgemm made(tile, panel, depth, 1, k, panel, n, type::bf16, type::bf16, type::f32);
    made.set_add_C(add);
    made.finalize();
    if (made.get_B_pack_type() != dnnl::ukernel::pack_type::pack32)
      throw std::runtime_error("the ukernel takes another layout on this machine");
    made.generate();
    return made;
  }

  /// Numbers between -1 and 1.
  void fill(std::mt19937 &random, llvm::MutableArrayRef<uint8_t> bytes) const {
    std::uniform_real_distribution<float> number(-1, 1);
    for (size_t at = 0; at < bytes.size(); at += size) {
      uint32_t bits = llvm::bit_cast<uint32_t>(number(random)) >> 16;
      std::memcpy(bytes.data() + at, &bits, size);
    }
  }

  int64_t weightAt(int64_t column, int64_t i) const {
    int64_t together = 4 / size;
    return column / panel * panel * k + i / together * together * panel +
           column % panel * together + i % together;
  }
  static double numberAt(const GuardedMemory &memory, int64_t at) {
    return floatOf(reinterpret_cast<uint16_t *>(memory.data())[at]);
  }

  void runPanel(const uint8_t *weights, int64_t number) const {
    const uint8_t *own = weights + number * panel * k * size;
    uint8_t *result = y.data() + number * panel * 4;
    for (int64_t i = 0; i < k; i += depth)
      for (int64_t row = 0; row < rows; row += tile)
        (i == 0 ? start : goOn)
            .execute(x.data() + (row * k + i) * size, own + i * panel * size, offsets,
                     result + row * n * 4, nullptr);
  }

  rt::WorkPool &pool;
  int64_t n, k, rows, copies, tile, depth;
  GuardedMemory x, w, y;
  std::vector<std::pair<memory::dim, memory::dim>> offsets;
  brgemm start, goOn; ///< the first part along K, and the following ones
};

UkernelBenchmark product(rt::WorkPool &pool, Shape shape) {
  UkernelBenchmark made;
  made.name = test::fill("linear/ukernel/bf16/{N}x{K}", {{"N", shape.n}, {"K", shape.k}});
  made.format = "bf16";
  made.rows = {std::begin(libraryRows), std::end(libraryRows)};
  made.calls = [&pool, shape](int64_t rows) {
    auto product = std::make_shared<Product>(pool, shape, rows);
    product->run(0);
    if (!product->isRight())
      throw std::runtime_error("a wrong product");
    std::vector<std::function<void()>> calls;
    for (int64_t copy = 0; copy < product->count(); ++copy)
      calls.emplace_back([=] { product->run(copy); });
    return calls;
  };
  made.work = [=](int64_t rows) {
    auto weights = double(shape.n * shape.k);
    return Work{2 * weights, 2 * weights * double(rows)};
  };
  return made;
}
} // namespace

std::vector<UkernelBenchmark> ukernelBenchmarks(rt::WorkPool &pool) {
  std::vector<UkernelBenchmark> all;
  for (Shape shape : productShapes)
    all.push_back(product(pool, shape));
  return all;
}
#else
std::vector<UkernelBenchmark> ukernelBenchmarks(rt::WorkPool &) { return {}; }
#endif

} // namespace mica::bench
