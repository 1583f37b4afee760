#include "backends/runtime/support/Threads.h"
#include "backends/runtime/support/ControlGroups.h"

#include <algorithm>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <sstream>
#include <sys/resource.h>

namespace mica::rt {

std::vector<size_t> affinity(pid_t process) {
  // More processors than a cpu_set_t holds make sched_getaffinity fail: grow the mask until it
  // fits.
  for (size_t count = 1024; count <= (size_t(1) << 20); count *= 4) {
    std::vector<unsigned long> mask(count / (8 * sizeof(unsigned long)));
    size_t bytes = mask.size() * sizeof(unsigned long);
    auto *set = reinterpret_cast<cpu_set_t *>(mask.data());
    if (sched_getaffinity(process, bytes, set) != 0)
      continue;
    std::vector<size_t> processors;
    for (size_t cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set))
        processors.push_back(cpu);
    return processors;
  }
  return {};
}

/// Cores of the affinity mask, hardware threads of one core counted once.
static unsigned coresAllowed() {
  std::set<std::string> cores;
  for (size_t cpu : affinity()) {
    std::string name = std::to_string(cpu);
    std::string siblings =
        firstLine("/sys/devices/system/cpu/cpu" + name + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? name : siblings);
  }
  return static_cast<unsigned>(cores.size());
}

unsigned quotaOf(const std::string &cpuMax) {
  std::istringstream line(cpuMax);
  double quota = 0, period = 0;
  if (!(line >> quota >> period) || quota <= 0 || period <= 0)
    return 0;
  return std::max(1u, static_cast<unsigned>(std::min(quota / period, 1e6)));
}

unsigned cgroupQuota(const std::string &root) {
  unsigned minQuota = 0;
  auto take = [&](unsigned quota) {
    if (quota > 0 && (minQuota == 0 || quota < minQuota))
      minQuota = quota;
  };
  for (const std::string &folder : controlGroupFolders(root, ""))
    take(quotaOf(firstLine(folder + "/cpu.max")));
  for (const std::string &folder : controlGroupFolders(root, "cpu"))
    take(quotaOf(firstLine(folder + "/cpu.cfs_quota_us") + " " +
                 firstLine(folder + "/cpu.cfs_period_us")));
  return minQuota;
}

unsigned withinQuota(unsigned processors, const std::string &root) {
  unsigned quota = cgroupQuota(root);
  return std::max(1u, quota > 0 ? std::min(processors, quota) : processors);
}

unsigned processorsAllowed() { return withinQuota(static_cast<unsigned>(affinity().size()), ""); }

unsigned defaultThreads() { return withinQuota(coresAllowed(), ""); }

/// For threads created with default attributes: glibc sets the default stack size from the limit at
/// program start.
static Status growThreads(size_t needed) {
  pthread_attr_t attributes;
  size_t size = 0;
  int error = pthread_getattr_default_np(&attributes);
  if (error == 0)
    error = pthread_attr_getstacksize(&attributes, &size);
  if (error == 0 && size < needed) {
    error = pthread_attr_setstacksize(&attributes, needed);
    if (error == 0)
      error = pthread_setattr_default_np(&attributes);
  }
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return Error{"cannot set the stack size of threads to " + std::to_string(needed >> 10) +
                 " KiB: " + std::strerror(error) + "; free memory"};
  return {};
}

Status ensureStackSize(uint64_t needed) {
  if (Status threads = growThreads(needed); !threads)
    return threads;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= needed)
    return {};
  rlim_t allowed = limit.rlim_max;
  limit.rlim_cur = needed;
  if (allowed < needed || setrlimit(RLIMIT_STACK, &limit) != 0)
    return Error{"the stack is limited to " + std::to_string(allowed >> 10) +
                 " KiB (ulimit -Hs), but programs need " + std::to_string(needed >> 10) +
                 " KiB; raise the limit"};
  return {};
}

} // namespace mica::rt
