//===- CodePassLog.h - changes made by LLVM's passes ------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_CODEPASSLOG_H
#define MICA_TOOLS_EXPLORE_CODEPASSLOG_H

#include "tools/explore/Record.h"

#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"

#include <memory>

namespace mica::explore {

/// Records the passes over LLVM IR, and their optimization remarks. A pass that runs several times
/// is one record: the number of instructions when it first runs, and that number with all
/// instructions that its runs added or removed.
class CodePassLog {
public:
  CodePassLog();
  /// Records the passes that run on `code` with `callbacks`, which produce stage `to`.
  void watch(llvm::Module &code, llvm::PassInstrumentationCallbacks &callbacks, int to);
  std::vector<PassRecord> take();

private:
  struct State;
  class RemarkHandler;
  std::shared_ptr<State> state;
};

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_CODEPASSLOG_H
