#include "backends/runtime/commands/ForeignOptions.h"

namespace mica::rt {

const std::vector<ForeignOption> &foreignOptions() {
  static const std::vector<std::string> run = {""}, chat = {"chat"}, serve = {"serve"},
                                        bench = {"bench"}, generating = {"", "chat"},
                                        drafting = {"", "chat", "bench"},
                                        prefilling = {"", "chat", "bench", "serve", "score"};
  static const std::vector<ForeignOption> options = {
      {{"-c", "--ctx-size"},
       "the context length is set when compiling (mica compile --max-seq N); leave it out"},
      {{"-m", "--model", "-hf", "--hf-repo"}, "the program contains its model; leave it out"},
      {{"-ctk", "-ctv", "--cache-type-k", "--cache-type-v"},
       "the KV cache format is set when compiling (mica compile --kv int8); leave it out"},
      {{"-b", "--batch-size", "-ub", "--ubatch-size"}, "use --prefill-chunk N", prefilling},
      {{"-tb", "--threads-batch"}, "prompts and decoding use the same threads; use --threads N"},
      {{"-r", "--reverse-prompt"}, "use --stop TEXT", generating},
      {{"-cnv", "--conversation"}, "use the command chat", run},
      {{"-cnv", "--conversation"}, "always on; leave it out", chat},
      {{"-no-cnv", "--no-conversation"}, "always on without --chat; leave it out", run},
      {{"-no-cnv", "--no-conversation"}, "leave out the command chat and use -p TEXT", chat},
      {{"-st", "--single-turn"}, "use --chat -p TEXT", run},
      {{"-st", "--single-turn"}, "use --chat -p TEXT instead of the command chat", chat},
      {{"--jinja"}, "always on; leave it out"},
      {{"--no-display-prompt"}, "always on; leave it out", generating},
      {{"--no-mmap"}, "use --huge-pages"},
      {{"-md", "--model-draft"}, "there are no draft models; use --lookup N", drafting},
      {{"--lora"}, "there are no LoRA adapters; merge it into the model and compile that"},
      {{"-np", "--parallel"}, "use --sequences N", serve},
      {{"-np", "--parallel"}, "use --batch B for the requests in a file", run},
      {{"-cb", "--cont-batching"}, "always on; leave it out", serve},
      {{"-p", "--n-prompt"}, "use --prompt N", bench},
      {{"-n", "--n-gen"}, "use --gen N", bench},
      {{"-d", "--n-depth"}, "use --depth N", bench},
      {{"-r", "--repetitions"}, "use --repeat N", bench},
      {{"-o", "--output"}, "the only other format is JSON; use --json", bench},
  };
  return options;
}

} // namespace mica::rt
