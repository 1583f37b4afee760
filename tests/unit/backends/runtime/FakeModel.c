// A model object like those of the compiler, with simple results: the next token after tokens t0 t1
// ... is (7 + sum over i of t_i (i + 1)) mod vocab, read back from its cache. It checks the runtime's
// guarantees (order of rows, sizes, alignment, zeroed caches) and returns NaN if one is violated;
// rows that attend to the token `poison` are NaN as well. With FOLLOWS_LENGTHS, rows depend on the
// sequence length, on two sides of a threshold: a row must only attend to positions that were
// computed on its own side. With DEPENDS_ON_ROLE, the logits of a decoded row are those of the next
// token but one. With HAS_WINDOW, rows attend to the last positions, in a cache that is a ring of
// blocks; a position that was overwritten is detected. The function between kernels is called
// before and after the logits are computed; rows are NaN if another call uses the same scratch.
#include "backends/runtime/abi/RuntimeTable.h"

#include <stddef.h>

enum { block = 4, threshold = 8, longRegime = 1 << 20 };
#ifdef HAS_WINDOW
enum { window = 5, ofPosition = 64 };
#endif

// Indices of the arguments, in another order than in compiled models; fakeManifest lists them.
enum {
  logitsArgument,
  positionsArgument,
  keysArgument,
  weightsArgument,
  outputsArgument,
  tokensArgument,
  valuesArgument,
  sequencesArgument,
  scratchArgument,
  lengthsArgument,
};

typedef struct {
  void *allocated, *aligned;
  int64_t offset, size, stride;
} Vector;
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} Matrix;
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[3], strides[3];
} Cube;

// The unit tests listen here; a program has no such function.
__attribute__((weak)) void mica_fake_trace(int64_t rows, const int32_t *tokens,
                                           const int32_t *sequences, const int32_t *positions,
                                           int64_t outputs, const int32_t *outputRows,
                                           int64_t role);

typedef struct {
  const Vector *tokens, *sequences, *positions, *outputs, *lengths; ///< lengths: or null
  const Cube *cache;
  const Vector *weights, *scratch;
  const Matrix *logits;
  int64_t rows; ///< of the logits
  int broken;
  int64_t shift; ///< of the next token
} Call;

static int32_t at(const Vector *v, int64_t i) {
  return ((const int32_t *)v->aligned)[v->offset + i * v->stride];
}

static float *cell(const Cube *cache, int64_t sequence, int64_t position) {
  return (float *)cache->aligned + sequence * cache->strides[0] +
         position / block % cache->sizes[1] * cache->strides[1] +
         position % block * cache->strides[2];
}

/// The first position that a row attends to.
static int64_t firstSeen(int64_t position) {
#ifdef HAS_WINDOW
  return position < window ? 0 : position + 1 - window;
#else
  return 0;
#endif
}

/// Added to the cached token to identify the position, if slots are reused.
static int32_t markOf(int64_t position) {
#ifdef HAS_WINDOW
  return (int32_t)position * ofPosition;
#else
  return 0;
#endif
}

static int mayHold(const Cube *cache, int64_t position) {
#ifdef HAS_WINDOW
  return 1;
#else
  return position < cache->sizes[1] * block;
#endif
}

/// Added to the cached token beyond the threshold: more than the size of any vocabulary.
static int32_t ropeRegimeOf(const Call *call, int64_t row) {
  return call->lengths && at(call->lengths, row) > threshold ? longRegime : 0;
}

static void append(Call *call) {
  int64_t rows = call->tokens->size;
  for (int64_t r = 0; r < rows; ++r) {
    int32_t sequence = at(call->sequences, r), position = at(call->positions, r),
            token = at(call->tokens, r);
    int follows = r > 0 && at(call->sequences, r - 1) == sequence;
    if (follows && at(call->positions, r - 1) + 1 != position)
      call->broken = 1;
    for (int64_t earlier = 0; !follows && earlier < r; ++earlier)
      if (at(call->sequences, earlier) == sequence)
        call->broken = 1;
    if (!mayHold(call->cache, position) ||
        (position > 0 && *cell(call->cache, sequence, position - 1) == 0))
      call->broken = 1;
    if (call->lengths && at(call->lengths, r) <= position)
      call->broken = 1;
    *cell(call->cache, sequence, position) =
        (float)(token + 1 + ropeRegimeOf(call, r) + markOf(position));
  }
}

static void check(Call *call) {
  if (call->scratch->size < 256 * call->tokens->size + 1024 ||
      (uintptr_t)call->scratch->aligned % 64 != 0)
    call->broken = 1;
  if (call->weights->size != 64 || *(const float *)call->weights->aligned != 1.0f)
    call->broken = 1;
  for (int64_t i = 0; !call->broken && i < call->scratch->size; ++i)
    ((volatile char *)call->scratch->aligned)[i] = 1;
  *(const Call **)call->scratch->aligned = call;
}

static void head(void *context, int64_t begin, int64_t end) {
  const Call *call = context;
  int64_t vocab = call->logits->sizes[1];
  for (int64_t o = begin; o < end; ++o) {
    int32_t row = at(call->outputs, o);
    int64_t next = 7 + call->shift;
    int broken = call->broken || *(const Call **)call->scratch->aligned != call;
    for (int64_t p = firstSeen(at(call->positions, row)); p <= at(call->positions, row); ++p) {
      int64_t seen = (int64_t)*cell(call->cache, at(call->sequences, row), p) - markOf(p);
      broken |= seen < 1 || (call->lengths ? 0 : seen > vocab);
      int64_t token = seen % longRegime - 1;
      broken |= (seen > longRegime) != (ropeRegimeOf(call, row) > 0) || token == vocab - 1;
      next += token * (p + 1);
    }
    float *logits = (float *)call->logits->aligned + o * call->logits->strides[0];
    for (int64_t v = 0; v < vocab; ++v)
      logits[v] = broken ? __builtin_nanf("") : v == next % vocab ? 1.0f : -0.01f * (float)v;
  }
}

// The table for profiles: 1000 bytes of weights, 10 per position, 2000 operations per row.
void (*const mica_kernel_tasks[])(void *, int64_t, int64_t) = {head, 0};
const char mica_kernel_names[] = "head";
const int64_t mica_kernel_costs[][11] = {
    {offsetof(Call, rows), 1000, 0, 0, 0, 0, 0, 10, 2000, 0, 0}};

const int64_t mica_runtime_bytes = sizeof(RuntimeTable);

void mica_forward(void *const *d, int64_t role, const RuntimeTable *runtime) {
  Call call = {.tokens = d[tokensArgument],
               .sequences = d[sequencesArgument],
               .positions = d[positionsArgument],
               .outputs = d[outputsArgument],
               .cache = d[keysArgument],
               .weights = d[weightsArgument],
               .scratch = d[scratchArgument],
               .logits = d[logitsArgument]};
#ifdef FOLLOWS_LENGTHS
  call.lengths = d[lengthsArgument];
#endif
#ifdef DEPENDS_ON_ROLE
  call.shift = role == 0;
#endif
  call.rows = call.outputs->size;
  if (mica_fake_trace)
    mica_fake_trace(call.tokens->size, call.tokens->aligned, call.sequences->aligned,
                    call.positions->aligned, call.outputs->size, call.outputs->aligned, role);
  check(&call);
  append(&call);
  runtime->parallelFor(runtime->runtime, head, &call, call.outputs->size);
  if (mica_fake_trace)
    runtime->parallelFor(runtime->runtime, head, &call, 0);
}
