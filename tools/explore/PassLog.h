//===- PassLog.h - changes made by passes -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_PASSLOG_H
#define MICA_TOOLS_EXPLORE_PASSLOG_H

#include "tools/explore/Record.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace mica::explore {

/// Records the passes of a context, which must not be multithreaded, and the patterns that they
/// apply. Must outlive the use of the context.
class PassLog {
public:
  explicit PassLog(mlir::MLIRContext &context);
  ~PassLog();
  /// Records the passes in `passes`, which produce stage `to`.
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
