//===- CodePassLog.cpp - changes made by LLVM's passes --------------------===//

#include "tools/explore/CodePassLog.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Analysis.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Instructions.h"

#include <array>
#include <chrono>

using namespace llvm;

namespace mica::explore {

/// Numbers of instructions by opcode.
using OpcodeCounts = std::array<int64_t, Instruction::OtherOpsEnd>;

static void countInstructions(const Function &function, OpcodeCounts &counts) {
  for (const BasicBlock &block : function)
    for (const Instruction &instruction : block)
      ++counts[instruction.getOpcode()];
}

/// The inliner empties functions that are no longer called; its pass manager erases them later.
static bool isErased(const Function &function) {
  return !function.isDeclaration() && function.use_empty() && function.hasLocalLinkage() &&
         isa<UnreachableInst>(function.front().front());
}

/// Runs other passes.
static bool isManager(StringRef pass) {
  return isSpecialPass(pass, {"PassManager", "PassAdaptor", "AnalysisManagerProxy",
                              "DevirtSCCRepeatedPass", "ModuleInlinerWrapperPass",
                              "RequireAnalysisPass", "InvalidateAnalysisPass"});
}

namespace {
struct Purpose {
  StringLiteral pass, text;
};
} // namespace

/// What LLVM's passes do, by their names in pipelines: LLVM has no descriptions of them.
static constexpr Purpose kPurposes[] = {
    {"adce", "remove instructions whose results are not needed, assuming that all are dead"},
    {"argpromotion", "pass arguments by value instead of by reference"},
    {"bdce", "remove computations of bits that are not needed"},
    {"constmerge", "merge equal constants"},
    {"correlated-propagation", "simplify instructions by the ranges of their operands"},
    {"deadargelim", "remove arguments and results that are not used"},
    {"div-rem-pairs", "compute a remainder from the quotient of the same operands"},
    {"dse", "remove stores to memory that is overwritten before it is read"},
    {"early-cse", "remove trivially redundant instructions"},
    {"function-attrs", "infer attributes of functions, such as that they do not write memory"},
    {"globaldce", "remove functions and variables that are not used"},
    {"globalopt", "simplify global variables whose uses are all known"},
    {"gvn", "remove redundant computations and loads by global value numbering"},
    {"indvars", "simplify the induction variables of loops"},
    {"infer-alignment", "increase the alignment of loads and stores as far as it is known"},
    {"inferattrs", "infer attributes of known library functions"},
    {"inline", "replace calls with the bodies of the functions"},
    {"instcombine", "combine instructions into fewer or simpler ones"},
    {"instsimplify", "replace instructions whose results are already available"},
    {"ipsccp", "propagate constants between functions, and remove branches not taken"},
    {"jump-threading", "skip branches whose conditions are known on the path to them"},
    {"lcssa", "add phi nodes for values of a loop that are used after it"},
    {"licm", "move computations whose operands do not change out of loops"},
    {"loop-deletion", "remove loops without effects"},
    {"loop-idiom", "replace loops with calls, such as of memcpy"},
    {"loop-instsimplify", "simplify the instructions of loops"},
    {"loop-load-elim", "forward stores to loads of the next iteration"},
    {"loop-rotate", "move the condition of a loop to its end"},
    {"loop-simplify", "add preheaders and single back edges to loops"},
    {"loop-simplifycfg", "merge the blocks of loops"},
    {"loop-unroll", "repeat the bodies of loops to reduce the number of iterations"},
    {"loop-unroll-full", "replace loops of few iterations with copies of their bodies"},
    {"loop-vectorize", "execute several iterations of a loop with vectors"},
    {"memcpyopt", "remove and shorten copies of memory"},
    {"reassociate", "reorder sums and products so that constants and common terms meet"},
    {"sccp", "propagate constants, and remove branches not taken"},
    {"simple-loop-unswitch", "move conditions that do not change out of loops"},
    {"simplifycfg", "merge blocks, and replace branches with selects"},
    {"slp-vectorizer", "combine scalar operations of straight-line code into vectors"},
    {"sroa", "split stack variables into registers"},
    {"tailcallelim", "replace recursion at the end of a function with a loop"},
    {"vector-combine", "combine vector instructions by their cost"},
};

static std::string summaryOf(StringRef pass, StringRef argument) {
  const auto *purpose =
      find_if(kPurposes, [&](const Purpose &each) { return each.pass == argument; });
  return purpose == std::end(kPurposes) ? ("LLVM's " + pass).str() : purpose->text.str();
}

/// The function that a pass runs on; null: it may change several.
static const Function *functionOf(const Any &unit) {
  if (const auto *function = any_cast<const Function *>(&unit))
    return *function;
  if (const auto *loop = any_cast<const Loop *>(&unit))
    return (*loop)->getHeader()->getParent();
  return nullptr;
}

struct CodePassLog::State {
  struct Running {
    size_t record;
    const Function *function;
    OpcodeCounts before;
    std::chrono::steady_clock::time_point start;
  };
  struct Counted {
    OpcodeCounts first, change{};
  };

