//===- Graph.h - a model as a picture ---------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_GRAPH_H
#define MICA_TOOLS_MICA_GRAPH_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <utility>
#include <vector>

namespace mica::tool {

/// What a node is, for its color.
enum class NodeClass { Value, Product, Norm, Attention, Cache, Experts, Call, Other };

struct GraphNode {
  std::string title, detail; ///< "linear", "q_proj 64 x 64"
  NodeClass kind = NodeClass::Other;
  bool isBend = false; ///< no node, but a point that an edge over several ranks goes through
  int rank = 0;
  double x = 0, y = 0; ///< of the center, in pixels
};

/// One function.
struct FunctionGraph {
  std::string name;
  std::vector<GraphNode> nodes;
  std::vector<std::pair<int, int>> edges; ///< from, to
  double width = 0, height = 0;

  int add(GraphNode node);
  /// Adds the edge if it is not there and does not lead to itself.
  void connect(int from, int to);
};

inline constexpr double kNodeWidth = 150, kNodeHeight = 36;

/// A graph per function of a module of mica ops, the entry functions first. Weights are in the
/// nodes that use them; rows' indices are left out.
std::vector<FunctionGraph> buildGraphs(mlir::ModuleOp module);

/// Gives every node a rank (the longest way from an input), cuts edges over several ranks by bends,
/// orders the ranks so that few edges cross, and sets coordinates: Sugiyama, Tagawa, Toda, "Methods
/// for Visual Understanding of Hierarchical System Structures" (1981).
void layOut(FunctionGraph &graph);

/// The functions beside each other. The graphs must be laid out.
std::string toSvg(const std::vector<FunctionGraph> &graphs, const std::string &title);

/// For Graphviz. The graphs must not be laid out: it lays out itself.
std::string toDot(const std::vector<FunctionGraph> &graphs, const std::string &title);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_GRAPH_H
