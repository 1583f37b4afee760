//===- Eval.h - mica eval ---------------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_EVAL_H
#define MICA_TOOLS_MICA_EVAL_H

#include "tools/mica/Arguments.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runEval(const EvalArguments &arguments);

/// Computes the output of `mica eval --json`.
llvm::Expected<llvm::json::Object> evaluate(const EvalArguments &arguments);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_EVAL_H
