//===- Arguments.h - the arguments of all commands --------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_ARGUMENTS_H
#define MICA_TOOLS_MICA_ARGUMENTS_H

#include "tools/mica/ModelArguments.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::tool {

struct CompileArguments {
  ModelArguments model;
  std::string output, emit = "exe", dumpFolder;
  std::string calibrate, imatrix; ///< files, or empty
  int64_t ranks = 1;              ///< N of --shard tensor=N
  bool json = false, verbose = false;
};

struct RunArguments {
  ModelArguments model;
  std::vector<std::string> programArguments; ///< passed on to the program
};

struct InspectArguments {
  ModelArguments model; ///< or a program, in `model.model`
  bool json = false;
};

struct ExploreArguments {
  ModelArguments model;
  std::string output, profile; ///< files, or empty
  bool open = false;
};

struct DiffArguments {
  ModelArguments a, b;             ///< or programs
  std::string text;                ///< a file, or empty
  std::vector<std::string> stages; ///< stages whose lines are compared
  bool bench = false, json = false;
};

struct EvalArguments {
  std::string program, text, tokensFile, reference;
  int64_t context = 0, windows = 0; ///< 0: not given
  int64_t prefillChunk = 0, threads = 0;
  bool asDecode = false, json = false;
};

struct VerifyArguments {
  ModelArguments model;
  std::string text, against;
  int64_t positions = 0, threads = 0; ///< 0: not given
  bool json = false;
};

struct PullArguments {
  std::string model; ///< OWNER/NAME[:SELECTION]
};

struct ListArguments {
  bool json = false;
};

struct RemoveArguments {
  std::vector<std::string> names; ///< models on the hub and compiled programs
  bool programs = false;          ///< all compiled programs
};

struct ReferenceArguments {
  std::string folder;   ///< if not empty, write pages and completions there
  bool formats = false; ///< print the types of GGUF files; otherwise the option reference
};

/// The arguments of all commands.
struct ToolArguments {
  CompileArguments compile;
  RunArguments run;
  InspectArguments inspect;
  ExploreArguments explore;
  DiffArguments diff;
  EvalArguments eval;
  VerifyArguments verify;
  PullArguments pull;
  ListArguments list;
  RemoveArguments remove;
  std::string completionShell;
  ReferenceArguments reference;
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_ARGUMENTS_H
