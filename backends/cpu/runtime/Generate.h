// The generation loop: prompts in, tokens out.
#pragma once

#include "backends/cpu/runtime/Sampler.h"
#include "backends/cpu/runtime/Session.h"

namespace mica::rt {

using Tokens = std::vector<int32_t>;

struct GenerateOptions {
  int64_t maxTokens = 256; ///< New tokens per sequence, at most.
  int64_t prefillChunk =
      512; ///< Rows per call of the model while prompts are read, see rowsOfChunk.
  bool ignoreEos = false;
  bool allLogits =
      false; ///< Hand every fed row's logits to the listener, not only what is sampled from.
  SamplingOptions sampling;
  /// Tokens drafted from the text so far and verified in one call of the model, at most; 0: none.
  /// Changes no token.
  int64_t lookup = 0;
  /// What the text goes on with instead of what is sampled, from its beginning again at its end;
  /// empty: nothing. For measuring.
  Tokens script;
  Tokens endTokens; ///< Tokens that end a text besides those of the manifest.
  /// Positions of each prompt that the session holds already, fewer than it has.
  int64_t held = 0;
  /// How long the texts are known to become; 0: as long as their prompts. For measuring.
  int64_t expected = 0;
};

enum class Finish { Length, EndToken, ContextFull, StopText };

struct Generated {
  Tokens tokens; ///< New ones, an end token included.
  Finish finish = Finish::Length;
};

struct GenerateResult {
  std::vector<Generated> sequences;
  int64_t promptTokens = 0, decodeTokens = 0; ///< Tokens fed.
  int64_t drafted = 0, accepted = 0; ///< Tokens drafted, and those that the text went on with.
  int64_t decodeCalls = 0;           ///< Calls of the model behind the prompts.
  int64_t readAgain = 0;             ///< Tokens fed once more, see Session.
  double promptSeconds = 0, decodeSeconds = 0;
  double readAgainSeconds = 0; ///< No part of the others.
};

/// Hears what happens while it happens. An error ends generation.
class GenerateListener {
public:
  virtual ~GenerateListener() = default;
  virtual Status token(int64_t sequence, int32_t token) { return {}; }
  /// Whether a sequence shall go on behind its newest token. Also asked while its prompt is read,
  /// and while tokens are read again, when no is the end of all sequences.
  virtual bool goesOn(int64_t sequence) { return true; }
  /// The logits of a sequence's next fed position; only with GenerateOptions::allLogits.
  virtual Status logits(int64_t sequence, std::span<const float> row) { return {}; }
};

/// Why a prompt cannot be read: it is empty, or longer than the context.
Status checkPrompt(const Manifest &manifest, const Tokens &prompt);

/// Reads the prompts (none may be empty) in chunks, then decodes all sequences together until each
/// has its end. Errors: tokens outside the vocabulary, a prompt longer than the context, logits
/// that are not finite, the listener's own, drafts for a program that does not say how many rows it
/// computes alike.
Result<GenerateResult> generate(const Model &model, const std::vector<Tokens> &prompts,
                                const GenerateOptions &options, GenerateListener &listener);
/// The same with a session that has a sequence for each prompt; what it holds behind
/// GenerateOptions::held is forgotten. Of prompts that a listener ends, not all may be read.
Result<GenerateResult> generate(const Model &model, Session &session,
                                const std::vector<Tokens> &prompts, const GenerateOptions &options,
                                GenerateListener &listener);

} // namespace mica::rt
