// The command `bench`: the speed of the model.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BENCH_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BENCH_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/profile/Profile.h"

#include <string>

namespace mica::rt {

struct BenchTest {
  bool generate;  ///< tg (generate token by token) or pp (process a prompt)
  int64_t tokens; ///< per sequence
  int64_t batch;  ///< sequences in a batch
  int64_t depth;  ///< cached positions before the test
  /// Tokens drafted per call of the model, from a repetitive text; 0: no drafts, random tokens.
  int64_t lookup = 0;
  bool isGiven = false; ///< the text is from the arguments
  /// Tokens drafted per call of the model by its multi-token prediction head; 0: no such drafts.
  int64_t mtp = 0;

  bool drafts() const { return lookup > 0 || mtp > 0; }
  /// "pp512", "tg64", "tg64@b8", "tg64@d4096", "tg64@b8@d4096", "tg64@l8", "tg64@m2".
  std::string name() const;
};

struct BenchResult {
  BenchTest test;
  std::vector<double> runs; ///< tokens per second of each run, in order
  double tokensPerSecond;   ///< median of the runs
  double gbPerSecond;       ///< weights and caches that a rank must read, in 10^9 bytes per second
  double gflopPerSecond;    ///< of a rank: matmuls with weights only, of accepted rows
  int64_t calls = 0;        ///< of the model, in one run
  int64_t drafted = 0, accepted = 0; ///< tokens, in the last run
  double profiledSeconds = 0;        ///< duration of the profiled run
};

/// The minimum number of bytes that a test with so many calls of the model reads: all weights once
/// per call, the part of the caches that the rows of each call attend to, once per layer that reads
/// it, and of states of fixed size what is also in a checkpoint; without what a multi-token
/// prediction head reads for its drafts.
double bytesRead(const BenchTest &test, const Manifest &manifest, int64_t calls);

/// The tests requested by the arguments; by default pp512 and tg64, shortened to fit in the
/// context. Errors: a test that does not fit in the context.
Result<std::vector<BenchTest>> benchTests(const BenchArguments &arguments,
                                          const Manifest &manifest);

/// Runs one test: a warm-up, `repeat` measured runs, and another one with `profile` unless it is
/// null.
Result<BenchResult> runBench(const Model &model, const BenchTest &test,
                             const BenchArguments &arguments, Profile *profile = nullptr);

/// Runs all tests and writes a table or JSON to stdout.
Status benchCommand(const Model &model, const Device &device, const BenchArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BENCH_H
