//===- CommandLine.cpp - the options of mica ------------------------------===//

#include "tools/mica/CommandLine.h"

#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/CompletionScript.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"
#include "ir/Entry/Ranks.h"

namespace mica::tool {

constexpr const char *modelHelp =
    "Hugging Face folder, GGUF file, or .mlir file at stage model next to its weights";
constexpr const char *hubHelp =
    "; or OWNER/NAME[:FILE or quantization] to pull it from the Hugging Face hub";

/// What `list` and `rm` operate on.
constexpr const char *cachesHelp =
    "Models are stored in $HF_HUB_CACHE (default: $HF_HOME/hub, or ~/.cache/huggingface/hub), "
    "shared with other tools. Compiled programs are stored in $XDG_CACHE_HOME/mica (default: "
    "~/.cache/mica); when they exceed $MICA_CACHE_BYTES (default: 16 GiB), the least recently used "
    "ones are removed.";

constexpr const char *outputGroup = "Output";

static void addJson(CLI::App &command, bool &json) {
  command.add_flag("--json", json, "Print one JSON object");
}

static void addCalibration(CLI::App &command, CompileArguments &arguments) {
  CLI::Option *calibrate =
      command
          .add_option(
              "--calibrate", arguments.calibrate,
              "With --weights int8 or int4: weight rounding errors by activation statistics "
              "from this text (at most 49152 tokens of it)")
          ->type_name("FILE");
  command
      .add_option(
          "--imatrix", arguments.imatrix,
          "With --weights int8 or int4: use the activation statistics of this file, written "
          "by llama-imatrix of llama.cpp")
      ->type_name("FILE")
      ->excludes(calibrate);
}

static void addCompileOutput(CLI::App &command, CompileArguments &arguments) {
  std::vector<std::string> stages;
  for (const StageInfo &info : getStages())
    stages.push_back(info.name.str());
  command.add_option("-o", arguments.output, "Output file (default for text: standard output)")
      ->type_name("FILE");
  command.add_option("--emit", arguments.emit, "Stop at this stage")
      ->type_name("STAGE")
      ->check(rt::oneOf(stages))
      ->capture_default_str();
  command.add_option("--dump-stages", arguments.dumpFolder, "Write every stage to this folder")
      ->type_name("DIR");
  command.add_flag("--json", arguments.json,
                   "Print the time and size of each stage and the peak of anonymous memory");
  command.add_flag(
      "-v,--verbose", arguments.verbose,
      "List ignored settings and tensors, and matrices whose blocks are not preserved; "
      "print the cost of each stage");
}

/// The N of tensor=N; nullopt if that is not what `text` is.
static std::optional<int64_t> parseShard(llvm::StringRef text) {
  int64_t ranks;
  if (!text.consume_front("tensor=") || text.getAsInteger(10, ranks) || ranks < 1 ||
      ranks > kMaxRanks)
    return std::nullopt;
  return ranks;
}

static void addShard(CLI::App &command, CompileArguments &arguments) {
  command
      .add_option_function<std::string>(
          "--shard",
          [&arguments](const std::string &text) {
            std::optional<int64_t> ranks = parseShard(text);
            if (!ranks)
              throw CLI::ValidationError("--shard", "'" + text +
                                                        "' is not tensor=N, with N from 1 to " +
                                                        std::to_string(kMaxRanks));
            arguments.ranks = *ranks;
          },
          "Partition the model for N processes, which `mpirun -n N PROGRAM` starts on one or "
          "several hosts (tensor parallelism): each has 1/N of the matrices, padded to groups of "
          "64 "
          "columns; the ids are those of one process")
      ->type_name("tensor=N");
}

static void addCompile(CLI::App &app, CompileArguments &arguments) {
  CLI::App *command =
      app.add_subcommand("compile", "Compile a model to a program, or to an earlier stage");
  arguments.model.addTo(*command, std::string(modelHelp) + hubHelp);
  rt::addGroup(*command, kPrecisionGroup, [&] { addCalibration(*command, arguments); });
  rt::addGroup(*command, "Program", [&] { addShard(*command, arguments); });
  rt::addGroup(*command, outputGroup, [&] { addCompileOutput(*command, arguments); });
  command->footer("If $MICA_OBJECT_CACHE is a folder, compiled code is stored there, up to 1 GiB, "
                  "and reused for models with the same shapes and formats.\n\n"
                  "Example:\n  mica compile model.gguf -o model && ./model chat");
}

static void addRun(CLI::App &app, RunArguments &arguments) {
  CLI::App *command = app.add_subcommand("run", "Compile a model into a cache once, and run it");
  arguments.model.addTo(*command, std::string(modelHelp) + hubHelp);
  command->footer(
      std::string(
          "All other arguments are passed to the program; see `mica run MODEL --help`.\n\n") +
      cachesHelp +
      "\n\nExamples:\n  mica run model.gguf chat\n  mica run OWNER/NAME:Q4_K_M -p 'Once upon a "
      "time' -n 100");
}

static void addInspect(CLI::App &app, InspectArguments &arguments) {
  CLI::App *command = app.add_subcommand("inspect", "Show what a model or a program contains");
  arguments.model.addTo(*command, std::string(modelHelp) + hubHelp +
                                      "; or a program, for which --json is the only option");
  rt::addGroup(*command, outputGroup, [&] { addJson(*command, arguments.json); });
  command->footer("Example:\n  mica inspect model.gguf");
}

static void addExplore(CLI::App &app, ExploreArguments &arguments) {
  CLI::App *command = app.add_subcommand(
      "explore",
      "Write a web page that shows what the compiler did, from the model to the machine code");
  arguments.model.addTo(*command, std::string(modelHelp) + hubHelp +
                                      "; or a program, whose manifest is shown");
  rt::addGroup(*command, outputGroup, [&] {
    command->add_option("-o,--output", arguments.output, "Output file; the page needs no network")
        ->type_name("FILE.html");
    command
        ->add_option("--profile", arguments.profile,
                     "Show the times of this file of `PROGRAM bench --profile-json`; the program "
                     "must have been compiled from MODEL with the same options")
        ->type_name("FILE");
    command->add_flag("--open", arguments.open, "Open the page in the browser");
  });
  command->footer("Example:\n  mica explore model.gguf -o model.html --open");
}

/// `name` for both sides, or one value for each: --weights bf16,int8.
static void addForBoth(CLI::App &app, const char *name, std::string ModelArguments::*member,
                       DiffArguments &arguments, std::vector<std::string> known,
                       const std::string &what) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&arguments, member](const std::vector<std::string> &values) {
           arguments.a.*member = values.front();
           arguments.b.*member = values.back();
         },
         what + "; two, separated by a comma, are for A and B")
      ->type_name("FORMAT")
      ->delimiter(',')
      ->expected(1, 2)
      ->check(rt::oneOf(std::move(known)));
}

