//===- Page.cpp - a compilation as a web page -----------------------------===//

#include "tools/explore/Page.h"

#include "backends/runtime/profile/ProfileReport.h"
#include "tools/explore/Reasons.h"
#include "tools/explore/Texts.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace llvm;

namespace mica::explore {

/// The version of the data, checked by page/data.js.
static constexpr int64_t kDataVersion = 1;

template <typename Range, typename Get>
static void writeNumbers(json::OStream &out, StringRef key, const Range &range, Get get) {
  out.attributeArray(key, [&] {
    for (const auto &each : range)
      out.value(static_cast<int64_t>(get(each)));
  });
}

static void writeWords(json::OStream &out, StringRef key, ArrayRef<std::string> words) {
  out.attributeArray(key, [&] {
    for (const std::string &word : words)
      out.value(json::fixUTF8(word));
  });
}

static void writeStage(json::OStream &out, const StageRecord &stage) {
  out.object([&] {
    out.attribute("name", stage.name);
    out.attribute("help", stage.help);
    out.attribute("text", json::fixUTF8(stage.text));
    out.attribute("from", stage.from);
    writeWords(out, "kinds", stage.kinds);
    writeNumbers(out, "line", stage.ops, [](const OpRecord &op) { return op.line; });
    writeNumbers(out, "kind", stage.ops, [](const OpRecord &op) { return op.kind; });
    writeNumbers(out, "origin", stage.ops, [](const OpRecord &op) { return op.origins; });
    writeNumbers(out, "parent", stage.ops, [](const OpRecord &op) { return op.parent; });
    out.attributeArray("inferred", [&] {
      for (size_t op = 0; op < stage.ops.size(); ++op)
        if (stage.ops[op].isInferred)
          out.value(static_cast<int64_t>(op));
    });
    out.attributeArray("origins", [&] {
      for (const Origins &origins : stage.origins)
        out.array([&] {
          for (uint32_t op : origins)
            out.value(static_cast<int64_t>(op));
        });
    });
    StringMap<int64_t> known;
    std::vector<std::string> places;
    std::vector<int64_t> numbers;
    for (const std::string &place : stage.places) {
      auto [entry, isNew] = known.try_emplace(place, static_cast<int64_t>(places.size()));
      if (isNew)
        places.push_back(place);
      numbers.push_back(entry->second);
    }
    writeWords(out, "places", places);
    out.attributeArray("operands", [&] {
      for (const std::vector<OperandRecord> &operands : stage.operands)
        out.array([&] {
          for (const OperandRecord &operand : operands) {
            out.value(static_cast<int64_t>(operand.from));
            out.value(static_cast<int64_t>(operand.result));
            out.value(static_cast<int64_t>(operand.type));
          }
        });
    });
    out.attributeArray("types", [&] {
      for (const TypeRecord &type : stage.types)
        out.value(json::Array{json::fixUTF8(type.text), type.shape, json::fixUTF8(type.format),
                              type.bytes, type.per});
    });
    out.attributeArray("attributes", [&] {
      for (const std::vector<AttributeRecord> &attributes : stage.attributes)
        out.array([&] {
          for (const AttributeRecord &attribute : attributes) {
            out.value(json::fixUTF8(attribute.name));
            out.value(json::fixUTF8(attribute.value));
          }
        });
    });
    writeNumbers(out, "place", numbers, [](int64_t number) { return number; });
  });
}

/// The section of `docs` whose heading begins with `heading`, up to the next heading of its level.
static StringRef sectionOf(StringRef docs, const std::string &heading) {
  size_t begin = docs.find("\n" + heading);
  if (begin == StringRef::npos)
    return {};
  StringRef rest = docs.substr(begin + 1);
  StringRef level = rest.take_while([](char c) { return c == '#'; });
  size_t first = rest.find('\n'), end = first;
  for (size_t at = first; at != StringRef::npos; at = rest.find("\n#", at + 1)) {
    StringRef next = rest.substr(at + 1);
    size_t depth = next.take_while([](char c) { return c == '#'; }).size();
    if (depth > 0 && depth <= level.size()) {
      end = at;
      return rest.slice(first, end).trim();
    }
  }
  return rest.substr(first).trim();
}

static void writePasses(json::OStream &out, const Record &record) {
  out.attributeArray("passes", [&] {
    for (const PassRecord &pass : record.passes)
      out.object([&] {
        out.attribute("name", pass.name);
        out.attribute("argument", pass.argument);
        out.attribute("summary", pass.summary);
        out.attribute("docs", sectionOf(kPassDocs, "### `-" + pass.argument + "`"));
        out.attribute("to", pass.to);
        out.attribute("seconds", pass.seconds);
        out.attribute("changed", pass.changed);
        out.attribute("before", pass.before);
        out.attribute("after", pass.after);
        out.attribute("perFunction", pass.isPerFunction);
        out.attribute("onFunctions", pass.isOnFunctions);
        out.attributeArray("ops", [&] {
          for (const auto &[kind, counts] : pass.ops)
            out.value(json::Array{kind, counts.first, counts.second});
        });
        out.attributeArray("patterns", [&] {
          for (const PatternRecord &pattern : pass.patterns)
            out.value(json::Array{pattern.name, static_cast<int64_t>(pattern.count),
                                  pattern.remark.empty() ? reasonOf(pattern.name)
                                                         : json::fixUTF8(pattern.remark)});
        });
      });
  });
}

static void writeMachineCode(json::OStream &out, const Record &record) {
  out.attributeArray("machineCode", [&] {
    for (const MachineCodeRecord &code : record.machineCode)
      out.value(json::Array{json::fixUTF8(code.function), code.selected, code.emitted, code.spills,
                            code.reloads, code.stackBytes});
  });
}

static void writeMemory(json::OStream &out, const Record &record) {
  out.attributeArray("memory", [&] {
    for (const FunctionMemory &function : record.memory)
      out.object([&] {
        out.attribute("function", json::fixUTF8(function.name));
        out.attributeArray("buffers", [&] {
          for (const BufferRecord &buffer : function.buffers)
            out.value(json::Array{static_cast<int64_t>(buffer.op), buffer.offset, buffer.size,
                                  static_cast<int64_t>(buffer.extent),
                                  static_cast<int64_t>(buffer.first),
                                  static_cast<int64_t>(buffer.last)});
        });
        out.attributeArray("lanes", [&] {
          for (const LaneRecord &lane : function.lanes) {
            json::Array uses;
            for (const LaneRecord::Use &use : lane.uses) {
              uses.push_back(static_cast<int64_t>(use.op));
              uses.push_back((use.reads ? 1 : 0) + (use.writes ? 2 : 0));
            }
            out.value(
                json::Array{json::fixUTF8(lane.name), lane.isCache, lane.bytes, std::move(uses)});
          }
        });
      });
  });
  out.attributeArray("weights", [&] {
    for (const WeightRecord &weight : record.weights)
      out.value(json::Array{json::fixUTF8(weight.name), json::fixUTF8(weight.type),
                            static_cast<int64_t>(weight.op), weight.offset, weight.bytes,
                            weight.bytesPerToken, json::fixUTF8(weight.format)});
  });
}

/// Writes the documentation of the ops that occur.
static void writeDocs(json::OStream &out, const Record &record) {
  std::set<std::string> kinds;
  for (const StageRecord &stage : record.stages)
    kinds.insert(stage.kinds.begin(), stage.kinds.end());
  out.attributeObject("docs", [&] {
    for (const std::string &kind : kinds)
      for (StringRef docs : {kDialectDocs, kExecDocs})
        for (const char *level : {"### `", "#### `"})
          if (StringRef section = sectionOf(docs, level + kind + "`"); !section.empty())
            out.attribute(kind, section);
  });
}

std::string pageData(const Record &record, const json::Value &profile) {
  std::string text;
  raw_string_ostream stream(text);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("version", kDataVersion);
    out.attribute("mica", MICA_VERSION);
    out.attribute("model", json::fixUTF8(record.model));
    out.attribute("code", rt::codeHashText(record.codeHash));
    out.attributeArray("stages", [&] {
      for (const StageRecord &stage : record.stages)
        writeStage(out, stage);
    });
    writePasses(out, record);
    writeMachineCode(out, record);
    writeMemory(out, record);
    writeDocs(out, record);
    out.attributeObject("sizes", [&] {
      for (const auto &[name, size] : record.sizes)
        out.attribute(name, size);
    });
    out.attributeBegin("manifest");
    out.rawValue(record.manifest.empty() ? "null" : record.manifest);
    out.attributeEnd();
    out.attribute("profile", profile);
  });
  return text;
}

static std::string escape(StringRef text) {
  std::string escaped;
  raw_string_ostream stream(escaped);
  printHTMLEscaped(text, stream);
  return escaped;
}

Expected<std::string> makePage(StringRef title, StringRef data) {
  // No test: LLVM is built with zlib.
  if (!compression::zlib::isAvailable())
    return createStringError("LLVM is built without zlib, which a page needs");
  SmallVector<uint8_t, 0> compressed;
  compression::zlib::compress(arrayRefFromStringRef(data), compressed,
                              compression::zlib::BestSizeCompression);
  std::string page = kPageMarkup.str();
  auto put = [&](StringRef mark, StringRef text) {
    size_t at = page.find(mark);
    page.replace(at, mark.size(), text);
  };
  // The title is inserted last: it comes from the model and may contain a placeholder.
  put("<!--style-->", ("<style>" + kPageStyle + "</style>").str());
  put("<!--script-->", ("<script>" + kPageScript + "</script>").str());
  put("<!--data-->",
      "<script type=\"text/plain\" id=\"data\">" + encodeBase64(compressed) + "</script>");
  put("<!--title-->", escape(json::fixUTF8(title)));
  return page;
}

} // namespace mica::explore
