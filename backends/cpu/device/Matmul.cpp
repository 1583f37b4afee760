#include "backends/cpu/device/Matmul.h"
#include "backends/runtime/support/Memory.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_threadpool.hpp>

namespace mica::rt {

namespace {
/// Adapts the pool to oneDNN's threadpool interface.
class PoolAdapter final : public dnnl::threadpool_interop::threadpool_iface {
public:
  explicit PoolAdapter(Pool &pool) : pool(pool) {}

  int get_num_threads() const override { return static_cast<int>(pool.threads()); }
  bool get_in_parallel() const override { return Pool::inParallelRegion(); }
  uint64_t get_flags() const override { return 0; }
  void parallel_for(int n, const std::function<void(int, int)> &body) override {
    struct Context {
      const std::function<void(int, int)> &body;
      int n;
    } context{body, n};
    pool.parallelFor(
        [](void *opaque, int64_t begin, int64_t end) {
          auto &self = *static_cast<Context *>(opaque);
          for (int64_t i = begin; i < end; ++i)
            self.body(static_cast<int>(i), self.n);
        },
        &context, n);
  }

private:
  Pool &pool;
};

struct Primitive {
  dnnl::matmul matmul;
  dnnl::memory::desc a, w, c, scratchpad;
};

/// Scratch memory of at least `size` bytes. One buffer per thread, because several threads may run
/// matmuls at the same time; it never shrinks.
Result<void *> scratchpad(size_t size) {
  static thread_local Memory buffer;
  if (size > buffer.size()) {
    Result<Memory> grown = Memory::reserve(size, Pages::Huge);
    if (!grown)
      return grown.error();
    buffer = std::move(*grown);
  }
  return buffer.data();
}

/// The element type of A and W and the layout of W for a format.
struct Operands {
  dnnl::memory::data_type type;
  dnnl::memory::format_tag tag;
};

Operands operandsOf(MatmulFormat format) {
  using type = dnnl::memory::data_type;
  using tag = dnnl::memory::format_tag;
  switch (format) {
  case MatmulFormat::F32:
    return {type::f32, tag::BA16a64b};
  case MatmulFormat::Bf16:
    return {type::bf16, tag::BA16a64b2a};
  }
  return {type::undef, tag::undef};
}

Primitive create(const dnnl::engine &engine, const MatmulShape &s) {
  using dnnl::memory;
  Operands operands = operandsOf(s.format);
  Primitive made;
  made.a = memory::desc({s.m, s.k}, operands.type, memory::dims{s.lda, 1});
  made.w = memory::desc({s.k, s.n}, operands.type, operands.tag);
  made.c = memory::desc({s.m, s.n}, memory::data_type::f32, memory::dims{s.ldc, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  dnnl::matmul::primitive_desc description(engine, made.a, made.w, made.c, attributes);
  made.scratchpad = description.scratchpad_desc();
  made.matmul = dnnl::matmul(description);
  return made;
}
} // namespace

/// Whether oneDNN uses AMX tiles for bf16: the CPU has them and limitInstructions allows them.
static bool multipliesInTiles() {
  auto amx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & amx) == amx;
}

int expectedThreads(const MatmulShape &shape, int threads, bool tileRegisters) {
  if (shape.format == MatmulFormat::Bf16 && shape.k > 1024 && tileRegisters)
    return std::min(threads, 15);
  constexpr int64_t huge = 20000, small = 512, columns = 64;
  bool deep = shape.k >= huge && shape.m <= small && shape.n <= small;
  if (shape.format == MatmulFormat::F32 && deep)
    return static_cast<int>(std::min<int64_t>(threads, (shape.n + columns - 1) / columns));
  return threads;
}

struct Matmul::State {
  using Entry = std::pair<MatmulShape, std::shared_ptr<const Primitive>>;

  explicit State(Pool &pool)
      : adapter(pool), engine(dnnl::engine::kind::cpu, 0),
        stream(dnnl::threadpool_interop::make_stream(engine, &adapter)) {}

  std::shared_ptr<const Primitive> find(const MatmulShape &shape) {
    std::lock_guard lock(mutex);
    auto known = index.find(shape);
    if (known != index.end()) {
      recent.splice(recent.begin(), recent, known->second);
      return known->second->second;
    }
    // The setting is thread-local.
    dnnl_threadpool_interop_set_max_concurrency(
        expectedThreads(shape, adapter.get_num_threads(), multipliesInTiles()));
    recent.emplace_front(shape, std::make_shared<Primitive>(create(engine, shape)));
    index[shape] = recent.begin();
    if (recent.size() > capacity) {
      index.erase(recent.back().first);
      recent.pop_back();
    }
    return recent.front().second;
  }

  PoolAdapter adapter;
  dnnl::engine engine;
  dnnl::stream stream;
  std::mutex mutex;
  std::list<Entry> recent; ///< Most recently used first.
  std::map<MatmulShape, std::list<Entry>::iterator> index;
};

void limitInstructions(const std::vector<std::string> &features) {
  auto has = [&](const char *name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  };
  if (has("amx-bf16") || !has("avx512f"))
    return;
  dnnl::set_max_cpu_isa(has("avx512bf16") ? dnnl::cpu_isa::avx512_core_bf16
                                          : dnnl::cpu_isa::avx512_core);
}

Matmul::Matmul(Pool &pool) {
  // Primitives are cached here; oneDNN's own cache would keep those that this cache has evicted.
  dnnl::set_primitive_cache_capacity(0);
  state = std::make_unique<State>(pool);
}

Matmul::~Matmul() = default;

size_t Matmul::primitives() const {
  std::lock_guard lock(state->mutex);
  return state->recent.size();
}

Status Matmul::run(const MatmulShape &shape, const void *a, const void *w, void *c) {
  if (shape.m <= 0 || shape.n <= 0)
    return {};
  try {
    std::shared_ptr<const Primitive> primitive = state->find(shape);
    Result<void *> room = scratchpad(primitive->scratchpad.get_size());
    if (!room)
      return room.error();
    const dnnl::engine &engine = state->engine;
    // oneDNN's memory objects require non-const pointers, but the primitive only reads sources and
    // weights.
    dnnl::memory source(primitive->a, engine, const_cast<void *>(a));
    dnnl::memory weights(primitive->w, engine, const_cast<void *>(w));
    dnnl::memory result(primitive->c, engine, c);
    dnnl::memory scratch(primitive->scratchpad, engine, *room);
    primitive->matmul.execute(state->stream, {{DNNL_ARG_SRC, source},
                                              {DNNL_ARG_WEIGHTS, weights},
                                              {DNNL_ARG_DST, result},
                                              {DNNL_ARG_SCRATCHPAD, scratch}});
    return {};
  } catch (const dnnl::error &error) {
    return Error{"oneDNN cannot multiply " + std::to_string(shape.m) + " x " +
                 std::to_string(shape.k) + " by " + std::to_string(shape.k) + " x " +
                 std::to_string(shape.n) + " on this CPU (" + error.what() +
                 "); compile for another --target"};
  }
}

} // namespace mica::rt
