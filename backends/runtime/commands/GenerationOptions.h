// The options of generation settings.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONOPTIONS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONOPTIONS_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/support/Result.h"

#include <CLI/CLI.hpp>
#include <string>

namespace mica::rt {

/// Options of sampling and repetition, each in a group of their own.
void addSampling(CLI::App &app, GenerationSettings &settings);
void addDrafts(CLI::App &app, GenerationSettings &settings);
void addStops(CLI::App &app, GenerationSettings &settings);
/// --checkpoint-bytes, see checkpointBudget.
void addCheckpointBytes(CLI::App &app, std::optional<uint64_t> &bytes);

/// Accepts the valid values of a setting.
CLI::Validator within(const SettingRange<double> &range);
CLI::Validator within(const SettingRange<int64_t> &range);

/// Sets a generation setting from text, as its option does; `name` is that
/// of the option without leading dashes. Errors: no such setting, or an invalid value.
Status changeSetting(GenerationSettings &settings, std::string name, const std::string &value);

/// "ID=B" of --logit-bias. Errors say what is expected.
Result<LogitBias> parseLogitBias(const std::string &text);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONOPTIONS_H
