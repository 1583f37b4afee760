//===- GraphText.cpp - a model as a picture: SVG and DOT ------------------===//

#include "tools/mica/Graph.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace mica::tool {

/// Readable with any common kind of color blindness (after Wong, Nature Methods 8, 441, 2011),
/// paler.
static StringRef colorOf(NodeClass kind) {
  switch (kind) {
  case NodeClass::Value:
    return "#eeeeee";
  case NodeClass::Product:
    return "#b3d9f2";
  case NodeClass::Norm:
    return "#fff2b3";
  case NodeClass::Attention:
    return "#f7cfb0";
  case NodeClass::Cache:
    return "#b8e6d3";
  case NodeClass::Experts:
    return "#ebc9de";
  case NodeClass::Call:
    return "#d0d4f0";
  case NodeClass::Other:
    return "#ffffff";
  }
  return "#ffffff";
}

static std::string escaped(StringRef text) {
  std::string out;
  raw_string_ostream stream(out);
  printHTMLEscaped(text, stream);
  return out;
}

static void drawEdge(raw_ostream &out, const FunctionGraph &graph, int from, int to) {
  const GraphNode &a = graph.nodes[from], &b = graph.nodes[to];
  double begin = a.y + (a.isBend ? 0 : kNodeHeight / 2),
         end = b.y - (b.isBend ? 0 : kNodeHeight / 2), middle = (begin + end) / 2;
  out << formatv("<path d=\"M{0:f1} {1:f1} C{0:f1} {2:f1} {3:f1} {2:f1} {3:f1} {4:f1}\"{5}/>\n",
                 a.x, begin, middle, b.x, end, b.isBend ? "" : " marker-end=\"url(#tip)\"");
}

static void drawNode(raw_ostream &out, const GraphNode &node) {
  out << formatv(
      "<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"{2}\" height=\"{3}\" rx=\"5\" fill=\"{4}\"/>\n",
      node.x - kNodeWidth / 2, node.y - kNodeHeight / 2, kNodeWidth, kNodeHeight,
      colorOf(node.kind));
  bool detail = !node.detail.empty();
  out << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" class=\"t\">{2}</text>\n", node.x,
                 node.y + (detail ? -3 : 4), escaped(node.title));
  if (detail)
    out << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" class=\"d\">{2}</text>\n", node.x, node.y + 11,
                   escaped(node.detail));
}

std::string toSvg(const std::vector<FunctionGraph> &graphs, const std::string &title) {
  constexpr double head = 48, gap = 16;
  double width = gap, height = 0;
  for (const FunctionGraph &graph : graphs) {
    width += graph.width + gap;
    height = std::max(height, graph.height);
  }
  std::string text;
  raw_string_ostream out(text);
  out << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:f0}\" height=\"{1:f0}\" "
                 "viewBox=\"0 0 {0:f0} {1:f0}\">\n",
                 width, height + head + gap)
      << "<title>" << escaped(title) << "</title>\n"
      << "<style>text{font-family:sans-serif;text-anchor:middle;fill:#222}.t{font-size:12px;font-"
         "weight:bold}.d{font-size:10px}"
         ".h{font-size:15px;text-anchor:start}rect{stroke:#555}path{fill:none;stroke:#555}</"
         "style>\n"
      << "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
         "markerHeight=\"8\" orient=\"auto\">"
         "<path d=\"M0 0L8 4L0 8z\" style=\"fill:#555;stroke:none\"/></marker></defs>\n"
      << "<rect width=\"100%\" height=\"100%\" style=\"fill:#fff;stroke:none\"/>\n";
  double left = gap;
  for (const FunctionGraph &graph : graphs) {
    out << formatv("<g transform=\"translate({0:f1} {1:f1})\">\n", left, head);
    out << formatv("<text x=\"24\" y=\"0\" class=\"h\">{0}</text>\n", escaped(graph.name));
    for (auto [from, to] : graph.edges)
      drawEdge(out, graph, from, to);
    for (const GraphNode &node : graph.nodes)
      if (!node.isBend)
        drawNode(out, node);
    out << "</g>\n";
    left += graph.width + gap;
  }
  out << "</svg>\n";
  return text;
}

/// A string of DOT.
static std::string quoted(StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string toDot(const std::vector<FunctionGraph> &graphs, const std::string &title) {
  std::string text;
  raw_string_ostream out(text);
  out << "digraph " << quoted(title)
      << " {\n  node [shape=box, style=\"rounded,filled\", fontname=sans]\n";
  for (auto [number, graph] : enumerate(graphs)) {
    out << "  subgraph cluster_" << number << " {\n    label=" << quoted(graph.name) << "\n";
    for (auto [index, node] : enumerate(graph.nodes)) {
      std::string label = quoted(node.title);
      if (!node.detail.empty())
        label.insert(label.size() - 1,
                     "\\n" + StringRef(quoted(node.detail)).drop_front().drop_back().str());
      out << formatv("    n{0}_{1} [label={2}, fillcolor=\"{3}\"]\n", number, index, label,
                     colorOf(node.kind));
    }
    for (auto [from, to] : graph.edges)
      out << formatv("    n{0}_{1} -> n{0}_{2}\n", number, from, to);
    out << "  }\n";
  }
  out << "}\n";
  return text;
}

} // namespace mica::tool
