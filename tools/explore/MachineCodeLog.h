//===- MachineCodeLog.h - changes made by LLVM's code generator -*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_MACHINECODELOG_H
#define MICA_TOOLS_EXPLORE_MACHINECODELOG_H

#include "tools/explore/Record.h"

#include "llvm/IR/LLVMContext.h"

#include <memory>

namespace mica::explore {

/// Records the runs of LLVM's code generator on code of a context, as long as it exists. The
/// generator has no callbacks around its passes, but it writes remarks on what they did.
class MachineCodeLog {
public:
  explicit MachineCodeLog(llvm::LLVMContext &context);
  ~MachineCodeLog();
  MachineCodeLog(const MachineCodeLog &) = delete;
  MachineCodeLog &operator=(const MachineCodeLog &) = delete;

  /// The passes that changed the number of instructions of a function, in the order in which they
  /// run, as passes that produce stage `to`.
  std::vector<PassRecord> takePasses(int to);
  std::vector<MachineCodeRecord> takeFunctions();

private:
  struct State;
  class RemarkHandler;
  llvm::LLVMContext &context;
  std::unique_ptr<llvm::DiagnosticHandler> previous;
  std::shared_ptr<State> state;
};

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_MACHINECODELOG_H
