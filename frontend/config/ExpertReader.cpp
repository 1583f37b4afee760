#include "frontend/config/ExpertReader.h"

#include "frontend/support/InputError.h"

namespace mica {

constexpr int64_t maxExpertsInAll = 1 << 18;

/// Groups must have equal sizes, and the selected ones enough experts.
static llvm::Error checkGroups(const Hyperparameters &h, const FamilyTraits &traits,
                               const KeyNames &names) {
  using H = Hyperparameters;
  auto wrong = [&](const llvm::Twine &what, std::initializer_list<Slot> slots) {
    return inputError(names.path(), what, names.hintToCorrect(slots));
  };
  int64_t groups = *h.groups, kept = h.topkGroup.value_or(groups);
  if (*h.experts % groups != 0)
    return wrong("has " + llvm::Twine(*h.experts) + " experts, not a multiple of its " +
                     llvm::Twine(groups) + " groups",
                 {&H::groups, &H::experts});
  if (kept > groups)
    return wrong("keeps " + llvm::Twine(kept) + " of " + llvm::Twine(groups) + " groups of experts",
                 {&H::topkGroup, &H::groups});
  int64_t size = *h.experts / groups;
  if (*h.expertsPerToken > kept * size)
    return wrong("chooses " + llvm::Twine(*h.expertsPerToken) + " experts per token of the " +
                     llvm::Twine(kept * size) + " in the groups that it keeps",
                 {&H::expertsPerToken, &H::topkGroup});
  if (traits.groupScoring == GroupScoring::BestTwo && size < 2)
    return wrong("scores groups by their two best experts, but its " + llvm::Twine(groups) +
                     " groups have one expert each",
                 {&H::groups, &H::experts});
  return llvm::Error::success();
}

static llvm::Error checkExperts(const Hyperparameters &h, const FamilyTraits &traits,
                                const KeyNames &names) {
  using H = Hyperparameters;
  if (*h.expertsPerToken == 0 || *h.expertsPerToken > *h.experts)
    return inputError(names.path(),
                      "chooses " + llvm::Twine(*h.expertsPerToken) + " experts per token of " +
                          llvm::Twine(*h.experts),
                      names.hintToCorrect({&H::expertsPerToken, &H::experts}));
  // Every expert is a named tensor: published models have about ten thousand.
  if (*h.experts * *h.layers > maxExpertsInAll)
    return inputError(names.path(),
                      "has " + llvm::Twine(*h.experts) + " experts in each of " +
                          llvm::Twine(*h.layers) + " layers, at most " +
                          llvm::Twine(maxExpertsInAll) + " in total are supported",
                      hints::otherModel);
  return h.groups ? checkGroups(h, traits, names) : llvm::Error::success();
}

llvm::Expected<SparseConfig>
readExperts(const Hyperparameters &h, const FamilyTraits &traits, const KeyNames &names,
            llvm::function_ref<DenseConfig(int64_t inner, bool bias)> dense) {
  if (llvm::Error error = checkExperts(h, traits, names))
    return std::move(error);
  SparseConfig sparse;
  sparse.experts = *h.experts;
  sparse.expertsPerToken = *h.expertsPerToken;
  sparse.normalize = h.normalizeGate.value_or(false) &&
                     (sparse.expertsPerToken > 1 || traits.normalizesSingleExpert);
  sparse.normalizeEps = traits.normalizeEps;
  sparse.expert = dense(*h.expertInner, traits.expertBias);
  if (h.gateLimit)
    sparse.expert.clamp = {*h.gateAlpha, *h.gateLimit};
  sparse.latent = h.expertWidth.value_or(0);
  sparse.sharedExperts = h.sharedExperts.value_or(0);
  sparse.shared = dense(*h.expertInner, h.mlpBias.value_or(false));
  if (h.sharedInner) {
    sparse.sharedExperts = 1;
    sparse.shared.inner = *h.sharedInner;
  }
  sparse.sharedGate = traits.sharedGate;
  sparse.scoring = traits.scoring;
  sparse.routerBias = traits.routerBias;
  sparse.correctionBias = h.correctsChoice.value_or(traits.correctionBias);
  sparse.multiplier = h.routedMultiplier.value_or(1);
  if (h.groups) {
    sparse.groups = *h.groups;
    sparse.topkGroup = h.topkGroup.value_or(*h.groups);
    sparse.groupScoring = traits.groupScoring;
  }
  return sparse;
}

} // namespace mica
