//===- Provenance.h - which ops an op was made of ---------------*- C++ -*-===//
//
// Each op of a stage gets a location with its number around its own. Passes carry locations over to
// what they make of an op and fuse those of several ops, so that at the next stage the numbers in
// an op's location are its origins.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_TOOLS_EXPLORE_PROVENANCE_H
#define MICA_TOOLS_EXPLORE_PROVENANCE_H

#include "tools/explore/Record.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace mica::explore {

/// `location` without numbers, in one with the number `op`.
mlir::Location numbered(mlir::Location location, uint32_t op);

/// `location` as it was before `numbered`, at any depth.
mlir::Location withoutNumbers(mlir::Location location);

/// The numbers in `location`.
Origins originsOf(mlir::Location location);

/// The modules of the model that `location` names, separated by spaces.
std::string placesOf(mlir::Location location);

/// Sets of origins, each once, in the order in which they come; the empty set is the first.
class OriginTable {
public:
  OriginTable() { indexOf({}); }
  uint32_t indexOf(Origins origins);
  const Origins &operator[](uint32_t index) const { return all[index]; }
  std::vector<Origins> take() { return std::move(all); }

private:
  std::vector<Origins> all;
  std::map<Origins, uint32_t> known;
};

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_PROVENANCE_H
