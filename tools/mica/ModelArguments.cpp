//===- ModelArguments.cpp - MODEL, and how it is compiled -----------------===//

#include "tools/mica/ModelArguments.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"
#include "tools/support/Support.h"

using namespace llvm;

namespace mica::tool {

void ModelArguments::addTo(CLI::App &app, const std::string &what) {
  command = &app;
  CLI::Option *positional = app.add_option("MODEL", model, what);
  app.add_option("-m,--model", model, "Same as MODEL")->type_name("MODEL")->excludes(positional);
  app.callback([this] {
    if (model.empty())
      throw CLI::RequiredError("MODEL");
  });
  rt::addGroup(app, kPrecisionGroup, [&] { addPrecision(app); });
  rt::addGroup(app, "Program", [&] {
    app.add_option("-c,--max-seq,--ctx-size", maxSeq,
                   "Maximum sequence length (default: the model's own, at most 8192)")
        ->transform(rt::wholeNumber(1));
    app.add_flag("--keep-mtp", mtp,
                 "Keep the multi-token prediction (MTP) head, with which the program can draft "
                 "tokens (its --mtp N)");
    app.add_option("--target", target, "Target CPU, by LLVM's name, or native")
        ->type_name("CPU")
        ->capture_default_str();
  });
}

void ModelArguments::addPrecision(CLI::App &app) {
  app.add_option("--weights", weights,
                 "Weight format: int8 has a scale per 32 weights, int4 a scale and an offset "
                 "(default: the checkpoint's own, f16 becomes bf16, block-quantized weights are "
                 "preserved; int8 and int4 requantize blocks, which loses precision)")
      ->type_name("FORMAT")
      ->check(rt::oneOf(precisionNames()));
  app.add_option("--kv", kv,
                 "KV cache format: int8 has a scale per head and position (default: f32 for f32 "
                 "weights, else bf16)")
      ->type_name("FORMAT")
      ->check(rt::oneOf(cachePrecisionNames()));
  app.add_option(
         "--rows", rows,
         "Activations multiplied by block-quantized weights in prefill: exact rounds both to bf16, "
         "or uses 16-bit integers on targets without bf16 dot products; int8 quantizes them to 8 "
         "bits per 32, which is less precise, and faster with most formats (default: exact)")
      ->type_name("FORMAT")
      ->check(rt::oneOf(promptRowsNames()));
}

std::string ModelArguments::givenOption(size_t values) const {
  for (const char *name : {"--weights", "--kv", "--rows", "--max-seq", "--keep-mtp", "--target"})
    if (const CLI::Option *option = command ? command->get_option_no_throw(name) : nullptr;
        option && option->count() >= values)
      return name;
  return {};
}

Expected<cpu::CompileOptions> ModelArguments::resolve() const {
  Expected<cpu::TargetDescription> description = cpu::describeTarget(target);
  if (!description)
    return description.takeError();
  cpu::CompileOptions options;
  options.target = std::move(*description);
  options.weights = precisionNamed(weights);
  options.kv = precisionNamed(kv);
  options.promptRows = promptRowsNamed(rows);
  if (maxSeq > 0)
    options.maxSeq = maxSeq;
  return options;
}

Expected<cpu::CompileOptions> programOptions(const ModelArguments &arguments, const char *argv0) {
  Expected<cpu::CompileOptions> options = arguments.resolve();
  if (!options)
    return options;
  Expected<std::string> launcher = launcherPath(argv0);
  if (!launcher)
    return launcher.takeError();
  options->launcher = *launcher;
  Expected<std::optional<cpu::ObjectCache>> objects = cpu::ObjectCache::fromEnvironment();
  if (!objects)
    return objects.takeError();
  options->objects = std::move(*objects);
  return options;
}

} // namespace mica::tool
