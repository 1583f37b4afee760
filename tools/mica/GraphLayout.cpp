//===- GraphLayout.cpp - a model as a picture: where everything is placed -===//

#include "tools/mica/Graph.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

namespace mica::tool {

namespace {

constexpr double kColumnGap = 24, kRankHeight = 72, kBendWidth = 16, kMargin = 24;

class Layout {
public:
  explicit Layout(FunctionGraph &graph) : graph(graph) {}

  void run() {
    setRanks();
    cutLongEdges();
    orderRanks();
    setCoordinates();
  }

private:
  /// Edges go from earlier to later nodes, as values do.
  void setRanks() {
    std::sort(graph.edges.begin(), graph.edges.end());
    for (auto [from, to] : graph.edges)
      graph.nodes[to].rank = std::max(graph.nodes[to].rank, graph.nodes[from].rank + 1);
    // An input is just above its first use.
    std::vector<int> first(graph.nodes.size(), INT_MAX);
    std::vector<bool> hasInput(graph.nodes.size());
    for (auto [from, to] : graph.edges) {
      first[from] = std::min(first[from], graph.nodes[to].rank);
      hasInput[to] = true;
    }
    for (size_t i = 0; i < first.size(); ++i)
      if (!hasInput[i] && first[i] != INT_MAX)
        graph.nodes[i].rank = first[i] - 1;
  }

  void cutLongEdges() {
    std::vector<std::pair<int, int>> pieces;
    for (auto [from, to] : graph.edges) {
      int last = from;
      for (int rank = graph.nodes[from].rank + 1; rank < graph.nodes[to].rank; ++rank) {
        GraphNode bend;
        bend.isBend = true;
        bend.rank = rank;
        int node = graph.add(bend);
        pieces.emplace_back(last, node);
        last = node;
      }
      pieces.emplace_back(last, to);
    }
    graph.edges = std::move(pieces);
  }

  void orderRanks() {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      size_t rank = graph.nodes[i].rank;
      ranks.resize(std::max(ranks.size(), rank + 1));
      ranks[rank].push_back(static_cast<int>(i));
    }
    above.resize(graph.nodes.size());
    below.resize(graph.nodes.size());
    for (auto [from, to] : graph.edges) {
      above[to].push_back(from);
      below[from].push_back(to);
    }
    place.resize(graph.nodes.size());
    for (const std::vector<int> &rank : ranks)
      notePlaces(rank);
    for (int sweep = 0; sweep < 6; ++sweep) {
      for (std::vector<int> &rank : ranks)
        orderBy(rank, above);
      for (std::vector<int> &rank : llvm::reverse(ranks))
        orderBy(rank, below);
    }
  }

  void notePlaces(const std::vector<int> &rank) {
    for (size_t i = 0; i < rank.size(); ++i)
      place[rank[i]] = static_cast<double>(i) - static_cast<double>(rank.size()) / 2;
  }

  /// Nodes are where their neighbors are in the mean.
  void orderBy(std::vector<int> &rank, const std::vector<std::vector<int>> &neighbors) {
    std::vector<std::pair<double, int>> keys;
    keys.reserve(rank.size());
    for (int node : rank)
      keys.emplace_back(mean(neighbors[node], place, place[node]), node);
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < rank.size(); ++i)
      rank[i] = keys[i].second;
    notePlaces(rank);
  }

  static double mean(const std::vector<int> &nodes, const std::vector<double> &values,
                     double otherwise) {
    double sum = 0;
    for (int node : nodes)
      sum += values[node];
    return nodes.empty() ? otherwise : sum / static_cast<double>(nodes.size());
  }

  double widthOf(int node) const { return graph.nodes[node].isBend ? kBendWidth : kNodeWidth; }

  void setCoordinates() {
    std::vector<double> x(graph.nodes.size());
    for (const std::vector<int> &rank : ranks)
      spread(rank, x, place);
    for (int sweep = 0; sweep < 8; ++sweep) {
      for (const std::vector<int> &rank : ranks)
        pull(rank, above, x);
      for (const std::vector<int> &rank : llvm::reverse(ranks))
        pull(rank, below, x);
    }
    double left = std::numeric_limits<double>::max(), right = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      left = std::min(left, x[i] - widthOf(static_cast<int>(i)) / 2);
      right = std::max(right, x[i] + widthOf(static_cast<int>(i)) / 2);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      graph.nodes[i].x = x[i] - left + kMargin;
      graph.nodes[i].y = kMargin + kNodeHeight / 2 + graph.nodes[i].rank * kRankHeight;
    }
    graph.width = right - left + 2 * kMargin;
    graph.height = 2 * kMargin + kNodeHeight +
                   static_cast<double>(ranks.empty() ? 0 : ranks.size() - 1) * kRankHeight;
  }

  /// Wishes where the neighbors are, then keeps distances.
  void pull(const std::vector<int> &rank, const std::vector<std::vector<int>> &neighbors,
            std::vector<double> &x) {
    std::vector<double> wishes = x;
    for (int node : rank)
      wishes[node] = mean(neighbors[node], x, x[node]);
    spread(rank, x, wishes);
  }

  /// The places nearest to the wishes, in order and without overlap: groups that touch move
  /// together to the mean of their wishes.
  void spread(const std::vector<int> &rank, std::vector<double> &x,
              const std::vector<double> &wishes) {
    struct Group {
      size_t first, count;
      double sum; ///< of wishes for the group's beginning
      double begin() const { return sum / static_cast<double>(count); }
    };
    std::vector<double> offset(rank.size());
    for (size_t i = 1; i < rank.size(); ++i)
      offset[i] = offset[i - 1] + (widthOf(rank[i - 1]) + widthOf(rank[i])) / 2 + kColumnGap;
    std::vector<Group> groups;
    for (size_t i = 0; i < rank.size(); ++i) {
      groups.push_back({i, 1, wishes[rank[i]] - offset[i]});
      while (groups.size() > 1 && groups[groups.size() - 2].begin() > groups.back().begin()) {
        Group last = groups.back();
        groups.pop_back();
        groups.back().count += last.count;
        groups.back().sum += last.sum;
      }
    }
    for (const Group &group : groups)
      for (size_t i = group.first; i < group.first + group.count; ++i)
        x[rank[i]] = group.begin() + offset[i];
  }

  FunctionGraph &graph;
  std::vector<std::vector<int>> ranks, above, below;
  std::vector<double> place;
};

} // namespace

void layOut(FunctionGraph &graph) { Layout(graph).run(); }

} // namespace mica::tool
