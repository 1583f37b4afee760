// A queue that serves groups round-robin, each in the order of its items.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_FAIRQUEUE_H
#define MICA_BACKENDS_RUNTIME_ENGINE_FAIRQUEUE_H

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <utility>

namespace mica::rt {

/// A group that arrives is served after those that wait, except for the one served last. Groups of
/// one item are served in the order of arrival.
template <typename Group, typename Item> class FairQueue {
public:
  /// Adds the first item of a group that is not in the queue.
  void add(Group group, Item item) {
    groups.push_back({std::move(group), {}});
    groups.back().items.push_back(std::move(item));
    ++count;
  }
  /// Adds an item to a group, which may have left the queue.
  void addTo(const Group &group, Item item) {
    auto found = std::find_if(groups.rbegin(), groups.rend(),
                              [&](const Entry &entry) { return entry.group == group; });
    if (found == groups.rend())
      return add(group, std::move(item));
    found->items.push_back(std::move(item));
    ++count;
  }

  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  /// The next item. The queue must not be empty.
  const Item &front() const {
    bool second = firstIsServed && groups.size() > 1;
    return (second ? std::next(groups.begin()) : groups.begin())->items.front();
  }
  /// Removes the next item.
  Item pop() {
    if (std::exchange(firstIsServed, false))
      groups.splice(groups.end(), groups, groups.begin());
    std::list<Item> &items = groups.front().items;
    Item item = std::move(items.front());
    items.pop_front();
    --count;
    if (items.empty())
      groups.pop_front();
    else
      firstIsServed = true;
    return item;
  }
  /// Removes the items for which `isUnwanted` is true, after passing each of them to `remove`.
  template <typename IsUnwanted, typename Remove>
  void removeIf(IsUnwanted isUnwanted, Remove remove) {
    for (auto entry = groups.begin(); entry != groups.end();) {
      std::list<Item> &items = entry->items;
      for (auto item = items.begin(); item != items.end();)
        if (isUnwanted(*item)) {
          remove(*item);
          item = items.erase(item);
          --count;
        } else {
          ++item;
        }
      if (items.empty() && entry == groups.begin())
        firstIsServed = false;
      entry = items.empty() ? groups.erase(entry) : std::next(entry);
    }
  }

private:
  struct Entry {
    Group group;
    std::list<Item> items; ///< not empty
  };
  std::list<Entry> groups;    ///< in the order in which they are served
  bool firstIsServed = false; ///< an item of the first group was taken: it becomes the last one
  size_t count = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_FAIRQUEUE_H
