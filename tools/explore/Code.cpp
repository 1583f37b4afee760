//===- Code.cpp - LLVM IR and assembly with their lines -------------------===//

#include "tools/explore/Code.h"

#include "passes/pipelines/Stages.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/AssemblyAnnotationWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/FormattedStream.h"

using namespace llvm;

namespace mica::explore {

namespace {

/// Records the ops of a code stage.
class CodeRecord {
public:
  explicit CodeRecord(Stage stage) {
    made.name = getStageInfo(stage).name.str();
    made.help = getStageInfo(stage).help.str();
  }

  void beginFunction(StringRef name, uint32_t line, uint32_t origins) {
    function = static_cast<int32_t>(made.ops.size());
    add("function", line, origins, -1, name);
  }
  void addInstruction(StringRef kind, uint32_t line, uint32_t origins, bool isInferred) {
    add(kind, line, origins, function, {});
    made.ops.back().isInferred = isInferred;
  }

  StageRecord made;

private:
  void add(StringRef kind, uint32_t line, uint32_t origins, int32_t parent, StringRef place) {
    auto [known, isNew] = kinds.try_emplace(kind, static_cast<uint32_t>(made.kinds.size()));
    if (isNew)
      made.kinds.push_back(kind.str());
    made.ops.push_back({line, known->second, origins, parent});
    made.places.push_back(place.str());
  }

  StringMap<uint32_t> kinds;
  int32_t function = -1;
};

/// The debug information of an instruction.
struct Line {
  uint32_t origins;
  bool isInferred;
};

/// Observes LLVM's writer, which reports what it is about to print.
class LineWriter final : public AssemblyAnnotationWriter {
public:
  LineWriter(CodeRecord &code, const StringMap<uint32_t> &functions, ArrayRef<Line> lines)
      : code(code), functions(functions), lines(lines) {}