static void addDiff(CLI::App &app, DiffArguments &arguments) {
  CLI::App *command = app.add_subcommand(
      "diff", "Compare two models or programs: config, bytes, kernels and stages");
  arguments.a.command = arguments.b.command = command;
  command->add_option("A", arguments.a.model, "Model or program")->required();
  command->add_option("B", arguments.b.model, "Model or program")->required();
  rt::addGroup(*command, kPrecisionGroup, [&] {
    addForBoth(*command, "--weights", &ModelArguments::weights, arguments, precisionNames(),
               "Weight format of models");
    addForBoth(*command, "--kv", &ModelArguments::kv, arguments, cachePrecisionNames(),
               "KV cache format of models");
    addForBoth(*command, "--rows", &ModelArguments::rows, arguments, promptRowsNames(),
               "Activations of models that are multiplied by block-quantized weights in "
               "prefill");
  });
  // What explore::Recorder records as text.
  std::vector<std::string> recorded;
  for (const StageInfo &info : getStages())
    if (info.stage < Stage::Obj && info.stage != Stage::Llvm)
      recorded.push_back(info.name.str());
  rt::addGroup(*command, outputGroup, [&] {
    command
        ->add_option("--text", arguments.text,
                     "Also report the KL divergence of program B from program A on this text")
        ->type_name("FILE");
    command
        ->add_option("--stage", arguments.stages,
                     "Also print the lines in which the models differ at this stage; several, "
                     "separated by commas")
        ->type_name("STAGE")
        ->delimiter(',')
        ->check(rt::oneOf(recorded));
    command->add_flag("--bench", arguments.bench, "Also measure the speed of both programs");
    addJson(*command, arguments.json);
  });
  command->footer(
      "Examples:\n  mica diff model model --weights bf16,int8 --stage kernels\n  mica diff "
      "old-program new-program --text text.txt --bench");
}

