//===- GraphTest.cpp - what is drawn, where, and how it is written --------===//

#include "tools/mica/Graph.h"

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mica::tool;
using testing::HasSubstr;

namespace {

GraphNode node(const std::string &title) {
  GraphNode made;
  made.title = title;
  return made;
}

/// a feeds b and c, both feed d, and a feeds d over two ranks as well.
FunctionGraph diamond() {
  FunctionGraph graph;
  graph.name = "diamond";
  for (const char *name : {"a", "b", "c", "d", "e"})
    graph.add(node(name));
  for (auto [from, to] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 4}, {3, 4}})
    graph.connect(from, to);
  return graph;
}

TEST(Graph, AnEdgeIsDrawnOnceAndNeverLoops) {
  FunctionGraph graph = diamond();
  graph.connect(0, 1);
  graph.connect(1, 1);
  EXPECT_EQ(graph.edges.size(), 6u);
}

TEST(GraphLayout, EdgesLeadOneRankDown) {
  FunctionGraph graph = diamond();
  layOut(graph);
  for (auto [from, to] : graph.edges)
    EXPECT_EQ(graph.nodes[from].rank + 1, graph.nodes[to].rank);
  EXPECT_EQ(graph.nodes[4].rank, 3);
  // The edge from a to e goes through two bends.
  EXPECT_EQ(graph.nodes.size(), 7u);
  EXPECT_TRUE(graph.nodes[5].isBend && graph.nodes[6].isBend);
}

TEST(GraphLayout, NothingOverlapsOrLeavesThePicture) {
  FunctionGraph graph = diamond();
  for (int i = 0; i < 5; ++i)
    graph.connect(0, graph.add(node("leaf")));
  layOut(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode &a = graph.nodes[i];
    EXPECT_GE(a.x, 0);
    EXPECT_LE(a.x, graph.width);
    EXPECT_LE(a.y + kNodeHeight / 2, graph.height);
    for (size_t j = 0; j < i; ++j) {
      const GraphNode &b = graph.nodes[j];
      if (!a.isBend && !b.isBend && a.rank == b.rank)
        EXPECT_GE(std::abs(a.x - b.x), kNodeWidth) << i << " and " << j;
    }
  }
}

TEST(GraphLayout, AnEmptyFunctionHasASize) {
  FunctionGraph graph;
  layOut(graph);
  EXPECT_GT(graph.height, 0);
}

TEST(GraphText, NamesAreEscaped) {
  FunctionGraph graph;
  graph.name = "f<\"&\">";
  graph.add(node("a<b&\"c\\"));
  EXPECT_THAT(toDot({graph}, "t\"t"), testing::AllOf(HasSubstr("digraph \"t\\\"t\""),
                                                     HasSubstr("[label=\"a<b&\\\"c\\\\\"")));
  layOut(graph);
  std::string svg = toSvg({graph}, "t<t");
  EXPECT_THAT(svg, testing::AllOf(HasSubstr("<title>t&lt;t</title>"), HasSubstr("a&lt;b&amp;")));
  EXPECT_THAT(svg, testing::Not(HasSubstr("a<b")));
}

TEST(Graph, ShowsWhatComputesAndWithWhichMatrix) {
  mlir::MLIRContext context;
  context.loadDialect<mica::MicaDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    mica.weight @w : tensor<16x8xf32>
    func.func private @layer(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %positions: tensor<?xi32>) -> tensor<?x8xf32> {
      %y = mica.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32> loc("model.layers.*.q_proj")
      %z = mica.add %x, %y : tensor<?x8xf32>
      return %z : tensor<?x8xf32>
    })",
                                                        &context);
  ASSERT_TRUE(module);
  std::vector<FunctionGraph> graphs = buildGraphs(*module);
  ASSERT_EQ(graphs.size(), 1u);
  const FunctionGraph &graph = graphs.front();
  std::vector<std::string> nodes;
  for (const GraphNode &drawn : graph.nodes)
    nodes.push_back(drawn.title + "|" + drawn.detail);
  EXPECT_THAT(nodes,
              testing::ElementsAre("rows|T x 8", "linear|q_proj  8 x 8", "add|T x 8", "return|"));
  EXPECT_THAT(graph.edges, testing::UnorderedElementsAre(std::pair(0, 1), std::pair(0, 2),
                                                         std::pair(1, 2), std::pair(2, 3)));
}

} // namespace
