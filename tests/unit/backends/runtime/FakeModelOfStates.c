// A model object with two states of fixed size, in the layout and with the formulas of
// docs/state.md: a rolling one, and a recurrent one of two layers and heads. Logits are chaotic, so
// any difference in the states is visible. fakeManifestOfStates describes it.
#include "backends/runtime/abi/RuntimeTable.h"

#include <stddef.h>

enum { layers = 2, heads = 2, keys = 2, values = 3, chunk = 32, slots = 64, window = 4 };
enum { matrix = keys * values, ofKeys = 2 * matrix, ofValues = ofKeys + slots * keys,
       ofDecays = ofValues + slots * values, ofHead = ofDecays + slots };

// Indices of the arguments, as in FakeModel.c.
enum {
  logitsArgument,
  positionsArgument,
  rollingArgument,
  weightsArgument,
  outputsArgument,
  tokensArgument,
  recurrentArgument,
  sequencesArgument,
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
  int64_t offset, sizes[4], strides[4];
} State;

__attribute__((weak)) void mica_fake_trace(int64_t rows, const int32_t *tokens,
                                           const int32_t *sequences, const int32_t *positions,
                                           int64_t outputs, const int32_t *outputRows,
                                           int64_t role);

static float key(int32_t token, int64_t i) { return 0.25f + 0.5f * (float)((token + i) % 3); }
static float value(int32_t token, int64_t i) { return 1.0f / (float)(1 + (5 * token + i) % 17); }
static float decayOf(int32_t token) { return 1.0f - 0.3f / (float)(1 + token % 13); }

/// Computes the matrix before chunk `c` from the one before the previous chunk and the ring.
static void closeChunk(float *head, int64_t c) {
  const float *from = head + (c - 1) % 2 * matrix;
  float *to = head + c % 2 * matrix;
  for (int64_t e = 0; e < matrix; ++e) {
    float weight = 1, sum = 0;
    for (int64_t p = c * chunk; p-- > (c - 1) * chunk;) {
      int64_t slot = p % slots;
      sum += weight * head[ofKeys + slot * keys + e / values] *
             head[ofValues + slot * values + e % values];
      weight *= head[ofDecays + slot];
    }
    to[e] = sum + (c > 1 ? weight * from[e] : 0);
  }
}

/// The sum of the results of a head after it has processed a token at position p.
static float step(float *head, int32_t token, int64_t p) {
  int64_t c = p / chunk, slot = p % slots;
  if (p % chunk == 0 && p > 0)
    closeChunk(head, c);
  for (int64_t i = 0; i < keys; ++i)
    head[ofKeys + slot * keys + i] = key(token, i);
  for (int64_t i = 0; i < values; ++i)
    head[ofValues + slot * values + i] = value(token, i);
  head[ofDecays + slot] = decayOf(token);
  float result = 0;
  for (int64_t e = 0; e < matrix; ++e) {
    float weight = 1, sum = 0;
    for (int64_t i = p; i >= c * chunk; --i) {
      sum += weight * head[ofKeys + i % slots * keys + e / values] *
             head[ofValues + i % slots * values + e % values];
      weight *= head[ofDecays + i % slots];
    }
    if (c > 0)
      sum += weight * head[c % 2 * matrix + e];
    result += key(token, e) * sum;
  }
  return result;
}

static void head(void *context, int64_t begin, int64_t end) {}

void (*const mica_kernel_tasks[])(void *, int64_t, int64_t) = {head, 0};
const char mica_kernel_names[] = "head";
const int64_t mica_kernel_costs[][11] = {{0}};
const int64_t mica_runtime_bytes = sizeof(RuntimeTable);

void mica_forward(void *const *d, int64_t role, const RuntimeTable *runtime) {
  const Vector *tokens = d[tokensArgument], *sequences = d[sequencesArgument],
               *positions = d[positionsArgument], *outputs = d[outputsArgument];
  const State *rolling = d[rollingArgument], *recurrent = d[recurrentArgument];
  const Matrix *logits = d[logitsArgument];
  if (mica_fake_trace)
    mica_fake_trace(tokens->size, tokens->aligned, sequences->aligned, positions->aligned,
                    outputs->size, outputs->aligned, role);
  int64_t output = 0;
  for (int64_t row = 0; row < tokens->size; ++row) {
    int32_t token = ((const int32_t *)tokens->aligned)[row];
    int64_t sequence = ((const int32_t *)sequences->aligned)[row],
            p = ((const int32_t *)positions->aligned)[row];
    float result = 0, *ring = (float *)rolling->aligned + sequence * rolling->strides[1];
    ring[p % slots] = value(token, 0);
    for (int64_t i = p; i >= 0 && i > p - window; --i)
      result = 0.7f * result + ring[i % slots];
    for (int64_t layer = 0; layer < layers; ++layer)
      for (int64_t h = 0; h < heads; ++h)
        result += step((float *)recurrent->aligned + layer * recurrent->strides[0] +
                           sequence * recurrent->strides[1] + h * recurrent->strides[2],
                       token + (int32_t)(layer + h), p);
    if (output == outputs->size || ((const int32_t *)outputs->aligned)[output] != row)
      continue;
    float *to = (float *)logits->aligned + output++ * logits->strides[0];
    for (int64_t v = 0; v < logits->sizes[1]; ++v) {
      float x = result * (float)(37 * v + 11);
      to[v] = x - (float)(int64_t)x;
    }
  }
}
