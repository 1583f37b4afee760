// Files of the values that a model's probes record.
#ifndef MICA_BACKENDS_RUNTIME_PROFILE_PROBES_H
#define MICA_BACKENDS_RUNTIME_PROFILE_PROBES_H

#include "backends/runtime/abi/ProbeNumbers.h"
#include "backends/runtime/abi/Runtime.h"
#include "backends/runtime/support/NewFile.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// Rows that a probe has seen in one call of the model, or, with no name and no rows, the beginning
/// of a call. In a file of probes, after its magic, each begins with these numbers, words of 8
/// bytes in the order of the machine; then come the bytes of the probe's name and rows * columns
/// numbers of 32 bits. In a file of column sums `rows` are all that the probe has seen, and
/// `columns` sums of squares, of 64 bits, follow.
struct ProbeHead {
  int64_t nameBytes, layer, rows, columns;
};

/// Receives what probes record, in the order in which the model computes, and writes a file about
/// it. The file appears under its name at `commit`.
class ProbeListener {
public:
  virtual ~ProbeListener();
  /// From now on, until `commit` or the end of this object, the probes of the model whose code runs
  /// on `runtime` are heard here. `runtime` must outlive that.
  void start(Runtime &runtime);
  virtual void beginCall() {}
  /// A row is `stride` numbers after the one before it.
  void add(std::string_view name, const ProbeHead &head, const void *x, int64_t stride,
           ProbeNumbers numbers);
  /// Errors: what could not be written since the start.
  Status commit();

protected:
  explicit ProbeListener(std::unique_ptr<NewFile> file) : file(std::move(file)) {}
  /// A `Listener` whose file begins with `magic`.
  template <typename Listener>
  static Result<std::unique_ptr<ProbeListener>> make(const std::string &path, const FileKind &kind,
                                                     std::string_view magic);
  void append(const void *data, size_t size);

private:
  virtual void begin(std::string_view name, const ProbeHead &head) = 0;
  virtual void addRow(const std::vector<float> &row) = 0;
  /// What is written at the end.
  virtual void finish() {}

  void stop();

  Runtime *heard = nullptr; ///< null: none
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

/// Adds the squares of each column of what a probe of a layer sees, over all rows.
class ColumnSums final : public ProbeListener {
public:
  static Result<std::unique_ptr<ProbeListener>> create(const std::string &path);

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
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_PROFILE_PROBES_H
