//===- DriverHelp.cpp - --help of tools with MLIR's options ---------------===//

#include "tools/support/DriverHelp.h"

#include "backends/runtime/support/HelpFormatter.h"

#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace mica::tool {

/// Adds an option, or a flag if it has no value, with its line in the help.
static void addEntry(CLI::App &app, const std::string &option, const std::string &help) {
  auto [name, value] = StringRef(option).split(' ');
  if (value.empty())
    app.add_flag(name.str(), help);
  else
    app.add_option(name.str(), help)->type_name(value.str());
}

std::string DriverHelp::toText() const {
  CLI::App app(description, tool);
  app.formatter(rt::helpFormatter());
  app.set_help_flag("--help", "Print this help");
  addEntry(app, "--help-list", "List all passes and options, including those of MLIR and LLVM");
  addEntry(app, "--version", "Print the version");
  if (!file.empty())
    app.add_option("FILE", file);
  for (const auto &[heading, entries] : groups)
    rt::addGroup(app, heading.c_str(), [&entries = entries, &app] {
      for (const auto &[option, help] : entries)
        addEntry(app, option, help);
    });
  app.footer(footer);
  return app.help();
}

bool asksForHelp(int argc, char **argv) {
  return is_contained(ArrayRef(argv, argc).drop_front(), StringRef("--help"));
}

RegisteredPasses registeredPasses() {
  // The parser adds the names of all passes and pipelines to LLVM's options.
  mlir::PassPipelineCLParser parser("", "Passes");
  RegisteredPasses registered;
  auto add = [](std::vector<HelpEntry> &entries, const mlir::PassRegistryEntry *entry) {
    if (entry)
      entries.emplace_back(("--" + entry->getPassArgument()).str(),
                           entry->getPassDescription().str());
  };
  for (const auto &option : cl::getRegisteredOptions()) {
    add(registered.passes, mlir::PassInfo::lookup(option.first));
    add(registered.pipelines, mlir::PassPipelineInfo::lookup(option.first));
  }
  sort(registered.passes);
  sort(registered.pipelines);
  return registered;
}

} // namespace mica::tool
