// The first elements of an order, without sorting all.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_HEAPOFFIRST_H
#define MICA_BACKENDS_RUNTIME_ENGINE_HEAPOFFIRST_H

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <vector>

namespace mica::rt {

/// The `count` elements that come first in the order `precedes`, or all if there are not as many:
/// a heap as of std::make_heap, whose front is the last of them. Takes time in proportion to the
/// number of elements, and to the logarithm of `count` for each that is kept.
template <std::ranges::input_range Range, typename Precedes>
std::vector<std::ranges::range_value_t<Range>> heapOfFirst(Range &&elements, size_t count,
                                                           Precedes precedes) {
  std::vector<std::ranges::range_value_t<Range>> heap;
  if (count == 0)
    return heap;
  for (const auto &element : elements) {
    if (heap.size() == count) {
      if (!precedes(element, heap.front()))
        continue;
      std::pop_heap(heap.begin(), heap.end(), precedes);
      heap.back() = element;
    } else {
      heap.push_back(element);
    }
    std::push_heap(heap.begin(), heap.end(), precedes);
  }
  return heap;
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_HEAPOFFIRST_H