  const Module *code = nullptr;
  std::vector<PassRecord> records;
  std::vector<Counted> counted; ///< per record
  StringMap<size_t> known;
  std::vector<Running> running;

  OpcodeCounts count(const Function *function) const {
    OpcodeCounts counts{};
    if (function)
      countInstructions(*function, counts);
    else
      for (const Function &each : *code)
        if (!isErased(each))
          countInstructions(each, counts);
    return counts;
  }

  void begin(StringRef pass, StringRef name, const Function *function, int to) {
    auto [entry, isNew] = known.try_emplace(pass, records.size());
    if (isNew) {
      PassRecord &record = records.emplace_back();
      record.name = pass.str();
      record.argument = name.empty() ? pass.str() : name.str();
      record.summary = summaryOf(pass, record.argument);
      record.to = to;
      counted.push_back({count(nullptr)});
    }
    running.push_back({entry->second, function, count(function), std::chrono::steady_clock::now()});
  }

  void end(bool changed) {
    Running run = running.back();
    running.pop_back();
    PassRecord &record = records[run.record];
    record.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - run.start).count();
    if (!changed)
      return;
    record.changed = true;
    OpcodeCounts after = count(run.function), &change = counted[run.record].change;
    for (size_t opcode = 0; opcode < after.size(); ++opcode)
      change[opcode] += after[opcode] - run.before[opcode];
  }

  /// The remark of a transformation is the reason of the change; the first one is an example of
  /// those with the same name.
  void remark(StringRef name, const std::string &text) {
    if (running.empty())
      return;
    std::vector<PatternRecord> &patterns = records[running.back().record].patterns;
    auto found = find_if(patterns, [&](const PatternRecord &each) { return each.name == name; });
    if (found == patterns.end())
      patterns.push_back({name.str(), 1, text});
    else
      ++found->count;
  }
};

class CodePassLog::RemarkHandler final : public DiagnosticHandler {
public:
  explicit RemarkHandler(std::shared_ptr<State> state) : state(std::move(state)) {}

  bool isPassedOptRemarkEnabled(StringRef) const override { return true; }
  bool isAnyRemarkEnabled() const override { return true; }
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    const auto *remark = dyn_cast<DiagnosticInfoOptimizationBase>(&info);
    if (!remark)
      return false;
    if (remark->isPassed())
      state->remark(remark->getRemarkName(), remark->getMsg());
    return true;
  }

private:
  std::shared_ptr<State> state;
};

CodePassLog::CodePassLog() : state(std::make_shared<State>()) {}

void CodePassLog::watch(Module &code, PassInstrumentationCallbacks &callbacks, int to) {
  state->code = &code;
  code.getContext().setDiagnosticHandler(std::make_unique<RemarkHandler>(state),
                                         /*RespectFilters=*/true);
  callbacks.registerBeforeNonSkippedPassCallback(
      [state = state, &callbacks, to](StringRef pass, const Any &unit) {
        if (!isManager(pass))
          state->begin(pass, callbacks.getPassNameForClassName(pass), functionOf(unit), to);
      });
  callbacks.registerAfterPassCallback(
      [state = state](StringRef pass, const Any &, const PreservedAnalyses &preserved) {
        if (!isManager(pass))
          state->end(!preserved.areAllPreserved());
      });
  // The function still exists: only its loop or the node of the call graph is invalid.
  callbacks.registerAfterPassInvalidatedCallback(
      [state = state](StringRef pass, const PreservedAnalyses &) {
        if (!isManager(pass))
          state->end(/*changed=*/true);
      });
}

std::vector<PassRecord> CodePassLog::take() {
  for (auto [record, counts] : zip(state->records, state->counted)) {
    for (unsigned opcode = 0; opcode < counts.first.size(); ++opcode) {
      int64_t before = counts.first[opcode], after = before + counts.change[opcode];
      record.before += before;
      record.after += after;
      if (before != after)
        record.ops[Instruction::getOpcodeName(opcode)] = {before, after};
    }
  }
  return std::move(state->records);
}

} // namespace mica::explore
