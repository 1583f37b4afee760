#include "backends/runtime/commands/GenerationReport.h"
#include "backends/runtime/support/Report.h"

#include <cstdio>

namespace mica::rt {

double tokensPerSecond(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

const char *nameOf(Finish finish) {
  switch (finish) {
  case Finish::Length:
    return "length";
  case Finish::EndToken:
    return "stop";
  case Finish::ContextFull:
    return "context";
  case Finish::StopSequence:
    return "stop_text";
  case Finish::Canceled:
    return "canceled";
  case Finish::Failed:
    return "error";
  }
  return "";
}

void noteRecomputed(int64_t tokens, double seconds) {
  if (tokens == 0)
    return;
  char line[120];
  std::snprintf(
      line, sizeof line,
      "%lld tokens were recomputed in %.2f s: rope's frequencies depend on the sequence length",
      static_cast<long long>(tokens), seconds);
  reportNote(line);
}

Result<GenerationSettings> usableSettings(GenerationSettings settings, const Manifest &manifest,
                                          const ProgramTokenizer *text) {
  if (Status usable = checkSettings(settings, manifest); !usable)
    return usable.error();
  if (!settings.stops.empty() && !text)
    return Error{"the program has no tokenizer, which --stop needs; leave it out"};
  if (text && settings.dryMultiplier.value_or(0) > 0)
    settings.dryBreakerTokens = text->sequencesWriting(
        settings.dryBreakers.value_or(GenerationSettings::defaultDryBreakers()));
  return settings;
}

} // namespace mica::rt
