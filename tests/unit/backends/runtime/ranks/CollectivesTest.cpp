#include "backends/cpu/device/Collectives.h"
#include "backends/cpu/device/CpuDevice.h"
#include "backends/cpu/device/Pool.h"
#include "tests/unit/backends/runtime/ranks/ThreadRanks.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <new>
#include <unistd.h>

namespace mica::rt {
namespace {

/// Rows of floats with a gap after each.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t gap)
      : values(static_cast<size_t>(rows * (columns + gap)), -1), columns(columns), gap(gap),
        count(rows) {}
  float &at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * (columns + gap) + column)];
  }
  Rows rows() {
    constexpr int64_t size = sizeof(float);
    return {reinterpret_cast<std::byte *>(values.data()), (columns + gap) * size, columns * size,
            count};
  }

  std::vector<float> values;
  int64_t columns, gap, count;
};

float valueAt(int64_t row, int64_t column) { return static_cast<float>(row * 1000 + column); }

/// Gathers as ranks of several hosts do: allGatherInPieces calls allGather.
class WithoutPieces final : public Communicator {
public:
  explicit WithoutPieces(SharedMemoryRanks &ranks) : ranks(ranks) {}
  int64_t rank() const override { return ranks.rank(); }
  int64_t size() const override { return ranks.size(); }
  Status allGather(const void *part, uint64_t bytes, void *all) override {
    return ranks.allGather(part, bytes, all);
  }
  Status broadcast(void *data, uint64_t bytes) override { return ranks.broadcast(data, bytes); }
  [[noreturn]] void fail(const Error &error) override { ranks.fail(error); }

private:
  SharedMemoryRanks &ranks;
};

struct Shape {
  int64_t ranks, rows, columns, gap;
};

class CollectivesTest : public testing::TestWithParam<Shape> {
protected:
  int64_t part() const { return (GetParam().columns + GetParam().ranks - 1) / GetParam().ranks; }
  /// Calls run(communicator) for each rank, twice: with and without pieces.
  template <typename Run> void runAll(const Run &run) const {
    runRanks(GetParam().ranks, [&](SharedMemoryRanks &rank) { run(rank); });
    runRanks(GetParam().ranks, [&](SharedMemoryRanks &rank) {
      WithoutPieces whole(rank);
      run(whole);
    });
  }
};
// Parts that are the row, parts with padding, rows with gaps, more rows than one thread copies,
// rows that are received in two pieces.
INSTANTIATE_TEST_SUITE_P(Shapes, CollectivesTest,
                         testing::Values(Shape{2, 1, 64, 0}, Shape{3, 1, 64, 0}, Shape{3, 5, 64, 0},
                                         Shape{4, 7, 10, 3}, Shape{8, 2, 9, 0},
                                         Shape{2, 700, 130, 1}, Shape{3, 3000, 130, 1}));

TEST_P(CollectivesTest, columnsAreGatheredAndSliced) {
  auto [ranks, rows, columns, gap] = GetParam();
  runAll([&, rows = rows, columns = columns, gap = gap](Communicator &rank) {
    Pool pool(2);
    Collectives collectives(pool, rank);
    Matrix own(rows, part(), gap), whole(rows, columns, gap), again(rows, part(), gap);
    int64_t first = rank.rank() * part();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < part(); ++i)
        own.at(row, i) = valueAt(row, first + i);
    ASSERT_TRUE(collectives.allGather(own.rows(), whole.rows()));
    collectives.allSlice(whole.rows(), again.rows());
    bool isRight = true;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < columns; ++i)
        isRight &= whole.at(row, i) == valueAt(row, i);
      for (int64_t i = 0; i < part(); ++i)
        isRight &= again.at(row, i) == (first + i < columns ? valueAt(row, first + i) : 0);
      for (int64_t i = 0; i < gap; ++i)
        isRight &= whole.at(row, columns + i) == -1 && again.at(row, part() + i) == -1;
    }
    EXPECT_TRUE(isRight);
  });
}

TEST_P(CollectivesTest, rowsAreShared) {
  auto [ranks, rows, columns, gap] = GetParam();
  constexpr int64_t n = 5;
  runAll([&, ranks = ranks, rows = rows, columns = columns, gap = gap](Communicator &rank) {
    Pool pool(2);
    Collectives collectives(pool, rank);
    std::vector<int32_t> indices(static_cast<size_t>(rows)), local(indices);
    for (int64_t row = 0; row < rows; ++row)
      indices[static_cast<size_t>(row)] = static_cast<int32_t>(row * 7 % (ranks * n));
    collectives.localRows(indices.data(), local.data(), rows, n);
    Matrix table(rows, columns, gap);
    for (int64_t row = 0; row < rows; ++row) {
      auto index = static_cast<size_t>(row);
      EXPECT_EQ(local[index], indices[index] / n == rank.rank() ? indices[index] % n : 0);
      for (int64_t i = 0; i < columns; ++i)
        table.at(row, i) = valueAt(rank.rank() * n + local[index], i);
    }
    ASSERT_TRUE(collectives.shareRows(indices.data(), table.rows(), n));
    // From each other rank as many rows as one has at most.
    std::vector<int64_t> counts(static_cast<size_t>(ranks));
    for (int32_t index : indices)
      ++counts[static_cast<size_t>(index / n)];
    EXPECT_EQ(collectives.bytesReceived(),
              static_cast<uint64_t>((ranks - 1) * *std::ranges::max_element(counts) *
                                    table.rows().bytes));
    bool isRight = true;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < columns; ++i)
        isRight &= table.at(row, i) == valueAt(indices[static_cast<size_t>(row)], i);
    EXPECT_TRUE(isRight);
  });
}

/// Rank 0 of two, whose exchanges need more memory than there is.
class RanksWithoutMemory final : public Communicator {
public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  Status allGather(const void *, uint64_t, void *) override { throw std::bad_alloc(); }
  Status broadcast(void *, uint64_t) override { throw std::bad_alloc(); }
  [[noreturn]] void fail(const Error &error) override {
    std::fprintf(stderr, "the run ends: %s\n", error.message.c_str());
    _exit(7);
  }
};

// Otherwise the others would wait for this rank, or take its next message for values.
TEST(CollectivesFailure, withoutMemoryAllRanksEnd) {
  Result<std::unique_ptr<Runtime>> runtime = CpuDevice().start(1, {});
  ASSERT_TRUE(runtime);
  RanksWithoutMemory ranks;
  (*runtime)->setCommunicator(&ranks);
  const RuntimeTable &table = (*runtime)->table();
  float part[4] = {}, whole[8];
  int32_t indices[] = {0};
  EXPECT_EXIT(table.allGather(table.runtime, part, 16, 16, whole, 32, 32, 1),
              testing::ExitedWithCode(7), "the run ends: out of memory");
  EXPECT_EXIT(table.shareRows(table.runtime, indices, whole, 32, 32, 1, 5),
              testing::ExitedWithCode(7), "the run ends: out of memory");
}

} // namespace
} // namespace mica::rt
