#include "tests/unit/backends/runtime/FakeModelFixture.h"

#include <mutex>
#include <thread>

using namespace mica;
using namespace mica::test;

// The fake model calls it.
extern "C" void mica_fake_trace(int64_t rows, const int32_t *tokens, const int32_t *sequences,
                                const int32_t *positions, int64_t outputs,
                                const int32_t *outputRows, int64_t role) {
  FakeCall call;
  for (int64_t r = 0; r < rows; ++r)
    call.rows.push_back({tokens[r], sequences[r], positions[r]});
  call.outputs.assign(outputRows, outputRows + outputs);
  call.role = static_cast<rt::RowRole>(role);
  static std::mutex mutex;
  {
    std::lock_guard lock(mutex);
    fakeCalls.push_back(call);
  }
  if (outputs == 0)
    std::this_thread::sleep_for(fakeDelay);
  if (call.role == rt::RowRole::Decode)
    std::this_thread::sleep_for(fakeDecodeDelay);
}