static void addEvalText(CLI::App &command, EvalArguments &arguments) {
  CLI::Option *text = command.add_option("--text", arguments.text, "Text file in UTF-8");
  CLI::Option *tokens = command.add_option("--tokens-file", arguments.tokensFile,
                                           "The text as token ids, separated by spaces or commas");
  text->type_name("FILE")->excludes(tokens);
  tokens->type_name("FILE");
  command
      .add_option("--context", arguments.context,
                  "Window size in tokens (default: the programs' context, at most 512)")
      ->transform(rt::wholeNumber(2, INT32_MAX));
  command
      .add_option("--windows", arguments.windows,
                  "Maximum number of windows (default: the whole text)")
      ->transform(rt::wholeNumber(1));
}

static void addEvalMachine(CLI::App &command, EvalArguments &arguments) {
  command
      .add_option("--prefill-chunk", arguments.prefillChunk,
                  "Tokens that the programs process at once")
      ->transform(rt::wholeNumber(1));
  command.add_flag("--as-decode", arguments.asDecode,
                   "Compute rows as in decoding instead of as in prefill");
  command.add_option("-t,--threads", arguments.threads, "Number of threads of the programs")
      ->transform(rt::wholeNumber(1));
}

static void addEval(CLI::App &app, EvalArguments &arguments) {
  CLI::App *command = app.add_subcommand(
      "eval", "Measure the perplexity of a program, and its KL divergence from another");
  command->add_option("PROGRAM", arguments.program, "Compiled program")->required();
  rt::addGroup(*command, "Text", [&] { addEvalText(*command, arguments); });
  rt::addGroup(*command, "Machine", [&] { addEvalMachine(*command, arguments); });
  rt::addGroup(*command, outputGroup, [&] {
    command
        ->add_option("--reference", arguments.reference,
                     "Also report the KL divergence from this program, how often both agree on the "
                     "most likely token, and the RMS difference of probabilities")
        ->type_name("PROGRAM2");
    addJson(*command, arguments.json);
  });
  command->footer(
      "The text is split into windows that do not overlap; a shorter last window is ignored. "
      "Each window is evaluated independently and starts with the BOS token if the tokenized text "
      "does. The positions in the second half of each window are scored, so that each has at least "
      "half a window of context.\n\n"
      "The column std. error holds the standard error of the perplexity; the number after +- is "
      "the standard error of the mean KL divergence. Both estimate the error from sampling the "
      "text.\n\n"
      "With --reference, over all scored positions:\n"
      "  KL: sum over the vocabulary of q (log q - log p) in nats, with p of PROGRAM and q of "
      "PROGRAM2; mean, percentiles and maximum\n"
      "  same top: share of positions at which both have the same most likely token\n"
      "  RMS delta p: sqrt(mean (p - q)^2), with p and q the probabilities of the next token of "
      "the text, in percentage points\n"
      "With --context 512, windows, scored positions and definitions are those of llama.cpp's "
      "llama-perplexity -c 512 --kl-divergence.\n\n"
      "Example:\n  mica eval int4-program --text wiki.txt --reference bf16-program");
}

static void addVerifyInput(CLI::App &command, VerifyArguments &arguments) {
  command
      .add_option("--text", arguments.text,
                  "Process the first tokens of this text (default: random tokens)")
      ->type_name("FILE");
  command
      .add_option(
          "--against", arguments.against,
          "Reference model for the interpreter (default: MODEL), such as the folder that a GGUF "
          "file was converted from")
      ->type_name("MODEL2");
  command
      .add_option("--positions", arguments.positions,
                  "Number of tokens to process (default: 48 to 512, fewer for large models); use "
                  "more to reach the end of sliding windows and rope length thresholds")
      ->transform(rt::wholeNumber(2));
}

static void addVerify(CLI::App &app, VerifyArguments &arguments) {
  CLI::App *command =
      app.add_subcommand("verify", "Compare each op of a program with the reference interpreter");
  arguments.model.addTo(*command,
                        std::string("Hugging Face folder, GGUF file or .mlir file") + hubHelp);
  rt::addGroup(*command, "Input", [&] { addVerifyInput(*command, arguments); });
  rt::addGroup(*command, "Machine", [&] {
    command->add_option("-t,--threads", arguments.threads, "Number of threads of the program")
        ->transform(rt::wholeNumber(1));
  });
  rt::addGroup(*command, outputGroup, [&] { addJson(*command, arguments.json); });
  command->footer(
      "Compares each op with the reference interpreter, run on the program's own inputs and "
      "quantized weights, and the logits with the f32 interpreter. Exits with 1 if an op, or for "
      "f32 and bf16 the logits, exceed the tolerance; the last line is the verdict. For int8 and "
      "int4, a larger distance of the logits is expected from the format and is not a failure; "
      "`mica eval` measures it.\n\n"
      "NMSE is the normalized mean squared error, sum (x - y)^2 / sum y^2, with x of the program "
      "and y of the interpreter; max is the largest absolute difference.\n\n"
      "Example:\n  mica verify model.gguf --text README.md");
}