  void emitFunctionAnnot(const Function *function, formatted_raw_ostream &os) override {
    if (function->isDeclaration())
      return;
    code.beginFunction(function->getName(), os.getLine() + 1,
                       functions.lookup(function->getName()));
  }
  void emitInstructionAnnot(const Instruction *instruction, formatted_raw_ostream &os) override {
    Line line = lines[next++];
    code.addInstruction(instruction->getOpcodeName(), os.getLine() + 1, line.origins,
                        line.isInferred);
  }

private:
  CodeRecord &code;
  const StringMap<uint32_t> &functions;
  ArrayRef<Line> lines;
  size_t next = 0;
};

} // namespace

/// Marks lines that were inferred.
static constexpr unsigned kInferred = 1;

static uint32_t originsOfLine(unsigned line) { return line > 0 ? line - 1 : 0; }

static bool hasLine(const Instruction &instruction) {
  return instruction.getDebugLoc() && instruction.getDebugLoc().getLine() > 0;
}

/// The location of a neighbor of `instruction` in the def-use graph.
static DebugLoc neighborsLine(const Instruction &instruction) {
  for (const User *user : instruction.users())
    if (const auto *other = dyn_cast<Instruction>(user); other && hasLine(*other))
      return other->getDebugLoc();
  for (const Value *operand : instruction.operands())
    if (const auto *other = dyn_cast<Instruction>(operand); other && hasLine(*other))
      return other->getDebugLoc();
  return {};
}

void inferLines(Module &code) {
  for (Function &function : code) {
    DISubprogram *scope = function.getSubprogram();
    if (!scope)
      continue;
    SmallVector<Instruction *> open;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (!hasLine(instruction))
          open.push_back(&instruction);
    // In reverse order: users of an instruction follow it.
    std::reverse(open.begin(), open.end());
    for (size_t before = 0; before != open.size();) {
      before = open.size();
      erase_if(open, [](Instruction *instruction) {
        DebugLoc line = neighborsLine(*instruction);
        if (line)
          instruction->setDebugLoc(DILocation::get(instruction->getContext(), line.getLine(),
                                                   kInferred, line.getScope(),
                                                   line.getInlinedAt()));
        return static_cast<bool>(line);
      });
    }
    for (Instruction *instruction : open)
      instruction->setDebugLoc(
          DILocation::get(code.getContext(), scope->getLine(), kInferred, scope));
  }
}

StringMap<uint32_t> linesOfFunctions(const Module &code) {
  StringMap<uint32_t> lines;
  for (const Function &function : code)
    if (const DISubprogram *scope = function.getSubprogram())
      lines[function.getName()] = originsOfLine(scope->getLine());
  return lines;
}

/// Moves functions from the comment with their attributes, which LLVM prints first, to `define`.
static void skipComments(StageRecord &made) {
  SmallVector<StringRef> lines;
  StringRef(made.text).split(lines, '\n');
  for (OpRecord &op : made.ops)
    while (op.parent < 0 && lines[op.line - 1].starts_with(";"))
      ++op.line;
}

StageRecord recordIr(Module &code) {
  StringMap<uint32_t> functions = linesOfFunctions(code);
  std::vector<Line> lines;
  for (const Function &function : code)
    for (const BasicBlock &block : function)
      for (const Instruction &instruction : block)
        if (const DebugLoc &line = instruction.getDebugLoc())
          lines.push_back({originsOfLine(line.getLine()), line.getCol() == kInferred});
        else
          lines.push_back({0, false});
  StripDebugInfo(code);
  CodeRecord record(Stage::Ll);
  LineWriter writer(record, functions, lines);
  raw_string_ostream stream(record.made.text);
  code.print(stream, &writer);
  skipComments(record.made);
  return std::move(record.made);
}

/// Whether the line is part of debug information.
static bool isOfDebugInformation(StringRef line) {
  if (line.starts_with("\t.file\t") && line.contains("md5"))
    return true;
  if (line.consume_front(".Ltmp") || line.consume_front(".Lfunc_begin"))
    return line.ends_with(":");
  return line.starts_with("\t.file\t0") || line.starts_with("\t.file\t1") ||
         line.starts_with("\t.cfi_");
}

/// Gives instructions without origins those of the next instruction of their function, or else of
/// the previous one.
static void fillGaps(std::vector<OpRecord> &ops) {
  auto fill = [](OpRecord &op, const OpRecord &from) {
    if (op.origins != 0 || op.parent != from.parent || from.origins == 0)
      return;
    op.origins = from.origins;
    op.isInferred = true;
  };
  for (size_t i = ops.size(); i-- > 1;)
    fill(ops[i - 1], ops[i]);
  for (size_t i = 1; i < ops.size(); ++i)
    fill(ops[i], ops[i - 1]);
}

StageRecord recordAssembly(StringRef text, const StringMap<uint32_t> &functions) {
  CodeRecord record(Stage::Asm);
  std::string &kept = record.made.text;
  uint32_t number = 0, origins = 0;
  bool isInDebugSection = false, isInferred = false;
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    if (line.starts_with("\t.section\t"))
      isInDebugSection = line.starts_with("\t.section\t.debug_");
    if (line.starts_with("\t.loc\t")) {
      // .loc FILE LINE COLUMN ...
      StringRef place = line.substr(6).split(' ').second;
      unsigned at = 0, column = 0;
      place.consumeInteger(10, at);
      place.ltrim().consumeInteger(10, column);
      origins = originsOfLine(at);
      isInferred = column == kInferred;
      continue;
    }
    if (isInDebugSection || isOfDebugInformation(line))
      continue;
    ++number;
    kept += line;
    kept += '\n';
    StringRef label = line.split(':').first;
    if (auto function = functions.find(label);
        function != functions.end() && line.size() > label.size()) {
      origins = function->second;
      record.beginFunction(label, number, origins);
    } else if (line.size() > 1 && line[0] == '\t' && isAlpha(line[1])) {
      record.addInstruction(line.substr(1).take_until([](char c) { return isSpace(c); }), number,
                            origins, isInferred);
    }
  }
  fillGaps(record.made.ops);
  return std::move(record.made);
}

} // namespace mica::explore
