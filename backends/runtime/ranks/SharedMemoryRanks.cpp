#include "backends/runtime/ranks/SharedMemoryRanks.h"
#include "backends/runtime/ranks/HostName.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mica::rt {

namespace {
using Clock = std::chrono::steady_clock;

/// The bytes that a rank sends at once; more are sent in pieces.
constexpr uint64_t pieceBytes = uint64_t(256) << 10;
/// How long a rank occupies its processor: other ranks usually arrive within microseconds.
constexpr std::chrono::microseconds spinTime{20};
/// How long it stays awake. Waking it takes about 50 us.
constexpr std::chrono::milliseconds awakeTime{5};
/// How long it sleeps before it checks whether the other rank still exists.
constexpr timespec sleepTime{0, 200'000'000};

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, expected, &sleepTime, nullptr,
          0);
}

void futexWake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
} // namespace

/// What a rank tells the others; its bytes are stored elsewhere.
struct alignas(64) SharedMemoryRanks::Slot {
  /// The number of the exchange whose bytes the rank has sent; it has read those of the previous
  /// one.
  std::atomic<uint64_t> arrived;
  std::atomic<int32_t> process;
  /// Its PID namespace, in which `process` is a number of processes; 0 if it is not known.
  std::atomic<uint64_t> pidNamespace;
  /// The kinds and bytes of this exchange and of the previous one, which a slower rank reads.
  std::atomic<uint64_t> descriptions[2];
};

struct alignas(64) SharedMemoryRanks::Shared {
  std::atomic<uint32_t> wakeups;  ///< changed when a rank arrives that others sleep for
  std::atomic<uint32_t> sleepers; ///< the number of ranks that sleep
  std::atomic<uint32_t> failed;   ///< not 0: see announceFailure
};

uint64_t SharedMemoryRanks::bytesFor(int64_t size) {
  // Two buffers for each rank: while a slower rank reads the previous piece, the next one is
  // written.
  return sizeof(Shared) + static_cast<uint64_t>(size) * (sizeof(Slot) + 2 * pieceBytes);
}

SharedMemoryRanks::SharedMemoryRanks(void *memory, int64_t rank, int64_t size)
    : shared(static_cast<Shared *>(memory)), self(rank), count(size) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "atomics are shared by processes");
  struct stat found = {};
  bool isKnown = stat("/proc/self/ns/pid", &found) == 0;
  slotOf(self).pidNamespace.store(isKnown ? found.st_ino : 0);
  slotOf(self).process.store(getpid());
}

SharedMemoryRanks::Slot &SharedMemoryRanks::slotOf(int64_t rank) const {
  return reinterpret_cast<Slot *>(shared + 1)[rank];
}

/// The buffer of a rank for the current exchange.
std::byte *SharedMemoryRanks::bytesOf(int64_t rank) const {
  auto *first = reinterpret_cast<std::byte *>(&slotOf(count));
  return first + (2 * static_cast<uint64_t>(rank) + exchange % 2) * pieceBytes;
}

bool SharedMemoryRanks::hasEnded(int64_t rank) const {
  int32_t process = slotOf(rank).process.load();
  // In another namespace, as of a container of its own, this is the number of another process.
  uint64_t own = slotOf(self).pidNamespace.load();
  if (own == 0 || slotOf(rank).pidNamespace.load() != own)
    return false;
  return process != 0 && kill(process, 0) != 0 && errno == ESRCH;
}

void SharedMemoryRanks::announceFailure() { shared->failed.store(1); }

bool SharedMemoryRanks::isFailureAnnounced() const { return shared->failed.load() != 0; }

/// Waits until `rank` has arrived at an exchange; fails if its process has ended.
Status SharedMemoryRanks::waitFor(int64_t rank, uint64_t wanted) const {
  Slot &slot = slotOf(rank);
  auto isThere = [&] { return slot.arrived.load() >= wanted; };
  auto start = Clock::now();
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (isThere())
        return {};
      __builtin_ia32_pause();
    }
    auto waited = Clock::now() - start;
    if (waited < spinTime && !oversubscribed)
      continue;
    if (waited < awakeTime) {
      sched_yield();
      continue;
    }
    // `arrive` stores before it loads the number of sleepers, and this thread counts itself before
    // it loads what was stored, so at least one of them observes the other.
    shared->sleepers.fetch_add(1);
    uint32_t before = shared->wakeups.load();
    bool there = isThere();
    if (!there)
      futexWait(shared->wakeups, before);
    shared->sleepers.fetch_sub(1);
    if (!there && !isThere() && hasEnded(rank))
      return Error{rankOnHost(rank, hostName()) + " has ended; see its messages"};
  }
}

