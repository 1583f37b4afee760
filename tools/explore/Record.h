//===- Record.h - a compilation, stage by stage -----------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_RECORD_H
#define MICA_TOOLS_EXPLORE_RECORD_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mica::explore {

/// Indices of ops of an earlier stage, ascending and unique.
using Origins = std::vector<uint32_t>;

/// An op of a stage, or an instruction.
struct OpRecord {
  uint32_t line;           ///< in the stage's text, from 1; 0: none
  uint32_t kind;           ///< index into StageRecord::kinds
  uint32_t origins;        ///< index into StageRecord::origins
  int32_t parent;          ///< index of the enclosing op; -1: none
  bool isInferred = false; ///< origins are those of a nearby instruction
};

/// An operand of an op.
struct OperandRecord {
  int32_t from;    ///< index of the defining op; -2 - N: argument N of the function
  uint32_t result; ///< index among the results of `from`
  uint32_t type;   ///< index into StageRecord::types
};

/// A type of values.
struct TypeRecord {
  std::string text;
  std::string shape;  ///< "T×256"; empty: not shaped
  std::string format; ///< "bf16"
  int64_t bytes = 0;  ///< 0: unknown
  std::string per; ///< the unit to which `bytes` applies: "row", "position", "sequence"; empty: all
};

/// An attribute of an op, as text.
struct AttributeRecord {
  std::string name, value;
};

struct StageRecord {
  std::string name, help;
  std::string text;
  int from = -1;                   ///< the stage to which origins refer; -1: none
  std::vector<std::string> kinds;  ///< "mica.linear", "vfmadd231ps"
  std::vector<OpRecord> ops;       ///< in the order of the text
  std::vector<Origins> origins;    ///< unique; the first one is empty
  std::vector<std::string> places; ///< per op: its modules of the model, separated by spaces
  /// Operands per op, up to stage `kernels`.
  std::vector<std::vector<OperandRecord>> operands;
  std::vector<TypeRecord> types; ///< of values, unique
  /// Attributes per op, up to stage `kernels`.
  std::vector<std::vector<AttributeRecord>> attributes;
};

/// The number of times that a pass has applied a pattern, or made a change with an optimization
/// remark.
struct PatternRecord {
  std::string name;
  uint64_t count = 0;
  std::string remark = {}; ///< the text of the first remark; empty for a pattern
};

/// A pass, summed over the functions that it ran on.
struct PassRecord {
  std::string name, argument, summary;
  int to; ///< the stage that it produces
  double seconds = 0;
  bool changed = false;
  /// Numbers of ops before and after, for names whose number has changed.
  std::map<std::string, std::pair<int64_t, int64_t>> ops;
  bool isPerFunction = false; ///< `ops` has numbers of instructions by function instead
  int64_t before = 0, after = 0;
  std::vector<PatternRecord> patterns;
  bool isOnFunctions = false; ///< `ops`, `before` and `after` are of functions only
};

/// What LLVM's code generator made of a function.
struct MachineCodeRecord {
  std::string function;
  int64_t selected = 0;            ///< machine instructions after instruction selection
  int64_t emitted = 0;             ///< instructions in the assembly
  int64_t spills = 0, reloads = 0; ///< stores and loads of registers by register allocation
  int64_t stackBytes = 0;
};

/// What the size of a buffer is a multiple of: nothing, the rows of a call, or those with logits.
enum class BufferExtent : uint8_t { Fixed, PerRow, PerOutput };

/// A buffer of scratch memory.
struct BufferRecord {
  uint32_t op;          ///< of stage `loops`
  int64_t offset, size; ///< in bytes, per row or output
  BufferExtent extent;
  uint32_t first, last; ///< ops of stage `loops` that begin and end its live range
};

/// Reads and writes of a weight or a cache by a function.
struct LaneRecord {
  struct Use {
    uint32_t op; ///< of stage `loops`
    bool reads, writes;
  };
  std::string name;
  bool isCache;
  int64_t bytes; ///< 0: not fixed
  std::vector<Use> uses;
};

/// A function of stage `loops` with buffers, weights or caches.
struct FunctionMemory {
  std::string name;
  std::vector<BufferRecord> buffers;
  std::vector<LaneRecord> lanes;
};

/// A weight in memory.
struct WeightRecord {
  std::string name, type;
  std::string format; ///< "bf16"
  uint32_t op;        ///< of stage `kernels`
  int64_t offset, bytes;
  double bytesPerToken; ///< read to decode one token
};

struct Record {
  std::string model;
  std::vector<StageRecord> stages;
  std::vector<PassRecord> passes;
  std::vector<MachineCodeRecord> machineCode;
  std::vector<FunctionMemory> memory;
  std::vector<WeightRecord> weights;
  std::string manifest; ///< JSON
  /// Sizes of the model that the manifest does not have, by name: "hidden", "layers".
  std::map<std::string, int64_t> sizes;
  uint64_t codeHash = 0;
};

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_RECORD_H
