//===- RopeKindsTest.cpp - the table of rope scalings ---------------------===//

#include "frontend/families/RopeKinds.h"

#include "llvm/ADT/StringSet.h"

#include "gtest/gtest.h"

using namespace mica;

namespace {

TEST(RopeKinds, HaveDifferentNames) {
  llvm::StringSet<> names, ggufNames;
  for (const RopeKind &kind : ropeKinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name.str();
    if (!kind.alias.empty()) {
      EXPECT_TRUE(names.insert(kind.alias).second) << kind.alias.str();
    }
    if (!kind.gguf.empty()) {
      EXPECT_TRUE(ggufNames.insert(kind.gguf).second) << kind.gguf.str();
    }
  }
}

TEST(RopeKinds, AreFoundByAnyName) {
  for (const RopeKind &kind : ropeKinds()) {
    EXPECT_EQ(findRopeKind(kind.name), &kind);
    if (!kind.gguf.empty()) {
      EXPECT_EQ(findGgufRopeKind(kind.gguf), &kind);
    }
  }
  EXPECT_EQ(findRopeKind("su"), findRopeKind("longrope"));
  // Kinds without an alias, or that GGUF files do not have, are not found by an empty name.
  EXPECT_EQ(findRopeKind(""), nullptr);
  EXPECT_EQ(findGgufRopeKind(""), nullptr);
  EXPECT_EQ(findRopeKind("none"), nullptr) << "the name in GGUF files";
  EXPECT_EQ(findGgufRopeKind("default"), nullptr) << "the name in config.json";
}

TEST(RopeKinds, AreListed) {
  EXPECT_EQ(listRopeKinds([](const RopeKind &kind) { return kind.name; }),
            "default, linear, dynamic, yarn, longrope, llama3 and proportional");
  EXPECT_EQ(listRopeKinds([](const RopeKind &kind) { return kind.gguf; }),
            "none, linear, yarn and longrope");
}

/// The rows of GGUF keys name kinds as text.
TEST(RopeKinds, HaveTheNamesThatGgufKeysUse) {
  for (const GgufRopeKey &key : ggufCommonRopeKeys())
    for (llvm::StringRef list : {llvm::StringRef(key.types), llvm::StringRef(key.requiredBy)}) {
      llvm::SmallVector<llvm::StringRef> types;
      list.split(types, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
      for (llvm::StringRef type : types)
        EXPECT_NE(findGgufRopeKind(type), nullptr) << key.name.str() << ": " << type.str();
    }
}

/// The config and the dialect agree on which frequencies depend on the sequence length.
TEST(RopeKinds, FollowTheLengthWhereTheirAttributeDoes) {
  mlir::MLIRContext context;
  context.loadDialect<MicaDialect>();
  const RopeScaling scalings[] = {LinearScaling{2},
                                  YarnScaling{2, 32, 1, 1, 128, 7},
                                  Llama3Scaling{8, 1, 4, 128},
                                  LongRopeScaling{{1, 2}, {3, 4}, 1, 128},
                                  DynamicScaling{2, 128},
                                  ProportionalScaling{2, 2}};
  static_assert(std::size(scalings) + 1 == std::variant_size_v<RopeScaling>, "one of each kind");
  for (const RopeScaling &scaling : scalings) {
    RopeConfig rope;
    rope.scaling = scaling;
    RopeScalingAttr attribute = rope.scalingAttribute(&context);
    ASSERT_TRUE(attribute);
    EXPECT_EQ(rope.followsLength(), attribute.getLengthThreshold().has_value()) << scaling.index();
  }
  EXPECT_FALSE(RopeConfig().scalingAttribute(&context));
  EXPECT_FALSE(RopeConfig().followsLength());
}

} // namespace