static uint64_t describeExchange(uint64_t kind, uint64_t bytes) { return bytes << 1 | kind; }

static std::string exchangeWords(uint64_t description) {
  return (description & 1 ? "broadcasts " : "gathers ") + std::to_string(description >> 1) +
         " bytes";
}

/// Fails if `rank`, which has arrived at this exchange, is at another one.
Status SharedMemoryRanks::requireSame(int64_t rank, Kind kind, uint64_t bytes) const {
  uint64_t own = describeExchange(static_cast<uint64_t>(kind), bytes),
           other = slotOf(rank).descriptions[exchange % 2].load(std::memory_order_relaxed);
  if (own == other) [[likely]]
    return {};
  return Error{rankOnHost(rank, hostName()) + " " + exchangeWords(other) + " while rank " +
               std::to_string(self) + " " + exchangeWords(own) +
               ": ranks do not execute the same calls"};
}

/// Tells the others that the rank has sent its bytes.
void SharedMemoryRanks::arrive(Kind kind, uint64_t bytes) {
  slotOf(self).descriptions[exchange % 2].store(
      describeExchange(static_cast<uint64_t>(kind), bytes), std::memory_order_relaxed);
  slotOf(self).arrived.store(exchange);
  if (shared->sleepers.load() == 0)
    return;
  shared->wakeups.fetch_add(1);
  futexWake(shared->wakeups);
}

template <typename Take>
Status SharedMemoryRanks::gather(const void *part, uint64_t bytes, const Take &take) {
  const auto *from = static_cast<const std::byte *>(part);
  for (uint64_t at = 0; at < bytes; at += pieceBytes) {
    uint64_t piece = std::min(pieceBytes, bytes - at);
    ++exchange;
    // The buffer was last used two exchanges ago: all ranks that have arrived at the previous one
    // have read it.
    for (int64_t other = 0; other < count; ++other)
      if (Status there = waitFor(other, exchange - 1); !there)
        return there;
    std::memcpy(bytesOf(self), from + at, piece);
    arrive(Kind::Gather, bytes);
    for (int64_t next = 0; next < count; ++next) {
      // Different ranks read different buffers first.
      int64_t other = (self + next) % count;
      if (Status there = waitFor(other, exchange); !there)
        return there;
      if (Status same = requireSame(other, Kind::Gather, bytes); !same)
        return same;
      take(Received{other, at, piece, bytesOf(other)});
    }
  }
  return {};
}

Status SharedMemoryRanks::allGather(const void *part, uint64_t bytes, void *all) {
  auto *to = static_cast<std::byte *>(all);
  return gather(part, bytes, [&](const Received &piece) {
    std::memcpy(to + static_cast<uint64_t>(piece.rank) * bytes + piece.at, piece.data, piece.bytes);
  });
}

Status SharedMemoryRanks::allGatherInPieces(const void *part, uint64_t bytes,
                                            const std::function<void(const Received &)> &take) {
  return gather(part, bytes, take);
}

Status SharedMemoryRanks::broadcast(void *data, uint64_t bytes) {
  auto *own = static_cast<std::byte *>(data);
  for (uint64_t at = 0; at < bytes; at += pieceBytes) {
    uint64_t piece = std::min(pieceBytes, bytes - at);
    ++exchange;
    if (self == 0) {
      for (int64_t other = 0; other < count; ++other)
        if (Status there = waitFor(other, exchange - 1); !there)
          return there;
      std::memcpy(bytesOf(0), own + at, piece);
    } else {
      if (Status there = waitFor(0, exchange); !there)
        return there;
      if (Status same = requireSame(0, Kind::Broadcast, bytes); !same)
        return same;
      std::memcpy(own + at, bytesOf(0), piece);
    }
    arrive(Kind::Broadcast, bytes);
  }
  return {};
}

void SharedMemoryRanks::fail(const Error &error) { reportFatal(error.message); }

} // namespace mica::rt
