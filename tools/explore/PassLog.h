//===- PassLog.h - what passes change and why -------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_PASSLOG_H
#define MICA_TOOLS_EXPLORE_PASSLOG_H

#include "tools/explore/Record.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace mica::explore {

/// Records the passes of a context, which must run without threads, and the patterns that they
/// apply. The context must be used no longer than this object.
class PassLog {
public:
  explicit PassLog(mlir::MLIRContext &context);
  ~PassLog();
  /// Records what `passes` do, which lead to the stage `to`.
  void watch(mlir::PassManager &passes, int to);
  std::vector<PassRecord> take();

private:
  class Instrumentation;
  struct State;
  mlir::MLIRContext &context;
  std::shared_ptr<State> state;
};

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_PASSLOG_H
