#include "frontend/text/tokenizer/DecoderReader.h"

#include "frontend/support/InputError.h"

namespace mica {

using namespace rt::tokenizer;

namespace {

/// Reads the steps in order; unsupported steps are rejected with their location.
class DecoderReader {
public:
  DecoderReader(TokenizerTable &table, bool &bytePieces) : table(table), bytePieces(bytePieces) {}

  void read(const JsonNode &node) {
    std::string type = node["type"].string();
    if (type == "Sequence") {
      node.allowKeys({"type", "decoders"});
      JsonNode steps = node["decoders"];
      for (size_t i = 0; i < steps.array().size(); ++i)
        read(steps.at(i));
    } else if (type == "ByteLevel") {
      byteLevel = true;
    } else if (type == "ByteFallback") {
      bytePieces = true;
    } else if (type == "Fuse") {
      fused = true;
    } else if (type == "Replace") {
      readReplace(node);
    } else if (type == "Strip") {
      readStrip(node);
    } else if (type == "Metaspace") {
      readMetaspace(node);
    } else {
      node.refuseType(type, "decoder");
    }
  }

  bool byteLevel = false;

private:
  void readReplace(const JsonNode &node) {
    node.allowKeys({"type", "pattern", "content"});
    if (fused || bytePieces)
      return node.refuseUnsupported("a Replace decoder after ByteFallback or Fuse");
    JsonNode pattern = node["pattern"];
    if (pattern.isObject() && !pattern["Regex"].absent())
      return pattern["Regex"].refuseUnsupported("a Replace decoder with a regular expression");
    std::string from = pattern["String"].string();
    if (from.empty())
      pattern.refuse("an empty pattern");
    table.decoder.replacements.emplace_back(std::move(from), node["content"].string());
  }

  void readStrip(const JsonNode &node) {
    node.allowKeys({"type", "content", "start", "stop"});
    if (!fused)
      return node.refuseUnsupported("a Strip decoder before Fuse");
    if (node["stop"].integer(0, maxSteps) != 0)
      return node["stop"].refuseUnsupported("a Strip decoder that cuts the end");
    start(node, DecoderStart::Stream, node["content"].string());
    table.decoder.count = static_cast<uint32_t>(node["start"].integer(0, maxSteps));
  }

  void readMetaspace(const JsonNode &node) {
    node.allowKeys(
        {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    if (fused || bytePieces)
      return node.refuseUnsupported("a Metaspace decoder after ByteFallback or Fuse");
    std::string space = node["replacement"].string("\u2581");
    std::string scheme =
        node["prepend_scheme"].string(node["add_prefix_space"].boolean(true) ? "always" : "never");
    if (scheme != "never")
      start(node, DecoderStart::FirstToken, space);
    if (space.empty())
      node["replacement"].refuse("an empty replacement");
    table.decoder.replacements.emplace_back(std::move(space), " ");
  }

  void start(const JsonNode &node, DecoderStart rule, std::string stripped) {
    if (table.decoder.start != DecoderStart::Nothing || stripped.empty())
      node.refuseUnsupported("a second or empty rule for the start of the text");
    table.decoder.start = rule;
    table.decoder.stripped = std::move(stripped);
  }

  TokenizerTable &table;
  bool &bytePieces;
  bool fused = false;
};

} // namespace

void readDecoder(const JsonNode &node, TokenizerTable &table, bool &bytePieces) {
  bool wanted = table.flags & ModelFlags::byteLevel;
  if (node.absent())
    return node.refuseUnsupported("a tokenizer without a decoder");
  DecoderReader reader(table, bytePieces);
  reader.read(node);
  if (reader.byteLevel != wanted)
    node.refuse(wanted ? "a ByteLevel pre-tokenizer needs a ByteLevel decoder"
                       : "a ByteLevel decoder needs a ByteLevel pre-tokenizer",
                "add it");
  if (wanted && (bytePieces || !table.decoder.replacements.empty() ||
                 table.decoder.start != DecoderStart::Nothing))
    node.refuseUnsupported("a second decoder in addition to ByteLevel");
}

} // namespace mica
