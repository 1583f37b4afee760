// For LD_PRELOAD: creating more than MICA_TEST_THREADS threads fails.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument) {
  static std::atomic<long> left{std::strtol(std::getenv("MICA_TEST_THREADS"), nullptr, 10)};
  static auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return left-- > 0 ? real(thread, attributes, start, argument) : EAGAIN;
}
