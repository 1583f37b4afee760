//===- InterpretOptions.h - the options of mica-interpret -------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_INTERPRET_INTERPRETOPTIONS_H
#define MICA_TOOLS_MICA_INTERPRET_INTERPRETOPTIONS_H

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mica::tool {

struct InterpretOptions {
  std::string file, function, weights, outputPrefix, cache = "1x16";
  std::vector<std::string> inputs, expected;
  double tolerance = 1e-6;
  bool print = false, trace = false;
};

/// Adds all options to `app`; parsing stores them.
void addOptions(CLI::App &app, InterpretOptions &options);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_INTERPRET_INTERPRETOPTIONS_H
