// Speed of the model: `bench`.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BENCH_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BENCH_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/profile/Profile.h"

#include <string>

namespace mica::rt {

struct BenchTest {
  bool generate;  ///< tg (tokens one by one) or pp (a prompt).
  int64_t tokens; ///< Of each sequence.
  int64_t batch;  ///< Sequences at once.
  int64_t depth;  ///< Positions filled before.
  /// Tokens drafted per call of the model, of a text that repeats itself; 0: none, random tokens.
  int64_t lookup = 0;
  bool isGiven = false; ///< That text is the arguments'.
  /// "pp512", "tg64", "tg64@b8", "tg64@d4096", "tg64@b8@d4096", "tg64@l8".
  std::string name() const;
};

struct BenchResult {
  BenchTest test;
  std::vector<double> runs; ///< Tokens per second of each run, in order.
  double tokensPerSecond;   ///< Their median.
  double gbPerSecond;       ///< Bytes of weights and caches that must be read, 10^9 per second.
  double gflopPerSecond;    ///< Products with weights only, of rows that the text keeps.
  int64_t calls = 0;        ///< Of the model, in one run.
  int64_t drafted = 0, accepted = 0; ///< Tokens, in the last run.
  double profiledSeconds = 0;        ///< Of the run under the profile.
};

/// The tests that the arguments ask for. Without any, pp512 and tg64, shortened to what the context
/// holds. Errors: a test that does not fit into the context.
Result<std::vector<BenchTest>> benchTests(const BenchArguments &arguments,
                                          const Manifest &manifest);

/// Runs one test: once to warm up, then `repeat` times, then once more under `profile` unless that
/// is null.
Result<BenchResult> runBench(const Model &model, const BenchTest &test,
                             const BenchArguments &arguments, Profile *profile = nullptr);

/// Runs all tests and writes a table or JSON to stdout.
Status benchCommand(const Model &model, const Device &device, const BenchArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BENCH_H
