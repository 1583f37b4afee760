#include "frontend/families/GgufArchitecture.h"
#include "frontend/families/Registry.h"
#include "frontend/support/Json.h"
#include "tests/unit/frontend/GgufWriter.h"
#include "tests/unit/frontend/TestFolder.h"

#include <set>

using namespace mica;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(JsonKeys, AreThoseOfTheObject) {
  llvm::json::Value value = llvm::cantFail(parseJson(R"({"b": 2, "a": null})", "c.json"));
  JsonKeys keys(*value.getAsObject(), "c.json", "outer.");
  EXPECT_THAT(keys.keys(), ElementsAre("a", "b"));
  EXPECT_EQ(*keys.find("b"), llvm::json::Value(2));
  EXPECT_EQ(keys.find("a")->kind(), llvm::json::Value::Null);
  EXPECT_EQ(keys.find("outer.b"), nullptr);
  EXPECT_EQ(keys.named("c"), "outer.c");
  EXPECT_EQ(messageOf(keys.wrongValue("b", "a string")),
            "c.json: has \"outer.b\": 2, expected a string; correct it");
  EXPECT_EQ(messageOf(keys.missingKey("c", "which it needs")),
            "c.json: has no key \"outer.c\", which it needs; add it");
}

class GgufKeysTest : public testing::Test {
protected:
  GgufKeys keysOf(llvm::StringRef architecture) {
    model.emplace(llvm::cantFail(GgufModel::open(folder.write("m.gguf", file.bytes()))));
    return GgufKeys(*model, architecture);
  }
  TestFolder folder;
  GgufWriter file;
  std::optional<GgufModel> model;
};

TEST_F(GgufKeysTest, AreThoseOfTheArchitecture) {
  file.string("general.name", "small").u32("llama.block_count", 2).u32("llama2.block_count", 3);
  file.f32("llama.rope.freq_base", 0.1f).boolean("llama.flag", true).string("llama.word", "x");
  GgufKeys keys = keysOf("llama");
  EXPECT_THAT(keys.keys(), ElementsAre("block_count", "flag", "rope.freq_base", "word"));
  EXPECT_EQ(*keys.find("block_count"), llvm::json::Value(2));
  EXPECT_EQ(*keys.find("rope.freq_base"), llvm::json::Value(0.1)) << "the shortest decimal";
  EXPECT_EQ(*keys.find("flag"), llvm::json::Value(true));
  EXPECT_EQ(*keys.find("word"), llvm::json::Value("x"));
  EXPECT_EQ(keys.find("llama.block_count"), nullptr);
  EXPECT_EQ(keys.find("name"), nullptr);
  EXPECT_THAT(messageOf(keys.wrongValue("word", "a number")),
              HasSubstr("m.gguf: has \"llama.word\": \"x\", expected a number"));
  EXPECT_THAT(
      messageOf(keys.missingKey("embedding_length", "which llama needs")),
      HasSubstr("m.gguf: has no key \"llama.embedding_length\", which llama needs; download "
                "it again"));
}

TEST_F(GgufKeysTest, ListsOfLikeElementsAreOne) {
  file.list<int32_t>("llama.same", GgufKind::I32, {2, 2, 2});
  file.list<int32_t>("llama.other", GgufKind::I32, {2, 3});
  GgufKeys keys = keysOf("llama");
  EXPECT_EQ(*keys.find("same"), llvm::json::Value(2));
  EXPECT_EQ(*keys.find("other"), llvm::json::Value(llvm::json::Array{2, 3}));
}

TEST(NamedParameters, HaveTheNamesOfTheFile) {
  NamedParameters parameters("m.gguf");
  parameters.add("factor", 2, "llama.rope.scaling.factor");
  parameters.expect("beta_fast", "llama.rope.scaling.yarn_beta_fast");
  parameters.expect("beta_fast", "a later name");
  EXPECT_THAT(parameters.keys(), ElementsAre("factor"));
  EXPECT_EQ(parameters.find("beta_fast"), nullptr);
  EXPECT_THAT(messageOf(parameters.wrongValue("factor", "3")),
              HasSubstr("has \"llama.rope.scaling.factor\": 2, expected 3"));
  EXPECT_THAT(messageOf(parameters.missingKey("beta_fast", "which yarn needs")),
              HasSubstr("has no key \"llama.rope.scaling.yarn_beta_fast\", which yarn needs"));
  EXPECT_EQ(parameters.named("other"), "other");
}

TEST(ReadNumber, IsWithinItsRange) {
  auto integer = [](llvm::json::Value value) {
    return messageOf(readInteger("f", "k", value, {1, 4}));
  };
  EXPECT_EQ(integer(1), "");
  EXPECT_EQ(integer(4), "");
  EXPECT_EQ(integer(5), "f: has \"k\": 5, expected an integer from 1 to 4; correct it");
  EXPECT_THAT(integer(1.5), HasSubstr("expected an integer"));
  EXPECT_EQ(messageOf(readNumber("f", "k", 0.5, {1, 1e6})),
            "f: has \"k\": 0.5, expected a number from 1 to 1000000; correct it");
}

/// Several families may share an architecture name: all but one of them must be recognized by keys
/// of the file.
TEST(Registry, OneFamilyPerArchitectureIsTheDefault) {
  std::set<llvm::StringRef> names, defaults;
  for (const FamilyEntry &entry : familyEntries()) {
    if (!entry.gguf)
      continue;
    names.insert(entry.gguf->name);
    if (!entry.gguf->matches) {
      EXPECT_TRUE(defaults.insert(entry.gguf->name).second) << entry.gguf->name.str();
    }
  }
  EXPECT_EQ(names, defaults);
  EXPECT_EQ(names.size(), 31u);
}

} // namespace