static void addPull(CLI::App &app, PullArguments &arguments) {
  CLI::App *command = app.add_subcommand("pull", "Download a model from the Hugging Face hub");
  command
      ->add_option("MODEL", arguments.model,
                   "OWNER/NAME: configuration, tokenizer and safetensors; OWNER/NAME:Q4_K_M: the "
                   "GGUF file whose name ends with it; OWNER/NAME:FILE: that file")
      ->required();
  command->footer(
      "Prints the path of the model. Files are stored in the cache of huggingface_hub. Existing "
      "files are not downloaded again, interrupted downloads are resumed, and every file is "
      "verified by its hash.\n\n"
      "HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE and HF_HUB_DOWNLOAD_TIMEOUT "
      "have the same meaning as in huggingface_hub.\n\n"
      "Examples:\n  mica pull Qwen/Qwen3-0.6B\n  mica pull "
      "bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M");
}

static void addList(CLI::App &app, ListArguments &arguments) {
  CLI::App *command = app.add_subcommand("list", "List pulled models and compiled programs");
  addJson(*command, arguments.json);
  command->footer(std::string(cachesHelp) + "\n\nExample:\n  mica list");
}

static void addRemove(CLI::App &app, RemoveArguments &arguments) {
  CLI::App *command = app.add_subcommand("rm", "Remove pulled models and compiled programs");
  command->add_option("NAME", arguments.names,
                      "Pulled model OWNER/NAME, files of it as OWNER/NAME:FILE or quantization, or "
                      "a compiled program, with or without its key");
  command->add_flag("--programs", arguments.programs, "Remove all compiled programs");
  command->footer(std::string(cachesHelp) +
                  "\n\nExamples:\n  mica rm OWNER/NAME:Q4_K_M\n  mica rm --programs");
}

static void addReference(CLI::App &app, ReferenceArguments &arguments) {
  CLI::App *command = app.add_subcommand("reference", "Print the option reference of docs/cli.md");
  command->group(""); // only used by the build
  command
      ->add_option("--install", arguments.folder,
                   "Write man pages and completions below DIR instead, in the layout of a prefix")
      ->type_name("DIR");
  command->add_flag("--formats", arguments.formats,
                    "Print the types of GGUF files that are read as JSON instead");
}

const std::vector<rt::ForeignOption> &foreignOptions() {
  static const std::vector<std::string> compiling = {"compile", "run",  "inspect",
                                                     "explore", "diff", "verify"};
  static const std::vector<rt::ForeignOption> options = {
      {{"-hf", "--hf-repo"}, "pass OWNER/NAME or OWNER/NAME:QUANTIZATION as MODEL", compiling},
      {{"-ctk", "-ctv", "--cache-type-k", "--cache-type-v"}, "use --kv int8", compiling},
      {{"-md", "--model-draft"}, "there are no draft models; leave it out", compiling},
  };
  return options;
}

void addCommands(CLI::App &app, ToolArguments &arguments) {
  app.description("Mica compiles language models to native programs.");
  app.formatter(rt::helpFormatter());
  app.set_version_flag("--version", "mica " MICA_VERSION);
  app.require_subcommand(1);
  app.footer("Examples:\n  mica compile model.gguf -o model && ./model chat\n  mica run "
             "OWNER/NAME:Q4_K_M chat\n\nSee `mica COMMAND --help` for the options of a command.");
  addCompile(app, arguments.compile);
  addRun(app, arguments.run);
  addInspect(app, arguments.inspect);
  addExplore(app, arguments.explore);
  addDiff(app, arguments.diff);
  addEval(app, arguments.eval);
  addVerify(app, arguments.verify);
  addPull(app, arguments.pull);
  addList(app, arguments.list);
  addRemove(app, arguments.remove);
  rt::addCompletionCommand(app, arguments.completionShell);
  addReference(app, arguments.reference);
}

} // namespace mica::tool
