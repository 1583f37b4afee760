// The order of merges: lowest key first, then leftmost.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_MERGEQUEUE_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_MERGEQUEUE_H

#include <algorithm>
#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

namespace mica::rt::tokenizer {

/// The number of candidates queued by this thread so far, a measure of time for tests.
inline thread_local uint64_t mergeSteps = 0;

/// A priority queue of `Candidate`s (with a position `at`). Most candidates with the same key are
/// added from left to right, so each key has a list that is accessed in order; one heap of all
/// candidates would access memory at random. A megabyte of one letter has a few keys with some
/// hundred thousand candidates each.
template <typename Candidate> class MergeQueue {
public:
  void push(uint32_t key, const Candidate &candidate) {
    Bucket &bucket = bucketOf(key);
    if (bucket.inOrder.empty() || bucket.inOrder.back().at <= candidate.at)
      bucket.inOrder.push_back(candidate);
    else
      bucket.late.push(candidate);
    if (!bucket.waiting) {
      bucket.waiting = true;
      keys.push(key);
    }
    ++mergeSteps;
  }

  /// False: the queue is empty.
  bool pop(Candidate &candidate) {
    uint32_t key;
    return pop(key, candidate);
  }
  bool pop(uint32_t &key, Candidate &candidate) {
    if (keys.empty())
      return false;
    key = keys.top();
    Bucket &bucket = bucketOf(key);
    bool inOrder = bucket.next < bucket.inOrder.size();
    if (inOrder && !bucket.late.empty() && bucket.late.top().at < bucket.inOrder[bucket.next].at)
      inOrder = false;
    if (inOrder) {
      candidate = bucket.inOrder[bucket.next++];
    } else {
      candidate = bucket.late.top();
      bucket.late.pop();
    }
    if (bucket.next == bucket.inOrder.size()) {
      bucket.inOrder.clear();
      bucket.next = 0;
      if (bucket.late.empty()) {
        bucket.waiting = false;
        keys.pop();
      }
    }
    return true;
  }

private:
  struct Later {
    bool operator()(const Candidate &a, const Candidate &b) const { return a.at > b.at; }
  };
  struct Bucket {
    std::vector<Candidate> inOrder;
    size_t next = 0;
    std::priority_queue<Candidate, std::vector<Candidate>, Later> late;
    bool waiting = false; // its key is in `keys`
  };

  Bucket &bucketOf(uint32_t key) {
    if (key != newestKey || !newest) {
      newest = &buckets[key]; // an unordered_map keeps its elements where they are
      newestKey = key;
    }
    return *newest;
  }

  std::unordered_map<uint32_t, Bucket> buckets;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> keys;
  Bucket *newest = nullptr;
  uint32_t newestKey = 0;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_MERGEQUEUE_H
