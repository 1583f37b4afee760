//===- Provenance.cpp - the origins of ops --------------------------------===//

#include "tools/explore/Provenance.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"

using namespace mlir;

namespace mica::explore {

/// Distinguishes numbers from other metadata.
static constexpr StringLiteral kFile = "mica-explore";

static std::optional<uint32_t> numberOf(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  auto number = fused ? dyn_cast_or_null<IntegerAttr>(fused.getMetadata()) : IntegerAttr();
  if (!number)
    return std::nullopt;
  return static_cast<uint32_t>(number.getInt());
}

Location withoutNumbers(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    SmallVector<Location> parts;
    for (Location part : fused.getLocations())
      parts.push_back(withoutNumbers(part));
    return FusedLoc::get(parts, numberOf(location) ? Attribute() : fused.getMetadata(),
                         location.getContext());
  }
  if (auto name = dyn_cast<NameLoc>(location))
    return NameLoc::get(name.getName(), withoutNumbers(name.getChildLoc()));
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return CallSiteLoc::get(withoutNumbers(call.getCallee()), withoutNumbers(call.getCaller()));
  auto file = dyn_cast<FileLineColLoc>(location);
  return file && file.getFilename() == kFile ? UnknownLoc::get(location.getContext()) : location;
}

Location numbered(Location location, uint32_t op) {
  MLIRContext *context = location.getContext();
  Location inner = withoutNumbers(location);
  // Fused locations drop unknown ones.
  if (isa<UnknownLoc>(inner))
    inner = FileLineColLoc::get(context, kFile, 1, 1);
  return FusedLoc::get({inner}, IntegerAttr::get(IntegerType::get(context, 64), op), context);
}

Origins originsOf(Location location) {
  Origins origins;
  location->walk([&](Location part) {
    std::optional<uint32_t> number = numberOf(part);
    if (!number)
      return WalkResult::advance();
    origins.push_back(*number);
    return WalkResult::skip();
  });
  llvm::sort(origins);
  origins.erase(llvm::unique(origins), origins.end());
  return origins;
}

std::string locationsOf(Location location) {
  SmallVector<StringRef> places;
  location->walk([&](Location part) {
    auto name = dyn_cast<NameLoc>(part);
    if (!name)
      return WalkResult::advance();
    if (!llvm::is_contained(places, name.getName().strref()))
      places.push_back(name.getName().strref());
    return WalkResult::skip();
  });
  return llvm::join(places, " ");
}

uint32_t OriginTable::indexOf(Origins origins) {
  auto [place, isNew] = known.try_emplace(origins, static_cast<uint32_t>(all.size()));
  if (isNew)
    all.push_back(std::move(origins));
  return place->second;
}

} // namespace mica::explore
