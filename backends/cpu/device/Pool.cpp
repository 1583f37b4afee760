#include "backends/cpu/device/Pool.h"
#include "backends/runtime/support/Threads.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace mica::rt {

namespace {
/// How long a thread spins before it sleeps. Waking a sleeping thread takes about 50 us; between
/// two tokens, the main thread samples for up to a few hundred us.
constexpr std::chrono::microseconds spinTime{1000};
/// Waiting at a join only takes long if the other threads lack a processor; sleeping then makes
/// room for them.
constexpr std::chrono::microseconds joinSpinTime{200};
/// The ticket value that terminates a worker.
constexpr uint32_t stopTicket = UINT32_MAX;

thread_local bool inBody = false;

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void futexWake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

/// A word that one thread waits on, first spinning, then sleeping, and that other threads change.
struct alignas(64) Gate {
  std::atomic<uint32_t> word{0};
  std::atomic<bool> asleep{false};

  void waitWhile(uint32_t value, std::chrono::microseconds spin) {
    auto end = std::chrono::steady_clock::now() + spin;
    do {
      for (int i = 0; i < 64; ++i) {
        if (word.load(std::memory_order_acquire) != value)
          return;
        __builtin_ia32_pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    // The store of `asleep` and the kernel's comparison here, and the change of `word` and the load
    // of `asleep` in the other thread, are sequentially consistent, so at least one of the threads
    // observes the other's store.
    asleep.store(true);
    while (word.load() == value)
      futexWait(word, value);
    asleep.store(false);
  }
  void wake() {
    if (asleep.load())
      futexWake(word);
  }
};
} // namespace

struct Pool::Worker {
  Gate ticket; ///< The number of the worker's current job.
  /// The ticket of an unclaimed part; 0: none. The thread that replaces it by 0 runs the part.
  std::atomic<uint32_t> open{0};
  std::thread thread;

  /// Claims the part with ticket `number`; returns whether the caller must run it.
  bool take(uint32_t number) { return open.compare_exchange_strong(number, 0); }
};

/// Counts the workers that have not finished the current job.
struct Pool::Pending {
  Gate count;
};

bool Pool::inParallelRegion() { return inBody; }

Pool::Pool(unsigned threads) : pending(std::make_unique<Pending>()) {
  // With more threads than processors, a spinning thread would delay the thread that it waits for.
  bool crowded = threads > processorsAllowed();
  forkSpin = crowded ? std::chrono::microseconds(0) : spinTime;
  joinSpin = crowded ? std::chrono::microseconds(0) : joinSpinTime;
  // Threads that have been started must be joined if an exception is thrown.
  try {
    workers.reserve(threads - 1);
    for (unsigned i = 1; i < threads; ++i) {
      auto made = std::make_unique<Worker>();
      Worker &worker = *made;
      worker.thread = std::thread([this, &worker, i] { work(worker, i); });
      workers.push_back(std::move(made));
    }
  } catch (const std::system_error &) {
  } catch (const std::bad_alloc &) {
  }
}

Pool::~Pool() {
  for (auto &worker : workers) {
    worker->ticket.word.store(stopTicket);
    worker->ticket.wake();
  }
  for (auto &worker : workers)
    worker->thread.join();
}

void Pool::runPart(int64_t part) const {
  // The first `extra` parts have one task more than the others.
  int64_t each = job.tasks / job.parts, extra = job.tasks % job.parts;
  int64_t begin = part * each + (part < extra ? part : extra);
  int64_t end = begin + each + (part < extra ? 1 : 0);
  if (!observer) [[likely]]
    return job.body(job.context, begin, end);
  Observer::Time start = std::chrono::steady_clock::now();
  job.body(job.context, begin, end);
  observer->ran(part, start, std::chrono::steady_clock::now());
}

void Pool::work(Worker &self, int64_t part) {
  inBody = true;
  for (uint32_t seen = 0;;) {
    // Before the first fork, the model is loaded, which takes long: do not spin.
    self.ticket.waitWhile(seen, seen == 0 ? std::chrono::microseconds(0) : forkSpin);
    seen = self.ticket.word.load(std::memory_order_acquire);
    if (seen == stopTicket)
      return;
    // The forking thread has claimed the part; `job` may already be another one.
    if (!self.take(seen))
      continue;
    runPart(part);
    if (pending->count.word.fetch_sub(1) == 1)
      pending->count.wake();
  }
}

void Pool::waitForWorkers() {
  for (;;) {
    uint32_t left = pending->count.word.load(std::memory_order_acquire);
    if (left == 0)
      return;
    pending->count.waitWhile(left, joinSpin);
  }
}

void Pool::parallelFor(Body body, void *context, int64_t tasks) {
  if (tasks <= 0)
    return;
  int64_t parts = std::min<int64_t>(tasks, threads());
  if (parts == 1 || inBody || !busy.try_lock())
    return body(context, 0, tasks);
  std::lock_guard<std::mutex> lock(busy, std::adopt_lock);
  job = {body, context, tasks, parts};
  ++forked;
  pending->count.word.store(static_cast<uint32_t>(parts - 1), std::memory_order_relaxed);
  for (int64_t part = 1; part < parts; ++part) {
    Worker &worker = *workers[part - 1];
    uint32_t next = worker.ticket.word.load(std::memory_order_relaxed) + 1;
    next = next == stopTicket ? 1 : next;
    worker.open.store(next);
    worker.ticket.word.store(next);
    worker.ticket.wake();
  }
  inBody = true;
  runPart(0);
  // Run the parts that workers have not claimed: on a busy machine, a worker may not get a
  // processor for milliseconds.
  for (int64_t part = 1; part < parts; ++part) {
    Worker &worker = *workers[part - 1];
    if (!worker.take(worker.ticket.word.load(std::memory_order_relaxed)))
      continue;
    runPart(part);
    pending->count.word.fetch_sub(1);
  }
  inBody = false;
  waitForWorkers();
}

} // namespace mica::rt
