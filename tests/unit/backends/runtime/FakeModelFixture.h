// Tests with a loaded fake model.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_FAKEMODELFIXTURE_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_FAKEMODELFIXTURE_H

#include "tests/unit/backends/runtime/FakeProgram.h"

#include "backends/cpu/device/CpuDevice.h"
#include "backends/runtime/engine/Model.h"

#include "gtest/gtest.h"

#include <chrono>

namespace mica::test {

/// A call of the fake model.
struct FakeCall {
  struct Row {
    int32_t token, sequence, position;
    bool operator==(const Row &) const = default;
  };
  std::vector<Row> rows;
  std::vector<int32_t> outputs;
  rt::RowRole role;
};
/// Calls since this was cleared, including those of concurrent threads.
inline std::vector<FakeCall> fakeCalls;
/// The durations of a call without logits and of a call with rows of decode.
inline std::chrono::milliseconds fakeDelay{0}, fakeDecodeDelay{0};

class FakeModelFixture : public testing::Test {
protected:
  void SetUp() override {
    fakeCalls.clear();
    fakeDelay = fakeDecodeDelay = std::chrono::milliseconds(0);
    auto loaded = load(manifest());
    ASSERT_TRUE(loaded) << loaded.error().message;
    model = *std::move(loaded);
  }

  /// The loaded program of the manifest.
  rt::Result<std::unique_ptr<rt::Model>> load(const std::string &manifest,
                                              const rt::Device &device = rt::CpuDevice(),
                                              unsigned threads = 2,
                                              rt::Communicator *ranks = nullptr) const {
    writeFakeProgram(folder.file("fake"), "/proc/self/exe", manifest);
    auto file = program::ProgramFile::open(folder.file("fake"));
    if (!file)
      return file.error();
    return rt::Model::load(*std::move(file), device, threads, rt::Pages::Small, ranks);
  }

  virtual std::string manifest() const { return fakeManifest(); }

  TemporaryFolder folder;
  std::unique_ptr<rt::Model> model;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_FAKEMODELFIXTURE_H
