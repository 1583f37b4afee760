//===- Graph.cpp - a model as a picture: what is drawn --------------------===//

#include "tools/mica/Graph.h"

#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace mica::tool {

int FunctionGraph::add(GraphNode node) {
  nodes.push_back(std::move(node));
  return static_cast<int>(nodes.size()) - 1;
}

void FunctionGraph::connect(int from, int to) {
  if (from != to && !llvm::is_contained(edges, std::pair(from, to)))
    edges.emplace_back(from, to);
}

namespace {

/// "T x 64": rows are T.
std::string shapeOf(Type type) {
  std::string text;
  if (auto state = dyn_cast<SequenceState>(type)) {
    llvm::raw_string_ostream stream(text);
    stream << state.getLayers();
    for (int64_t extent : state.getRowShape())
      stream << " x " << extent;
    stream << " " << state.getElementType();
    if (state.getWindow() > 0)
      stream << ", window " << state.getWindow();
    return text;
  }
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      shaped.getShape(), stream,
      [&](int64_t extent) { ShapedType::isDynamic(extent) ? stream << "T" : stream << extent; },
      " x ");
  return text;
}

/// The last word of the module that the op stands for: "q_proj".
std::string moduleOf(Operation *op) {
  std::string name;
  op->getLoc()->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part); named && name.empty())
      name = named.getName().str();
    return WalkResult::advance();
  });
  size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

NodeClass classOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, NodeClass>(op)
      .Case<MoeGateOp, MoeExpertsOp>([](auto) { return NodeClass::Experts; })
      .Case<MultipliesRows, EmbeddingOp>([](auto) { return NodeClass::Product; })
      .Case<RmsNormOp, LayerNormOp>([](auto) { return NodeClass::Norm; })
      .Case<AttentionOp, RopeOp, RepeatKvOp>([](auto) { return NodeClass::Attention; })
      .Case<UpdatesState, ReadsState>([](auto) { return NodeClass::Cache; })
      .Case<func::CallOp>([](auto) { return NodeClass::Call; })
      .Default([](auto) { return NodeClass::Other; });
}

/// Draws one function.
class GraphBuilder {
public:
  explicit GraphBuilder(func::FuncOp function) : function(function) {
    graph.name = function.getName().str();
  }

  FunctionGraph build() {
    addArguments();
    addBlock(function.getBody().front());
    return std::move(graph);
  }

private:
  /// Weights are static tensors; the rows' indices are i32.
  static bool isDrawn(Type type) {
    if (isa<SequenceState>(type))
      return true;
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !tensor.hasStaticShape() && !tensor.getElementType().isInteger();
  }

  void addArguments() {
    for (BlockArgument argument : function.getArguments()) {
      bool tokens = EntrySignature::roleOf(argument) == EntryRole::Tokens;
      if (!tokens && !isDrawn(argument.getType()))
        continue;
      auto state = dyn_cast<SequenceState>(argument.getType());
      StringRef title = tokens                  ? "tokens"
                        : !state                ? "rows"
                        : state.getSlots() == 0 ? "cache"
                                                : "state";
      nodeOf[argument] = graph.add({title.str(), shapeOf(argument.getType()), NodeClass::Value});
    }
  }

  void addBlock(Block &block) {
    for (Operation &op : block) {
      if (isa<GetWeightOp, SelectWeightOp, IndexTableOp>(op) ||
          op.hasTrait<OpTrait::ConstantLike>())
        continue;
      if (op.getNumRegions() > 0) {
        addLoop(op);
        continue;
      }
      if (op.hasTrait<OpTrait::IsTerminator>()) {
        addTerminator(op);
        continue;
      }
      addOp(op);
    }
  }

  /// A loop over layers is drawn as what it repeats.
  void addLoop(Operation &loop) {
    Block &body = loop.getRegion(0).front();
    ValueRange carried =
        body.getArguments().drop_front(body.getNumArguments() - loop.getNumResults());
    for (auto [argument, initial] :
         llvm::zip(carried, loop.getOperands().take_back(carried.size())))
      if (auto found = nodeOf.find(initial); found != nodeOf.end())
        nodeOf[argument] = found->second;
    addBlock(body);
    for (auto [result, yielded] : llvm::zip(loop.getResults(), body.getTerminator()->getOperands()))
      if (auto found = nodeOf.find(yielded); found != nodeOf.end())
        nodeOf[result] = found->second;
  }

  void addTerminator(Operation &op) {
    if (!isa<func::ReturnOp>(op))
      return;
    int node = graph.add({"return", "", NodeClass::Value});
    connectOperands(op, node);
  }

  void addOp(Operation &op) {
    auto call = dyn_cast<func::CallOp>(op);
    if (call && call.getCallee() == lastCallee) {
      // One more layer of the same kind.
      graph.nodes[lastCall].detail = std::to_string(++repeats) + " times";
      mapResults(op, lastCall);
      return;
    }
    std::string detail = moduleOf(&op);
    if (std::string shape = describeShape(op); !shape.empty())
      detail += (detail.empty() ? "" : "  ") + shape;
    std::string title = call ? call.getCallee().str() : op.getName().stripDialect().str();
    int node = graph.add({title, detail, classOf(&op)});
    connectOperands(op, node);
    mapResults(op, node);
    lastCallee = call ? call.getCallee().str() : "";
    lastCall = node;
    repeats = 1;
  }

  /// The matrix of a product, else the shape of the result.
  static std::string describeShape(Operation &op) {
    for (Value operand : op.getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType());
          type && type.hasStaticShape() && type.getRank() >= 2)
        return shapeOf(type);
    return op.getNumResults() > 0 && !isa<func::CallOp>(op) ? shapeOf(op.getResult(0).getType())
                                                            : "";
  }

  void connectOperands(Operation &op, int node) {
    for (Value operand : op.getOperands())
      if (auto found = nodeOf.find(operand); found != nodeOf.end())
        graph.connect(found->second, node);
  }

  void mapResults(Operation &op, int node) {
    for (Value result : op.getResults())
      nodeOf[result] = node;
  }

  func::FuncOp function;
  FunctionGraph graph;
  DenseMap<Value, int> nodeOf;
  std::string lastCallee;
  int lastCall = 0, repeats = 0;
};

} // namespace

std::vector<FunctionGraph> buildGraphs(ModuleOp module) {
  std::vector<FunctionGraph> graphs;
  for (bool entries : {true, false})
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && function.isPublic() == entries)
        graphs.push_back(GraphBuilder(function).build());
  return graphs;
}

} // namespace mica::tool
