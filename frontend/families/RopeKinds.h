//===- RopeKinds.h - the kinds of rope scaling ------------------*- C++ -*-===//
//
// A kind is a row: its names in config.json and in GGUF files, and the function that reads its
// parameters, with their defaults and checks. A new kind is a row here, a struct in RopeScaling.h
// and an attribute in ir/Mica/MicaAttrs.td.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FAMILIES_ROPEKINDS_H
#define MICA_FRONTEND_FAMILIES_ROPEKINDS_H

#include "frontend/families/Family.h"
#include "frontend/families/GgufArchitecture.h"
#include "frontend/families/RopeParameters.h"

namespace mica {

/// The properties of a model on which the numbers of a scaling depend.
struct RopeModel {
  const Hyperparameters &h;
  const FamilyTraits &traits;
  int64_t headDim;
};

/// A tensor of a GGUF file with a number per pair, and the equivalent parameter.
struct RopeFactorTensor {
  llvm::StringLiteral name, parameter;
};

struct RopeKind {
  llvm::StringLiteral name;       ///< rope_type
  llvm::StringLiteral alias = ""; ///< its earlier name, if any
  /// Reads the parameters, and sets the scaling of `rope`, whose dimensions are known.
  using Reader = llvm::Error (*)(RopeParameters &parameters, const RopeModel &model,
                                 RopeConfig &rope);
  Reader read;
  Reader readOwn = nullptr; ///< for families with OwnYarn; null: they do not support the kind
  bool scales = true;       ///< whether frequencies differ from unscaled ones
  /// Whether partial_rotary_factor is one of the parameters, because pairs are those of a whole
  /// head; only for families with proportionalRope.
  bool readsShare = false;

  llvm::StringLiteral gguf = ""; ///< rope.scaling.type; empty: GGUF files do not have the kind
  llvm::ArrayRef<RopeFactorTensor> ggufFactors = {}; ///< required by this kind, and no other has it
  /// Adds the parameters that follow from the architecture of a GGUF file, in which they have the
  /// given name. May be null.
  void (*addGguf)(const GgufArchitecture &architecture, NamedParameters &parameters,
                  llvm::StringRef name) = nullptr;

  bool supports(const FamilyTraits &traits) const {
    return (!traits.ownYarn || readOwn) && (!readsShare || traits.proportionalRope);
  }
  llvm::Error readInto(RopeConfig &rope, RopeParameters &parameters, const RopeModel &model) const {
    return (model.traits.ownYarn ? readOwn : read)(parameters, model, rope);
  }
};

/// All kinds, in the order of diagnostics.
llvm::ArrayRef<RopeKind> ropeKinds();

/// The names of the kinds without scaling, and of those that other code refers to.
inline constexpr llvm::StringLiteral kUnscaledRope = "default", kLinearRope = "linear",
                                     kYarnRope = "yarn", kLlama3Rope = "llama3",
                                     kProportionalRope = "proportional";

/// The kind with this name or alias; null: none.
const RopeKind *findRopeKind(llvm::StringRef name);
/// The kind with this name in GGUF files; null: none.
const RopeKind *findGgufRopeKind(llvm::StringRef name);

/// "default, linear and yarn": the name of each kind, or what `nameOf` returns; an empty one is
/// omitted.
std::string listRopeKinds(llvm::function_ref<llvm::StringRef(const RopeKind &)> nameOf);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_ROPEKINDS_H
