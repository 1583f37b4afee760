// Files of the values that a model's probes record.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_PROBES_H
#define MICA_BACKENDS_RUNTIME_PROFILE_PROBES_H

#include "backends/runtime/abi/Runtime.h"
#include "backends/runtime/support/NewFile.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// The header of the rows that a probe has recorded in one call of the model or, with no name and
/// no rows, of the beginning of a call. A file of probes consists of its magic and, for each
/// record, these members as 8-byte words in native byte order, the bytes of the probe's name, and
/// rows * columns 32-bit numbers. In a file of column sums, `rows` is the total number of rows
/// recorded by the probe, and `columns` 64-bit sums of squares follow.
struct ProbeHead {
  int64_t nameBytes, layer, rows, columns;
};

/// Receives the values that probes record, in the order of computation, and writes a file. The file
/// appears under its name at `commit`.
class ProbeListener : public ProbeObserver {
public:
  ~ProbeListener() override;
  /// Records the probes of the model whose code runs on `runtime`, until `commit` or destruction.
  /// `runtime` must outlive this object.
  void start(Runtime &runtime);
  virtual void beginCall() {}
  void add(std::string_view name, int64_t layer, const ProbeRows &seen) override;
  /// Completes the file. Returns the first error since `start`.
  Status commit();

protected:
  explicit ProbeListener(std::unique_ptr<NewFile> file) : file(std::move(file)) {}
  /// Creates a `Listener` whose file begins with `magic`.
  template <typename Listener>
  static Result<std::unique_ptr<ProbeListener>> make(const std::string &path, const FileKind &kind,
                                                     std::string_view magic);
  void append(const void *data, size_t size);

private:
  virtual void begin(std::string_view name, const ProbeHead &head) = 0;
  virtual void addRow(const std::vector<float> &row) = 0;
  /// Writes the data that is only known at the end.
  virtual void finish() {}

  void stop();

  Runtime *observed = nullptr; ///< null: none
  std::unique_ptr<NewFile> file;
  uint64_t size = 0;
  Status failed;
};

/// The first bytes of a file of probes.
inline constexpr std::string_view probeMagic = "mica probes 1\n";

/// Writes all rows.
class ProbeFile final : public ProbeListener {
public:
  static Result<std::unique_ptr<ProbeListener>> create(const std::string &path);
  void beginCall() override { begin({}, {0, -1, 0, 0}); }

private:
  using ProbeListener::ProbeListener;
  void begin(std::string_view name, const ProbeHead &head) override;
  void addRow(const std::vector<float> &row) override;
};

/// The first bytes of a file of column sums.
inline constexpr std::string_view columnSumsMagic = "mica column sums 1\n";

/// The name of the column sums of the rows of one expert.
inline std::string probeNameOfExpert(std::string_view probe, int64_t expert) {
  return std::string(probe) + " of expert " + std::to_string(expert);
}

/// Sums the squares of each column over all rows, by layer and probe. A probe of i32 values [T, k]
/// records the experts of the next probe's rows [T, k, C], whose sums are separate for each expert.
class ColumnSums final : public ProbeListener {
public:
  static Result<std::unique_ptr<ProbeListener>> create(const std::string &path);
  void add(std::string_view name, int64_t layer, const ProbeRows &seen) override;

private:
  struct Sums {
    int64_t rows = 0;
    std::vector<double> squares;
  };
  using ProbeListener::ProbeListener;
  void begin(std::string_view name, const ProbeHead &head) override;
  void addRow(const std::vector<float> &row) override;
  void finish() override;

  std::map<std::pair<int64_t, std::string>, Sums> all; ///< by layer and name
  Sums *current = nullptr;
  std::optional<std::vector<int32_t>> experts; ///< of the next probe's rows
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_PROBES_H
