#include "backends/runtime/profile/Probes.h"
#include "tests/unit/backends/runtime/FakeProgram.h"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>

using namespace mica::rt;
using testing::ElementsAre;
using testing::Pair;

namespace {
/// A name, the number of rows and the sums of a record.
using Record = std::pair<std::string, std::pair<int64_t, std::vector<double>>>;

auto record(const char *name, int64_t rows, std::vector<double> sums) {
  return Pair(name, Pair(rows, sums));
}

/// The records of a file of column sums, which follow its magic.
std::vector<Record> recordsOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<Record> records;
  size_t at = columnSumsMagic.size();
  auto take = [&](void *into, size_t size) {
    ASSERT_LE(at + size, bytes.size());
    std::memcpy(into, bytes.data() + at, size);
    at += size;
  };
  while (at < bytes.size() && !testing::Test::HasFatalFailure()) {
    ProbeHead head{};
    take(&head, sizeof head);
    std::string name(static_cast<size_t>(head.nameBytes), '\0');
    std::vector<double> sums(static_cast<size_t>(head.columns));
    take(name.data(), name.size());
    take(sums.data(), sums.size() * sizeof(double));
    records.push_back({name, {head.rows, sums}});
  }
  return records;
}

ProbeRows rowsOf(const std::vector<float> &numbers, int64_t rows) {
  auto columns = static_cast<int64_t>(numbers.size()) / rows;
  return {numbers.data(), rows, columns, columns, ProbeNumbers::F32};
}

/// The records of column sums of what `add` passes to the probes.
template <typename Add> std::vector<Record> sumsOf(Add add) {
  mica::test::TemporaryFolder folder;
  std::string path = folder.file("sums");
  auto sums = ColumnSums::create(path);
  EXPECT_TRUE(sums);
  add(**sums);
  EXPECT_TRUE((*sums)->commit());
  return recordsOf(path);
}

TEST(ColumnSums, AddSquaresOverCalls) {
  EXPECT_THAT(sumsOf([](ProbeListener &sums) {
                sums.add("x", 0, rowsOf({1, 2, 3, 4}, 2));
                sums.add("x", 0, rowsOf({0, 1}, 1));
              }),
              ElementsAre(record("x", 3, {10, 21})));
}

/// Ids [2, 2] are followed by rows [2, 2, 2]: rows 1 2 and 5 6 of expert 1, 3 4 of 0, 7 8 of 2.
TEST(ColumnSums, RowsOfExpertsAreSeparate) {
  // A stride of 3: not the last element of each row.
  std::vector<int32_t> ids{1, 0, 9, 1, 2, 9};
  EXPECT_THAT(sumsOf([&](ProbeListener &sums) {
                sums.add("x choices", 0, {ids.data(), 2, 2, 3, ProbeNumbers::I32});
                sums.add("x", 0, rowsOf({1, 2, 3, 4, 5, 6, 7, 8}, 2));
                sums.add("y", 0, rowsOf({1, 2, 3, 4}, 1));
              }),
              ElementsAre(record("x of expert 0", 1, {9, 16}), record("x of expert 1", 2, {26, 40}),
                          record("x of expert 2", 1, {49, 64}), record("y", 1, {1, 4, 9, 16})));
}

TEST(ColumnSums, NoRowsOfExperts) {
  std::vector<float> none(4);
  EXPECT_THAT(sumsOf([&](ProbeListener &sums) {
                sums.add("x choices", 0, {none.data(), 0, 2, 2, ProbeNumbers::I32});
                sums.add("x", 0, {none.data(), 0, 4, 4, ProbeNumbers::F32});
              }),
              testing::IsEmpty());
}
} // namespace
