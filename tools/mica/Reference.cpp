//===- Reference.cpp - completions, man pages, the option reference -------===//

#include "tools/mica/Reference.h"

#include "backends/cpu/driver/TextOutput.h"
#include "backends/runtime/commands/ProgramCommands.h"
#include "backends/runtime/support/CompletionScript.h"
#include "frontend/formats/gguf/TensorTypes.h"
#include "tools/mica/CommandLine.h"
#include "tools/mica/ManPage.h"
#include "tools/support/Support.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace mica::tool {

static rt::CommandSpec describeMica() {
  CLI::App app("", "mica");
  ToolArguments arguments;
  addCommands(app, arguments);
  return rt::describeCommand(app);
}

static rt::CommandSpec describeProgram(const std::string &name) {
  CLI::App app("", name);
  rt::Arguments arguments;
  rt::addProgramCommands(app, arguments);
  return rt::describeCommand(app);
}

/// `mica run MODEL` accepts all options of the program.
static rt::CommandSpec describeForCompletion() {
  rt::CommandSpec mica = describeMica(), program = describeProgram("PROGRAM");
  auto run = find_if(mica.commands, [](const auto &command) { return command.name == "run"; });
  for (rt::OptionSpec &option : program.options) {
    bool isKnown = any_of(run->options, [&](const rt::OptionSpec &own) {
      return !own.names.empty() && own.names == option.names;
    });
    if (!option.isPositional() && !isKnown)
      run->options.push_back(std::move(option));
  }
  run->commands = std::move(program.commands);
  return mica;
}

int runCompletion(const std::string &shell) {
  return print(rt::completionScript(describeForCompletion(), *rt::shellNamed(shell)));
}

/// Escapes text for a table in Markdown.
static std::string cell(StringRef text) {
  std::string out;
  for (char c : text)
    out += c == '|' || c == '<' || c == '*' || c == '_' ? std::string("\\") + c : std::string(1, c);
  return out;
}

static std::string footerOf(StringRef footer) {
  std::string text;
  for (const FooterPart &part : footerParts(footer))
    text += part.isVerbatim ? "```\n" + part.text + "\n```\n\n" : cell(part.text) + "\n\n";
  return text;
}

static std::string markdownOf(const rt::CommandSpec &spec, const std::string &command) {
  std::string text = "### " + command + "\n\n" + cell(sentence(spec.description)) + "\n\n```\n" +
                     synopsisOf(spec, command) + "\n```\n\n";
  for (const auto &[name, options] : optionGroups(spec)) {
    text += "| " + name + " | |\n|---|---|\n";
    for (const rt::OptionSpec *option : options)
      text += "| `" + optionText(*option) + "` | " + cell(option->help) + " |\n";
    text += "\n";
  }
  text += footerOf(spec.footer);
  for (const rt::CommandSpec &each : spec.commands)
    text += markdownOf(each, command + " " + each.name);
  return text;
}

namespace {
/// A file in the folder `share` of a prefix.
struct InstalledFile {
  std::string path, text;
};
} // namespace

static std::vector<InstalledFile> installedFiles() {
  std::vector<InstalledFile> files;
  rt::CommandSpec mica = describeMica(), completed = describeForCompletion();
  std::vector<std::string> pages;
  pages.reserve(mica.commands.size() + 1);
  for (const rt::CommandSpec &command : mica.commands)
    pages.push_back("mica-" + command.name);
  pages.push_back("mica-program");
  auto addPage = [&](const rt::CommandSpec &spec, const std::string &title,
                     ArrayRef<std::string> others) {
    files.push_back({"man/man1/" + title + ".1", manPage(spec, title, others)});
  };
  for (rt::CommandSpec &command : mica.commands) {
    std::string title = "mica-" + command.name;
    rt::CommandSpec page = command;
    page.name = "mica " + command.name;
    addPage(page, title, {"mica", "mica-program"});
  }
  addPage(describeProgram("PROGRAM"), "mica-program", {});
  addPage(mica, "mica", pages);
  auto addScript = [&](const std::string &path, rt::Shell shell) {
    files.push_back({path, rt::completionScript(completed, shell)});
  };
  addScript("bash-completion/completions/mica", rt::Shell::Bash);
  addScript("zsh/site-functions/_mica", rt::Shell::Zsh);
  addScript("fish/vendor_completions.d/mica.fish", rt::Shell::Fish);
  return files;
}

static Error install(StringRef folder) {
  for (const InstalledFile &file : installedFiles()) {
    SmallString<128> path(folder);
    sys::path::append(path, file.path);
    if (std::error_code failed = sys::fs::create_directories(sys::path::parent_path(path)))
      return createStringError(path + ": cannot be created (" + failed.message() +
                               "); choose another --install");
    if (Error error = cpu::writeText(path, file.text, "--install"))
      return error;
  }
  return Error::success();
}

/// The bits per weight of a format in a program.
static double packedBits(const BlockFormat &format) {
  constexpr int64_t k = kMaxBlockElements; // whole blocks of every format
  return 8.0 * static_cast<double>(PackedBlocks(format).bytesOf(k)) / (PackedBlocks::kColumns * k);
}

/// The readable types, and sizes of those that are block formats and of Mica's own formats, for
/// tables in the documentation.
static json::Object readableTypes() {
  json::Array blocks, own;
  for (const TensorType *type : blockTypes())
    blocks.push_back(json::Object{{"name", type->name},
                                  {"elements", type->elements},
                                  {"file_bits", type->bits()},
                                  {"program_bits", packedBits(*type->format)}});
  for (const BlockFormat &format : blockFormats())
    if (format.isOwn)
      own.push_back(json::Object{{"name", StringRef(format.name)},
                                 {"elements", format.elements},
                                 {"group", format.group},
                                 {"program_bits", packedBits(format)}});
  return json::Object{
      {"readable", readableTypeNames()}, {"blocks", std::move(blocks)}, {"own", std::move(own)}};
}

int runReference(const ReferenceArguments &arguments) {
  if (arguments.formats)
    return print(llvm::formatv("{0:2}\n", json::Value(readableTypes())).str());
  if (arguments.folder.empty()) {
    std::string text =
        markdownOf(describeMica(), "mica") + markdownOf(describeProgram("PROGRAM"), "PROGRAM");
    return print(StringRef(text).rtrim("\n").str() + "\n");
  }
  if (Error error = install(arguments.folder))
    return report(std::move(error));
  return kDone;
}

} // namespace mica::tool
