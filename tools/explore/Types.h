//===- Types.h - readable types of values -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_TYPES_H
#define MICA_TOOLS_EXPLORE_TYPES_H

#include "tools/explore/Record.h"

#include "mlir/IR/Types.h"
#include "llvm/Support/raw_ostream.h"

namespace mica::explore {

/// The printed form of a type or an attribute.
template <typename Printed> std::string textOf(const Printed &printed) {
  std::string text;
  llvm::raw_string_ostream(text) << printed;
  return text;
}

/// Shape, format and bytes of a tensor or a state.
TypeRecord recordType(mlir::Type type);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_TYPES_H
