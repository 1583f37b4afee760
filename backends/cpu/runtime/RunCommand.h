// Generating text: the program without a subcommand.
#pragma once

#include "backends/cpu/runtime/Arguments.h"

namespace mica::rt {

/// The options of the command line, where absent those of the manifest's generation defaults, else
/// temperature 0.8 and top-p 0.95. `do_sample: false` means greedy. Without --seed, one is drawn.
SamplingOptions samplingOptions(const RunArguments &arguments, const Manifest &manifest);

/// Text, token ids or JSON to stdout; everything else to stderr.
Status runCommand(const Model &model, const RunArguments &arguments);

} // namespace mica::rt
