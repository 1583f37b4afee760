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
/// How long a thread spins before it sleeps. Waking a sleeper costs some 50 us; between two tokens
/// the main thread samples for up to a few hundred.
constexpr std::chrono::microseconds spinTime{1000};
/// Waiting for others inside a fork can only take long when they lack a processor: then ours helps
/// them more.
constexpr std::chrono::microseconds joinSpinTime{200};
/// A ticket's value that ends its worker.
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

/// A word that one thread waits on and others change: spin first, then sleep.
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
    // The store of `asleep` and the kernel's comparison on our side, the change of `word` and the
    // load of `asleep` on the other: both sequentially consistent, so one of the two always sees
    // the other.
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
  Gate ticket; ///< Counts the worker's jobs.
  /// The ticket of an unclaimed part; 0: none. The thread that replaces it by 0 runs the part.
  std::atomic<uint32_t> open{0};
  std::thread thread;

  /// Whether the caller is the one that runs the part of `number`.
  bool take(uint32_t number) { return open.compare_exchange_strong(number, 0); }
};

/// Workers of the running job that are not done yet.
struct Pool::Pending {
  Gate count;
};

bool Pool::insideBody() { return inBody; }

Pool::Pool(unsigned threads) : pending(std::make_unique<Pending>()) {
  // With more threads than processors a spinning thread holds up the one that it waits for.
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
    // The first fork is far away: until then the model is being loaded.
    self.ticket.waitWhile(seen, seen == 0 ? std::chrono::microseconds(0) : forkSpin);
    seen = self.ticket.word.load(std::memory_order_acquire);
    if (seen == stopTicket)
      return;
    // Too late: the forking thread has run the part itself, and `job` may be another one by now.
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
  // A worker that has not begun yet may not get a processor for milliseconds on a busy machine.
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
