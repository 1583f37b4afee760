// Tests over a loaded fake model.
#pragma once

#include "tests/unit/backends/cpu/runtime/FakeProgram.h"

#include "backends/cpu/runtime/Exports.h"
#include "backends/cpu/runtime/Model.h"

#include "gtest/gtest.h"

namespace mica::test {

class FakeModelFixture : public testing::Test {
protected:
  static void SetUpTestSuite() {
    static bool started = (rt::startRuntime(2), true);
    (void)started;
  }
  void SetUp() override {
    writeFakeProgram(folder.file("fake"), "/proc/self/exe", fakeManifest());
    auto file = program::ProgramFile::open(folder.file("fake"));
    ASSERT_TRUE(file) << file.error().message;
    auto loaded = rt::Model::load(*std::move(file));
    ASSERT_TRUE(loaded) << loaded.error().message;
    model = *std::move(loaded);
  }

  TemporaryFolder folder;
  std::unique_ptr<rt::Model> model;
};

} // namespace mica::test
