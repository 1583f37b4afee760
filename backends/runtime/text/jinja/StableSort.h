// Sorts by a comparison that may fail, or be inconsistent because of NaN.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_STABLESORT_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_STABLESORT_H

#include <algorithm>
#include <vector>

namespace mica::rt::jinja {

/// Bottom-up merge sort; no item is lost, whatever `less` returns.
template <typename T, typename Less> void stableSort(std::vector<T> &items, Less less) {
  std::vector<T> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      size_t middle = std::min(begin + width, items.size());
      size_t end = std::min(begin + 2 * width, items.size());
      for (size_t left = begin, right = middle, at = begin; at < end; ++at) {
        bool second = left == middle || (right < end && less(items[right], items[left]));
        merged[at] = std::move(items[second ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
}

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_STABLESORT_H
