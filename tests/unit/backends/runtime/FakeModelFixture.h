// Tests over a loaded fake model.
#pragma once

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
/// Calls since this was cleared.
inline std::vector<FakeCall> fakeCalls;
/// What a call takes of which no logits are wanted.
inline std::chrono::milliseconds fakeDelay{0};

class FakeModelFixture : public testing::Test {
protected:
  static void SetUpTestSuite() {
    static bool started = bool(rt::CpuDevice().start(2));
    (void)started;
  }
  void SetUp() override {
    fakeCalls.clear();
    fakeDelay = std::chrono::milliseconds(0);
    writeFakeProgram(folder.file("fake"), "/proc/self/exe", manifest());
    auto file = program::ProgramFile::open(folder.file("fake"));
    ASSERT_TRUE(file) << file.error().message;
    auto loaded = rt::Model::load(*std::move(file), rt::CpuDevice());
    ASSERT_TRUE(loaded) << loaded.error().message;
    model = *std::move(loaded);
  }

  virtual std::string manifest() const { return fakeManifest(); }

  TemporaryFolder folder;
  std::unique_ptr<rt::Model> model;
};

} // namespace mica::test
