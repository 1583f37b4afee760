//===- MachineCodeLog.cpp - changes made by LLVM's code generator ---------===//

#include "tools/explore/MachineCodeLog.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/Pass.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace mica::explore {

using Remark = DiagnosticInfoOptimizationBase;

static StringRef valueOf(const Remark &remark, StringRef key) {
  for (const Remark::Argument &argument : remark.getArgs())
    if (argument.Key == key)
      return argument.Val;
  return {};
}

static int64_t numberOf(const Remark &remark, StringRef key) {
  int64_t number = 0;
  return to_integer(valueOf(remark, key), number) ? number : 0;
}

namespace {

/// The names of passes on the command line of LLVM's tools, by the names in their remarks.
class PassArguments final : public PassRegistrationListener {
public:
  PassArguments() { PassRegistry::getPassRegistry()->enumerateWith(this); }
  void passEnumerate(const PassInfo *pass) override {
    arguments.try_emplace(pass->getPassName(), pass->getPassArgument());
  }
  StringMap<StringRef> arguments;
};

} // namespace

struct MachineCodeLog::State {
  std::vector<PassRecord> passes;
  std::vector<MachineCodeRecord> functions;
  StringMap<std::string> last; ///< per function, the last pass that changed it

  /// All passes run on a function before they run on the next one. A pass that did not change the
  /// first functions follows the one that preceded it in this function.
  PassRecord &passNamed(StringRef name, StringRef function) {
    auto find = [&](StringRef pass) {
      return find_if(passes, [&](const PassRecord &each) { return each.name == pass; });
    };
    std::string &before = last[function];
    auto found = find(name);
    if (found == passes.end()) {
      auto previous = find(before);
      found = passes.emplace(previous == passes.end() ? passes.begin() : std::next(previous));
      found->name = name.str();
    }
    before = name.str();
    return *found;
  }

  MachineCodeRecord &functionNamed(StringRef name) {
    auto found =
        find_if(functions, [&](const MachineCodeRecord &each) { return each.function == name; });
    if (found != functions.end())
      return *found;
    functions.push_back({name.str()});
    return functions.back();
  }

  void changeSize(const Remark &remark, bool isMachineCode) {
    StringRef pass = valueOf(remark, "Pass"), function = valueOf(remark, "Function");
    int64_t before = numberOf(remark, isMachineCode ? "MIInstrsBefore" : "IRInstrsBefore");
    int64_t after = numberOf(remark, isMachineCode ? "MIInstrsAfter" : "IRInstrsAfter");
    PassRecord &record = passNamed(pass, function);
    record.summary = ("LLVM's " + pass + ", which changes " +
                      (isMachineCode ? "machine instructions" : "LLVM IR before selection"))
                         .str();
    // A pass may run several times.
    auto counts = record.ops.try_emplace(function.str(), before, before).first;
    counts->second.second += after - before;
    // Instruction selection creates the machine code of a function.
    if (isMachineCode && before == 0)
      functionNamed(function).selected = after;
  }

  void add(const Remark &remark) {
    StringRef pass = remark.getPassName(), name = remark.getRemarkName();
    if (pass == "size-info") {
      if (name == "FunctionMISizeChange" || name == "FunctionIRSizeChange")
        changeSize(remark, name == "FunctionMISizeChange");
      return;
    }
    StringRef function = remark.getFunction().getName();
    if (pass == "asm-printer" && name == "InstructionCount") {
      functionNamed(function).emitted = numberOf(remark, "NumInstructions");
    } else if (pass == "prologepilog" && name == "StackSize") {
      functionNamed(function).stackBytes = numberOf(remark, "NumStackBytes");
    } else if (pass == "regalloc" && name == "SpillReloadCopies") {
      // Folded ones are operands in memory of other instructions.
      MachineCodeRecord &code = functionNamed(function);
      code.spills = numberOf(remark, "NumSpills") + numberOf(remark, "NumFoldedSpills");
      code.reloads = numberOf(remark, "NumReloads") + numberOf(remark, "NumFoldedReloads");
    }
  }
};

class MachineCodeLog::RemarkHandler final : public DiagnosticHandler {
public:
  explicit RemarkHandler(std::shared_ptr<State> state) : state(std::move(state)) {}

  bool isAnalysisRemarkEnabled(StringRef pass) const override {
    return is_contained({"size-info", "asm-printer", "prologepilog"}, pass);
  }
  bool isMissedOptRemarkEnabled(StringRef pass) const override { return pass == "regalloc"; }
  bool isPassedOptRemarkEnabled(StringRef) const override { return false; }
  bool isAnyRemarkEnabled() const override { return true; }
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    const auto *remark = dyn_cast<Remark>(&info);
    if (remark)
      state->add(*remark);
    return remark != nullptr;
  }

private:
  std::shared_ptr<State> state;
};

MachineCodeLog::MachineCodeLog(LLVMContext &context)
    : context(context), previous(context.getDiagnosticHandler()), state(std::make_shared<State>()) {
  context.setDiagnosticHandler(std::make_unique<RemarkHandler>(state), /*RespectFilters=*/true);
}

MachineCodeLog::~MachineCodeLog() {
  context.setDiagnosticHandler(std::move(previous), /*RespectFilters=*/true);
}

std::vector<PassRecord> MachineCodeLog::takePasses(int to) {
  PassArguments known;
  for (PassRecord &pass : state->passes) {
    StringRef argument = known.arguments.lookup(pass.name);
    pass.argument = argument.empty() ? pass.name : argument.str();
    pass.to = to;
    pass.isPerFunction = true;
    for (auto &[function, counts] : pass.ops) {
      pass.before += counts.first;
      pass.after += counts.second;
    }
    std::erase_if(pass.ops,
                  [](const auto &each) { return each.second.first == each.second.second; });
    pass.changed = true;
  }
  return std::move(state->passes);
}

std::vector<MachineCodeRecord> MachineCodeLog::takeFunctions() {
  return std::move(state->functions);
}

} // namespace mica::explore
