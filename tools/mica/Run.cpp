//===- Run.cpp - mica run -------------------------------------------------===//

#include "tools/mica/Run.h"

#include "backends/runtime/support/CommandLine.h"
#include "tools/mica/CompileModel.h"
#include "tools/mica/ProgramCache.h"
#include "tools/mica/Pull.h"
#include "tools/support/Support.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace llvm;

namespace mica::tool {

/// Everything that determines the program except files.
static std::string optionsText(const ModelArguments &arguments,
                               const cpu::CompileOptions &options) {
  std::string text;
  raw_string_ostream(text) << MICA_VERSION << "|" << arguments.weights << "|" << arguments.kv << "|"
                           << arguments.rows << "|" << arguments.maxSeq << "|" << arguments.mtp
                           << "|" << options.target.cpu << "|" << options.target.featureString();
  return text;
}

/// The first part of the program's name, shown in process lists; the key follows.
static std::string nameOf(StringRef model) {
  SmallString<64> path(model);
  sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  StringRef file = sys::path::filename(path);
  if (!file.consume_back(".gguf"))
    file.consume_back(".mlir");
  std::string name;
  for (char c : file)
    name += isAlnum(c) || c == '-' || c == '_' ? c : '_';
  return name.empty() ? "model" : name.substr(0, 64);
}

/// The program of the model at `path`, which is the one named by `given.model`.
static Expected<std::string> findProgram(const ModelArguments &given, const std::string &path,
                                         const char *argv0) {
  ModelArguments arguments = given;
  arguments.model = path;
  Expected<cpu::CompileOptions> options = programOptions(arguments, argv0);
  if (!options)
    return options.takeError();
  options->outputHint = "set XDG_CACHE_HOME to a folder with free space";
  Expected<std::string> key =
      cacheKey(path, optionsText(arguments, *options), {toolPath(argv0), options->launcher});
  if (!key)
    return key.takeError();
  Expected<ProgramCache> cache = ProgramCache::open();
  if (!cache)
    return cache.takeError();
  auto make = [&](StringRef output) {
    return compileModel(arguments, *options, output, Messages::Default).takeError();
  };
  return cache->get(nameOf(given.model) + "-" + *key, isWholeProgram, make);
}

int runRun(const RunArguments &arguments, const char *argv0) {
  Expected<std::string> path = modelPath(arguments.model.model);
  if (!path)
    return report(arguments.model.model, path.takeError());
  Expected<std::string> program = findProgram(arguments.model, *path, argv0);
  if (!program)
    return report(arguments.model.model, program.takeError());
  // Errors and --help of the program show the name typed by the user, not a file of the cache.
  std::string name = arguments.model.model;
  ::setenv(rt::commandVariable, ("mica run " + name).c_str(), /*overwrite=*/1);
  std::vector<char *> words = {name.data()};
  for (const std::string &argument : arguments.programArguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program->c_str(), words.data());
  return report(createStringError(*program + ": cannot be started (" + std::strerror(errno) +
                                  "); remove it and run again"));
}

} // namespace mica::tool
