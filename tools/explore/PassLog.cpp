//===- PassLog.cpp - changes made by passes -------------------------------===//

#include "tools/explore/PassLog.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Unit.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;

namespace mica::explore {

/// Numbers of ops by name.
using Counts = std::map<std::string, int64_t>;

static Counts countOps(Operation *root) {
  llvm::DenseMap<OperationName, int64_t> counts;
  root->walk([&](Operation *op) { ++counts[op->getName()]; });
  Counts named;
  for (auto [name, count] : counts)
    named[name.getStringRef().str()] = count;
  return named;
}

/// A hash of all ops with operands and attributes, which changes if anything changes.
static size_t fingerprint(Operation *root) {
  llvm::hash_code hash = 0;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, op, op->getName().getAsOpaquePointer(),
                           op->getRawDictionaryAttrs().getAsOpaquePointer(), op->hashProperties());
    for (Value operand : op->getOperands())
      hash = llvm::hash_combine(hash, operand.getAsOpaquePointer());
    for (Type type : op->getResultTypes())
      hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
  });
  return hash;
}

/// "(anonymous namespace)::LowerProduct<mica::LinearOp>" => "LowerProduct<LinearOp>".
static std::string shortName(StringRef type) {
  std::string name;
  while (!type.empty()) {
    size_t end = type.find_first_of("<>, ");
    StringRef word = type.substr(0, end);
    // The space of "(anonymous namespace)" is part of a namespace.
    if (size_t colon = word.rfind("::"); colon != StringRef::npos)
      word = word.drop_front(colon + 2);
    if (word != "(anonymous")
      name += word;
    if (end == StringRef::npos)
      break;
    if (type[end] != ' ')
      name += type[end];
    type = type.drop_front(end + 1);
  }
  return name;
}

static bool isOwnPass(StringRef argument) {
  return argument.starts_with("mica-") || argument.starts_with("cpu-");
}

struct PassLog::State {
  struct Running {
    size_t record;
    Counts before;
    size_t print;
    std::chrono::steady_clock::time_point start;
  };
  std::vector<PassRecord> records;
  llvm::DenseMap<Pass *, size_t> known;
  std::vector<Running> running;

  /// Counts the pattern if it changes its function. Only patterns of Mica's passes: MLIR's apply
  /// many that convert one op to another dialect.
  void apply(llvm::function_ref<void()> run, const ApplyPatternAction &action) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    action.print(stream);
    std::string name = shortName(StringRef(text).split("pattern: ").second);
    bool isOwn = !running.empty() && isOwnPass(records[running.back().record].argument);
    auto *op = action.getContextIRUnits().empty()
                   ? nullptr
                   : dyn_cast_if_present<Operation *>(action.getContextIRUnits().front());
    if (!isOwn || !op)
      return run();
    Operation *root = op;
    while (root->getParentOp() && !root->hasTrait<OpTrait::IsIsolatedFromAbove>())
      root = root->getParentOp();
    if (root == op || root->getParentOp() == nullptr)
      root = op->getParentOp() ? op->getParentOp() : op;
    size_t before = fingerprint(root);
    run();
    if (fingerprint(root) == before)
      return;
    std::vector<PatternRecord> &patterns = records[running.back().record].patterns;
    auto found = llvm::find_if(patterns, [&](const auto &each) { return each.name == name; });
    if (found == patterns.end())
      patterns.push_back({std::move(name), 1});
    else
      ++found->count;
  }
};

class PassLog::Instrumentation final : public PassInstrumentation {
public:
  Instrumentation(std::shared_ptr<State> state, int to) : state(std::move(state)), to(to) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty())
      return;
    auto [known, isNew] = state->known.try_emplace(pass, state->records.size());
    if (isNew) {
      PassRecord &record = state->records.emplace_back();
      record.name = pass->getName().str();
      record.argument = pass->getArgument().str();
      record.summary = pass->getDescription().str();
      record.to = to;
    }
    state->running.push_back(
        {known->second, countOps(op), fingerprint(op), std::chrono::steady_clock::now()});
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty())
      return;
    State::Running &run = state->running.back();
    PassRecord &record = state->records[run.record];
    record.isOnFunctions = op->getParentOp() != nullptr;
    record.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - run.start).count();
    record.changed |= fingerprint(op) != run.print;
    Counts after = countOps(op);
    for (const auto &[name, count] : run.before)
      record.before += count, record.ops[name].first += count;
    for (const auto &[name, count] : after)
      record.after += count, record.ops[name].second += count;
    state->running.pop_back();
  }

private:
  std::shared_ptr<State> state;
  int to;
};

PassLog::PassLog(MLIRContext &context) : context(context), state(std::make_shared<State>()) {
  context.disableMultithreading();
  context.registerActionHandler(
      [state = state](llvm::function_ref<void()> run, const tracing::Action &action) {
        if (const auto *pattern = dyn_cast<ApplyPatternAction>(&action))
          return state->apply(run, *pattern);
        run();
      });
}

PassLog::~PassLog() { context.registerActionHandler(nullptr); }

void PassLog::watch(PassManager &passes, int to) {
  // Passes of another pipeline may have the addresses of earlier ones.
  state->known.clear();
  passes.addInstrumentation(std::make_unique<Instrumentation>(state, to));
}

std::vector<PassRecord> PassLog::take() {
  for (PassRecord &record : state->records)
    std::erase_if(record.ops,
                  [](const auto &entry) { return entry.second.first == entry.second.second; });
  return std::move(state->records);
}

} // namespace mica::explore
