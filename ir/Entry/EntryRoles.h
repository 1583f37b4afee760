//===- EntryRoles.h - roles of the arguments of a model ---------*- C++ -*-===//
//
// One row per role of an argument or a result of a model's entry function. The compiler sets it as
// `mica.role`, a program's manifest lists the roles of its code in order, and the runtime passes
// the listed arguments; their positions have no meaning.
//
// Free of LLVM and MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_ENTRY_ENTRYROLES_H
#define MICA_IR_ENTRY_ENTRYROLES_H

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mica {

/// In the order of kEntryRoles.
enum class EntryRole : uint8_t {
  Tokens,       ///< ids
  Sequences,    ///< the sequence of a row, from 0
  Positions,    ///< the position of a row in its sequence, from 0
  LogitIndices, ///< rows whose logits are computed
  Lengths,      ///< the total length of a row's sequence
  Cache,        ///< keys or values of all positions
  Weights,      ///< in the program's layout
  Scratch,      ///< contents undefined before and after the call
  Logits,       ///< of each output
  Hidden,       ///< normalized output of the last layer, for multi-token prediction (MTP)
};

/// How an entry function takes or returns a value with a role. T: rows of a call, O: outputs among
/// them, V: vocabulary size, C: width of the model.
enum class EntryKind : uint8_t {
  RowVector,    ///< argument, i32[T]
  OutputVector, ///< argument, i32[O]
  State,        ///< argument, and result once it is updated; code updates it in place
  Memory,       ///< argument of code only, u8[bytes], at a multiple of 64 bytes
  OutputRows,   ///< result, f32[O, V]; code stores it to an argument
  TokenRows,    ///< argument and result, f32[T, C]; code overwrites the argument with the result
};

constexpr bool isVector(EntryKind kind) {
  return kind == EntryKind::RowVector || kind == EntryKind::OutputVector;
}

struct EntryRoleInfo {
  EntryRole role;
  std::string_view name;
  EntryKind kind;
  bool isOptional = false; ///< an entry may omit it
  bool isRepeated = false; ///< any number of arguments may have it
};

inline constexpr std::array<EntryRoleInfo, 10> kEntryRoles{{
    {EntryRole::Tokens, "tokens", EntryKind::RowVector},
    {EntryRole::Sequences, "sequences", EntryKind::RowVector},
    {EntryRole::Positions, "positions", EntryKind::RowVector},
    {EntryRole::LogitIndices, "logit_indices", EntryKind::OutputVector},
    {EntryRole::Lengths, "lengths", EntryKind::RowVector, true},
    {EntryRole::Cache, "cache", EntryKind::State, true, true},
    {EntryRole::Weights, "weights", EntryKind::Memory},
    {EntryRole::Scratch, "scratch", EntryKind::Memory},
    {EntryRole::Logits, "logits", EntryKind::OutputRows},
    {EntryRole::Hidden, "hidden", EntryKind::TokenRows, true},
}};

/// Incremented whenever the meaning of a role changes, so that programs compiled for another
/// version are rejected. A new role needs no new version, because a runtime rejects unknown names.
inline constexpr int64_t kEntryAbi = 1;

constexpr const EntryRoleInfo &infoOf(EntryRole role) {
  return kEntryRoles[static_cast<size_t>(role)];
}

constexpr std::optional<EntryRole> entryRoleNamed(std::string_view name) {
  for (const EntryRoleInfo &info : kEntryRoles)
    if (info.name == name)
      return info.role;
  return std::nullopt;
}

} // namespace mica

#endif // MICA_IR_ENTRY_ENTRYROLES_H
