// Generating text: the program without a subcommand.
#pragma once

#include "backends/cpu/runtime/Arguments.h"
#include "backends/cpu/runtime/Text.h"

namespace mica::rt {

/// The options of the command line, where absent what the model proposes, where it proposes nothing
/// temperature 0.8 and top-p 0.95. `do_sample: false` means greedy. Without --seed, one is drawn.
SamplingOptions samplingOptions(const RunArguments &arguments, const Manifest &manifest);

/// Why the options cannot be used with this model: a bias for a token that it lacks, a stop string
/// without a tokenizer.
Status checkSampling(const RunArguments &arguments, const Manifest &manifest, const Text *text);

/// How a sequence ended, in JSON.
const char *nameOf(Finish finish);

/// What JSON and people are told of the options: the names of the command line with their values.
std::vector<std::pair<std::string, double>> describeSampling(const SamplingOptions &options);

/// Text, token ids or JSON to stdout; everything else to stderr.
Status runCommand(const Model &model, const RunArguments &arguments);

/// Says how many tokens were fed once more, where there were some (see Session).
void noteReadAgain(int64_t tokens, double seconds);

} // namespace mica::rt
