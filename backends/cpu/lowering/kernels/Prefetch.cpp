//===- Prefetch.cpp - reading streams of memory faster ------------------------------===//
//
// A hardware prefetcher follows a stream to the end of its page and begins anew on the next one;
// it follows several pages at once. So a loop that reads memory from front to back asks, line by
// line as it goes, for the lines of the next 8 pages in turn: one of the first page, one of the
// second, and so on. In bits of an address: [chunk][page of 8][line of 16][byte of 256] is asked
// for when [chunk - 1][line of 16][page of 8][byte of 256] is read.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/lowering/kernels/Tile.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

// In bytes. Lines come by four, which is how much one step of a loop reads of most formats.
constexpr int64_t kLine = 64, kUnit = 4 * kLine, kPage = 4096, kPages = 8;

/// Offsets in elements of `bytes` bytes.
class Ahead {
public:
  Ahead(KernelBuilder &b, Value memory)
      : b(b), memory(memory), bytes(b.elementOf(memory).getIntOrFloatBitWidth() / 8) {}

  int64_t unit() const { return kUnit / bytes; }

  /// Asks for a unit on behalf of the one at `offset`.
  void ask(Value offset) {
    int64_t page = kPage / bytes, chunk = kPages * page;
    Value inChunk = b.rem(offset, chunk), number = b.div(inChunk, unit());
    Value at = b.add(b.sub(offset, inChunk), b.rem(offset, unit()));
    at = b.add(at, b.mul(b.rem(number, kPages), page));
    at = b.add(at, b.mul(b.div(number, kPages), unit()));
    constexpr unsigned kSecondLevel = 2;
    for (int64_t line = 0; line < kUnit; line += kLine)
      memref::PrefetchOp::create(b, memory, b.add(at, chunk + line / bytes), /*isWrite=*/false,
                                 kSecondLevel, /*isDataCache=*/true);
  }

private:
  KernelBuilder &b;
  Value memory;
  int64_t bytes;
};

} // namespace

void mica::cpu::prefetchAhead(KernelBuilder &b, const PackedPanel &panel, Value offset,
                              int64_t count) {
  if (!b.target.prefetchPages || !panel.streams)
    return;
  Ahead ahead(b, panel.memory);
  int64_t unit = ahead.unit();
  offset = b.add(panel.offset, offset);
  b.when(panel.streams, [&] {
    if (count % unit == 0) {
      return count == unit ? ahead.ask(offset)
                           : b.loop(b.idx(0), b.idx(count), unit,
                                    [&](Value at) { ahead.ask(b.add(offset, at)); });
    }
    // Each unit once, on behalf of the elements where it begins.
    auto roundUp = [&](Value value) { return b.mul(b.div(b.add(value, unit - 1), unit), unit); };
    b.loop(roundUp(offset), roundUp(b.add(offset, count)), unit, [&](Value at) { ahead.ask(at); });
  });
}
