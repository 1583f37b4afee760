//===- InterpretOptions.cpp - the options of mica-interpret ---------------===//

#include "tools/mica-interpret/InterpretOptions.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"

namespace mica::tool {

void addOptions(CLI::App &app, InterpretOptions &options) {
  app.add_option("FILE", options.file, "IR, or - for standard input")->required();
  rt::addGroup(app, "Input", [&] {
    app.add_option(
           "--function", options.function,
           "Function to run (default: every public function without arguments other than caches)")
        ->type_name("NAME");
    app.add_option("--input", options.inputs,
                   "A .npy file for each argument that is not a cache, in order")
        ->type_name("FILE");
    app.add_option("--cache", options.cache,
                   "Size of the initial, empty caches: BATCHxPOSITIONS (default: 1x16)")
        ->type_name("SIZE");
    app.add_option("--weights", options.weights,
                   "Folder with the checkpoint: safetensors files, or NAME.npy for every tensor")
        ->type_name("FOLDER");
  });
  rt::addGroup(app, "Results", [&] {
    app.add_option("--output-prefix", options.outputPrefix,
                   "Write result N, from 0 on, to the file PREFIXN.npy: out/ for out/0.npy, "
                   "x. for x.0.npy")
        ->type_name("PREFIX");
    app.add_option("--expect", options.expected,
                   "A .npy file for each result, which must match within --tolerance")
        ->type_name("FILE");
    app.add_option("--tolerance", options.tolerance,
                   "Maximum error of results, max |a - b| / max |b| (default: 1e-6)")
        ->check(rt::numberBetween(0, 1e30));
    app.add_flag("--print", options.print, "Print the results with 6 significant digits");
    app.add_flag("--trace", options.trace, "Print the results of every op to standard error");
  });
  app.footer("Example:\n  mica-interpret norm.mlir --function f --input x.npy --print");
}

} // namespace mica::tool
