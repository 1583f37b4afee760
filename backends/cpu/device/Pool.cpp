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

/// Tasks [begin, end) of a job that no thread has taken. Threads take pieces that become smaller:
/// large ones at first, because a body prefetches and shares work within a piece, and single tasks
/// at the end, so that all threads are done at about the same time.
class alignas(64) Pool::TaskRange {
public:
  struct Piece {
    uint32_t begin, end;
    explicit operator bool() const { return begin != end; }
  };

  void reset(uint32_t begin, uint32_t end) { bounds.store(packed({begin, end})); }

  /// Takes a quarter of the tasks, rounded up, from the front; empty if there are none.
  Piece takeFront() {
    return take([](Piece &left) {
      uint32_t begin = left.begin;
      left.begin += (left.end - left.begin + 3) / 4;
      return Piece{begin, left.begin};
    });
  }
  /// Takes half of the tasks, rounded up, from the back, for another thread; empty if there are
  /// none.
  Piece steal() {
    return take([](Piece &left) {
      uint32_t end = left.end;
      left.end -= (left.end - left.begin + 1) / 2;
      return Piece{left.end, end};
    });
  }

private:
  static uint64_t packed(Piece piece) { return uint64_t(piece.begin) << 32 | piece.end; }
  static Piece unpacked(uint64_t value) {
    return {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)};
  }

  template <typename Cut> Piece take(Cut cut) {
    uint64_t value = bounds.load();
    for (;;) {
      Piece left = unpacked(value);
      if (!left)
        return left;
      Piece taken = cut(left);
      if (bounds.compare_exchange_weak(value, packed(left)))
        return taken;
    }
  }

  std::atomic<uint64_t> bounds{0}; ///< begin and end, so that they change together
};

struct Pool::Worker {
  Gate ticket; ///< The number of the worker's current job.
  /// The ticket of an unclaimed part; 0: none. If the worker replaces it by 0, it takes part in the
  /// job, otherwise it does not.
  std::atomic<uint32_t> open{0};
  std::thread thread;

  /// Claims the part with ticket `number`; returns whether the caller has claimed it.
  bool take(uint32_t number) { return open.compare_exchange_strong(number, 0); }
};

/// Counts the workers that have not finished the current job.
struct Pool::Pending {
  Gate count;
};

bool Pool::inParallelRegion() { return inBody; }

Pool::Pool(unsigned threads) : pending(std::make_unique<Pending>()) {
  setOversubscribed(threads > processorsAllowed());
  // Threads that have been started must be joined if an exception is thrown.
  try {
    ranges = std::make_unique<TaskRange[]>(threads);
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

void Pool::setOversubscribed(bool is) {
  forkSpin = is ? std::chrono::microseconds(0) : spinTime;
  joinSpin = is ? std::chrono::microseconds(0) : joinSpinTime;
}

Pool::~Pool() {
  for (auto &worker : workers) {
    worker->ticket.word.store(stopTicket);
    worker->ticket.wake();
  }
  for (auto &worker : workers)
    worker->thread.join();
}

void Pool::cutIntoRanges() {
  int64_t units = (job.tasks + job.unit - 1) / job.unit;
  // The first `extra` parts have one more than the others.
  int64_t each = units / job.parts, extra = units % job.parts, begin = 0;
  for (int64_t part = 0; part < job.parts; ++part) {
    int64_t end = begin + each + (part < extra ? 1 : 0);
    ranges[part].reset(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
    begin = end;
  }
}

void Pool::runPieces(int64_t part) {
  auto run = [&](TaskRange::Piece piece) {
    job.body(job.context, piece.begin * job.unit, std::min(piece.end * job.unit, job.tasks));
  };
  while (TaskRange::Piece piece = ranges[part].takeFront())
    run(piece);
  for (int64_t next = 1; next < job.parts; ++next)
    while (TaskRange::Piece piece = ranges[(part + next) % job.parts].steal())
      run(piece);
}

void Pool::runPart(int64_t part) {
  if (!observer) [[likely]]
    return runPieces(part);
  Observer::Time start = std::chrono::steady_clock::now();
  runPieces(part);
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
  job = {body, context, tasks, parts, /*unit=*/tasks / UINT32_MAX + 1};
  cutIntoRanges();
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
  inBody = false;
  // All tasks are taken. Do not wait for workers that have not begun: on a busy machine, a worker
  // may not get a processor for milliseconds.
  for (int64_t part = 1; part < parts; ++part) {
    Worker &worker = *workers[part - 1];
    if (worker.take(worker.ticket.word.load(std::memory_order_relaxed)))
      pending->count.word.fetch_sub(1);
  }
  waitForWorkers();
}

} // namespace mica::rt
