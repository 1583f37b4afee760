//===- Provenance.h - the origins of ops ------------------------*- C++ -*-===//
//
// At each stage, the location of each op is wrapped in one with its number. Passes propagate
// locations to the ops they create and fuse those of several ops, so that at the next stage the
// numbers in an op's location are its origins.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_TOOLS_EXPLORE_PROVENANCE_H
#define MICA_TOOLS_EXPLORE_PROVENANCE_H

#include "tools/explore/Record.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace mica::explore {

/// Wraps `location` in one with the number `op`, and removes numbers within it.
mlir::Location numbered(mlir::Location location, uint32_t op);

/// Removes the wrappers added by `numbered`, at any depth.
mlir::Location withoutNumbers(mlir::Location location);

/// The numbers in `location`.
Origins originsOf(mlir::Location location);

/// The modules of the model named by `location`, separated by spaces.
std::string locationsOf(mlir::Location location);

/// Unique sets of origins in order of insertion; the first one is the empty set.
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
