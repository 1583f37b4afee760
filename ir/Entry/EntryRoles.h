//===- EntryRoles.h - what the arguments of a model are for -----*- C++ -*-===//
//
// One row per role that an argument or a result of a model's entry function has. The compiler
// writes it there as `mica.role`, the manifest of a program lists those of its code in their order,
// and the runtime passes the listed arguments, never by position.
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
  Sequences,    ///< which sequence a row belongs to, from 0
  Positions,    ///< at which position of it, from 0
  LogitIndices, ///< rows whose logits are computed
  Lengths,      ///< for how many positions the sequence of a row is read
  Cache,        ///< keys or values of all positions
  Weights,      ///< as the program stores them
  Scratch,      ///< anything, before the call and after it
  Logits,       ///< of each output
};

/// How an entry function takes or returns what has a role. T: rows of a call, O: outputs among
/// them, V: tokens that the model knows.
enum class EntryKind : uint8_t {
  RowVector,    ///< argument, i32[T]
  OutputVector, ///< argument, i32[O]
  State,        ///< argument, and result once it is updated; code updates it in place
  Memory,       ///< argument of code only, u8[bytes], at a multiple of 64 bytes
  OutputRows,   ///< result, f32[O, V]; code stores it to an argument
};

struct EntryRoleInfo {
  EntryRole role;
  std::string_view name;
  EntryKind kind;
  bool isOptional = false; ///< an entry may do without
  bool isRepeated = false; ///< any number of arguments may have it
};

inline constexpr std::array<EntryRoleInfo, 9> kEntryRoles{{
    {EntryRole::Tokens, "tokens", EntryKind::RowVector},
    {EntryRole::Sequences, "sequences", EntryKind::RowVector},
    {EntryRole::Positions, "positions", EntryKind::RowVector},
    {EntryRole::LogitIndices, "logit_indices", EntryKind::OutputVector},
    {EntryRole::Lengths, "lengths", EntryKind::RowVector, true},
    {EntryRole::Cache, "cache", EntryKind::State, true, true},
    {EntryRole::Weights, "weights", EntryKind::Memory},
    {EntryRole::Scratch, "scratch", EntryKind::Memory},
    {EntryRole::Logits, "logits", EntryKind::OutputRows},
}};

/// Raised whenever what a role stands for changes, so that a program whose code expects something
/// else is refused. A new role needs no other number: a runtime refuses names that it does not
/// know.
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
