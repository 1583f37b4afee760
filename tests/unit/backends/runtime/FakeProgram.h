// A compiled program around FakeModel.c, for tests.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_FAKEPROGRAM_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_FAKEPROGRAM_H

#include "backends/runtime/abi/Tokens.h"
#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace mica::test {

inline constexpr int64_t fakeVocab = 32, fakeMaxSeq = 20;
/// The threshold of the model whose rows depend on the sequence length.
inline constexpr int64_t fakeThreshold = 8;
inline constexpr int32_t fakePoison = 31, fakeEos = 2, fakeBos = 1;

/// The manifest of the fake model. `features`, such as "\"avx2\"", are required CPU features.
std::string fakeManifest(const std::string &features = "", int64_t vocab = fakeVocab,
                         int64_t maxSeq = fakeMaxSeq);

/// The manifest of the model whose rows depend on the sequence length.
std::string fakeManifestOfLengths(int64_t maxSeq = fakeMaxSeq);

/// The manifest of the model with a sliding window. Six positions can be removed again.
std::string fakeManifestOfWindows();
inline constexpr int64_t fakeWindow = 5, fakeRewind = 6;

/// The manifest of the model with a rolling and a recurrent state, for up to 2000 positions.
std::string fakeManifestOfStates();

/// `manifest` for a model whose rows take that much scratch memory.
std::string withBytesPerRow(std::string manifest, uint64_t bytes);

/// `manifest` for a model whose arithmetic depends on the role of a row.
std::string dependingOnRole(std::string manifest);

/// `manifest` for a program that two ranks run.
std::string forTwoRanks(std::string manifest);

/// Writes the program to `path`, with the manifest's model; aborts the test process on failure.
void writeFakeProgram(const std::string &path, const std::string &launcher,
                      const std::string &manifest, std::span<const std::byte> tokenizer = {});

/// The prediction of the fake model after `tokens`.
int32_t fakeNext(const rt::Tokens &tokens, int64_t vocab = fakeVocab);
/// The prediction of the model with a sliding window.
int32_t fakeNextInWindow(const rt::Tokens &tokens);
/// The first `count` tokens after `prompt`, regardless of end tokens.
rt::Tokens fakeContinuation(rt::Tokens prompt, int64_t count, int64_t vocab = fakeVocab);

/// A temporary folder that is removed with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string file(const std::string &name) const { return (path / name).string(); }
  /// Names of the entries, sorted.
  std::vector<std::string> entries() const;

private:
  std::filesystem::path path;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_FAKEPROGRAM_H
