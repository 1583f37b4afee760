//===- CommandLine.cpp - what mica understands -----------------------------===//

#include "tools/mica/CommandLine.h"

#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CompletionScript.h"

namespace mica::tool {

static const std::string modelHelp =
    "a Hugging Face folder, a GGUF file, or a .mlir file at stage model with its weights beside it";
static const std::string hubHelp =
    "; or OWNER/NAME[:FILE or quantization] on the Hugging Face hub, which is pulled";

/// What `list` and `rm` work on.
static const std::string cachesHelp =
    "Models are in $HF_HUB_CACHE, by default $HF_HOME/hub or ~/.cache/huggingface/hub, which other "
    "tools share. Compiled programs are in $XDG_CACHE_HOME/mica, by default ~/.cache/mica; those "
    "unused for the longest time are removed where all take more than $MICA_CACHE_BYTES, by "
    "default 16 GiB.";

static void addCompile(CLI::App &app, CompileArguments &arguments) {
  CLI::App *command =
      app.add_subcommand("compile", "compile a model to a program, or to any stage before");
  arguments.model.addTo(*command, modelHelp + hubHelp);
  std::vector<std::string> stages;
  for (const StageInfo &info : getStages())
    stages.push_back(info.name.str());
  command->add_option("-o", arguments.output, "the file to write (text goes to stdout without it)")
      ->type_name("FILE");
  CLI::Option *calibrate =
      command
          ->add_option(
              "--calibrate", arguments.calibrate,
              "with --weights int8 or int4: weight rounding errors by activation statistics "
              "collected on this text, of which at most 65536 tokens are read")
          ->type_name("FILE");
  command
      ->add_option("--imatrix", arguments.imatrix,
                   "take the activation statistics from this file of llama.cpp's llama-imatrix")
      ->type_name("FILE")
      ->excludes(calibrate);
  command->add_option("--emit", arguments.emit, "where to stop")
      ->check(CLI::IsMember(stages))
      ->capture_default_str();
  command->add_option("--dump-stages", arguments.dumpFolder, "write every stage into this folder")
      ->type_name("DIR");
  command->add_flag("--json", arguments.json,
                    "print seconds and bytes per stage, and the peak of anonymous memory");
  command->add_flag("-v,--verbose", arguments.verbose,
                    "list what is left out of the model, and what the stages cost");
  command->footer("Example:\n  mica compile model.gguf -o model && ./model chat");
}

static void addRun(CLI::App &app, RunArguments &arguments) {
  CLI::App *command =
      app.add_subcommand("run", "compile into a cache once, then behave as the program would");
  arguments.model.addTo(*command, modelHelp + hubHelp);
  command->footer("Everything else is handed on to the program: see `mica run MODEL --help`.\n\n" +
                  cachesHelp + "\n\nExample:\n  mica run model.gguf chat");
}

static void addInspect(CLI::App &app, InspectArguments &arguments) {
  CLI::App *command = app.add_subcommand("inspect", "say what is inside of a model or a program");
  arguments.model.addTo(*command, modelHelp + hubHelp +
                                      "; or a program, to which no option but --json applies");
  command
      ->add_option("--graph", arguments.graph, "draw the model's graph into FILE.svg or FILE.dot")
      ->type_name("FILE");
  command->add_flag("--json", arguments.json, "as one JSON object");
  command->footer("Example:\n  mica inspect model.gguf --graph model.svg");
}

static void addEval(CLI::App &app, EvalArguments &arguments) {
  CLI::App *command = app.add_subcommand(
      "eval", "measure the perplexity of a program on a text, and its KL divergence from another");
  command->add_option("PROGRAM", arguments.program, "a compiled program")->required();
  CLI::Option *text = command->add_option("--text", arguments.text, "a text in UTF-8");
  CLI::Option *tokens = command->add_option("--tokens-file", arguments.tokensFile,
                                            "the text as ids, separated by spaces or commas");
  text->type_name("FILE")->excludes(tokens);
  tokens->type_name("FILE");
  command
      ->add_option("--reference", arguments.reference,
                   "also the KL divergence from this program, how often both have the same top, "
                   "and the RMS difference of probabilities")
      ->type_name("PROGRAM2");
  command
      ->add_option("--context", arguments.context,
                   "ids of a window (default: what the programs hold, at most 512)")
      ->transform(rt::wholeNumber(2, INT32_MAX));
  command->add_option("--windows", arguments.windows, "windows at most (default: the whole text)")
      ->transform(rt::wholeNumber(1));
  command
      ->add_option("--prefill-chunk", arguments.prefillChunk,
                   "rows that the programs compute at once")
      ->transform(rt::wholeNumber(1));
  command->add_flag("--as-decode", arguments.asDecode,
                    "compute rows as both programs do in decoding (default: as in prompts)");
  command->add_option("--threads", arguments.threads, "threads of the programs")
      ->transform(rt::wholeNumber(1));
  command->add_flag("--json", arguments.json, "as one JSON object");
  command->footer(
      "The text is cut into windows that do not overlap; what is shorter than a window "
      "at its end is left out.\nEach window is computed on its own, and begins with the "
      "program's begin token where the text does.\nScored are the positions in its "
      "second half, which have half a window or more before them.\n\n"
      "The column std. error holds the standard error of the perplexity, the number after +- that "
      "of the mean KL divergence: how far off both may be, as the text is a sample.\n\n"
      "With --reference, over all scored positions:\n"
      "  KL           sum over the vocabulary of q (log q - log p) in nats, p of PROGRAM, q of "
      "PROGRAM2: mean, percentiles, maximum\n"
      "  same top     the share of positions at which both have the same most likely id\n"
      "  RMS delta p  sqrt(mean (p - q)^2), p and q the probabilities of the id that follows in "
      "the text, in percentage points\n"
      "With --context 512, windows, scored positions and definitions are those of llama.cpp's "
      "llama-perplexity -c 512 --kl-divergence.\n\n"
      "Example:\n  mica eval int4-program --text wiki.txt --reference bf16-program");
}

static void addVerify(CLI::App &app, VerifyArguments &arguments) {
  CLI::App *command = app.add_subcommand(
      "verify", "compare what a program computes, op by op, with the reference interpreter");
  arguments.model.addTo(*command,
                        "a folder with config.json, a GGUF file or a .mlir file" + hubHelp);
  command
      ->add_option("--text", arguments.text,
                   "a text whose first tokens are fed (default: random ids)")
      ->type_name("FILE");
  command
      ->add_option(
          "--against", arguments.against,
          "let the interpreter read the model from here, for instance from the folder that "
          "a GGUF file was made of")
      ->type_name("MODEL2");
  command
      ->add_option(
          "--positions", arguments.positions,
          "how many tokens are fed, so that windows and borders of ropes are met (default: "
          "48 to 512, fewer of a large model)")
      ->transform(rt::wholeNumber(2));
  command->add_option("--threads", arguments.threads, "threads of the program")
      ->transform(rt::wholeNumber(1));
  command->add_flag("--json", arguments.json, "as one JSON object");
  command->footer(
      "An op is held against the interpreter, which rounds weights and rows alike and computes "
      "from "
      "the program's own rows; logits against the interpreter in f32. Exit status 1 where an op is "
      "further off than the order of its sums explains, or logits of f32 or bf16 further than "
      "their precision does: the last line says so. What int8 and int4 lose shows in the distance "
      "of the logits and is no failure, as it is in the format: `mica eval` measures it.\n\n"
      "Example:\n  mica verify model.gguf --text README.md");
}

static void addPull(CLI::App &app, PullArguments &arguments) {
  CLI::App *command = app.add_subcommand("pull", "download a model from the Hugging Face hub");
  command
      ->add_option("MODEL", arguments.model,
                   "OWNER/NAME, of which the configuration, the tokenizer and safetensors are "
                   "downloaded; or OWNER/NAME:Q4_K_M, the GGUF file whose name ends so; or "
                   "OWNER/NAME:FILE")
      ->required();
  command->footer(
      "Prints the path of the model. Files go into the cache of huggingface_hub, and what is there "
      "is not downloaded again; an interrupted download is resumed. Every file is compared with "
      "its hash.\n\n"
      "HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE and HF_HUB_DOWNLOAD_TIMEOUT "
      "have huggingface_hub's meaning.");
}

static void addList(CLI::App &app, ListArguments &arguments) {
  CLI::App *command = app.add_subcommand("list", "list pulled models and compiled programs");
  command->add_flag("--json", arguments.json, "as one JSON object");
  command->footer(cachesHelp);
}

static void addRemove(CLI::App &app, RemoveArguments &arguments) {
  CLI::App *command = app.add_subcommand("rm", "remove pulled models and compiled programs");
  command->add_option(
      "NAME", arguments.names,
      "OWNER/NAME, a pulled model; OWNER/NAME:FILE or quantization, files of it; or "
      "the name of a compiled program, with or without its key");
  command->add_flag("--programs", arguments.programs, "remove all compiled programs");
  command->footer(cachesHelp);
}

static void addReference(CLI::App &app, ReferenceArguments &arguments) {
  CLI::App *command = app.add_subcommand("reference", "print the option reference of docs/cli.md");
  command->group(""); // for the build
  command
      ->add_option("--install", arguments.folder,
                   "instead write man pages and completions, each where a prefix has it")
      ->type_name("DIR");
}

void addCommands(CLI::App &app, ToolArguments &arguments) {
  app.description("Mica compiles language models to programs.");
  app.formatter(rt::helpFormatter());
  app.set_version_flag("--version", "mica " MICA_VERSION);
  app.require_subcommand(1);
  addCompile(app, arguments.compile);
  addRun(app, arguments.run);
  addInspect(app, arguments.inspect);
  addEval(app, arguments.eval);
  addVerify(app, arguments.verify);
  addPull(app, arguments.pull);
  addList(app, arguments.list);
  addRemove(app, arguments.remove);
  rt::addCompletionCommand(app, arguments.completionShell);
  addReference(app, arguments.reference);
}

} // namespace mica::tool
