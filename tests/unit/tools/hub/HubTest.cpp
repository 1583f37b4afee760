//===- HubTest.cpp - names, listings and links of the hub -----------------===//

#include "tools/hub/Http.h"
#include "tools/hub/HubName.h"
#include "tools/hub/Listing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mica::hub;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

HubName named(llvm::StringRef text) { return llvm::cantFail(parseHubName(text)); }

template <typename T> std::string failure(llvm::Expected<T> result) {
  return result ? "no error" : llvm::toString(result.takeError());
}

TEST(HubName, IsParsed) {
  HubName name = named("Qwen/Qwen3-0.6B");
  EXPECT_EQ(name.owner, "Qwen");
  EXPECT_EQ(name.name, "Qwen3-0.6B");
  EXPECT_EQ(name.selection, "");
  EXPECT_EQ(named("a_/_b:x/y.gguf").selection, "x/y.gguf");
  EXPECT_EQ(named("a/b:Q4_K_M").text(), "a/b:Q4_K_M");
}

TEST(HubName, RejectsNamesThatTheHubRejects) {
  for (llvm::StringRef text :
       {"",       "a",        "a/",         "/b",       "a/b/c",    "a/..",     "../b",  "a/.b",
        "a./b",   "-a/b",     "a/b-",       "a/b--c",   "a/b..c",   "a/b c",    "a/b\n", "a/b:",
        "a/b:/x", "a/b:../x", "a/b:x/../y", "a/b:x//y", "a/b:x\\y", "a/b:x\x1b"})
    EXPECT_THAT(failure(parseHubName(text)), HasSubstr("write OWNER/NAME")) << text.str();
  EXPECT_THAT(failure(parseHubName("a/" + std::string(97, 'b'))), HasSubstr("write OWNER/NAME"));
}

TEST(HubName, ExcludesModelFiles) {
  EXPECT_TRUE(isHubName("a/b"));
  EXPECT_TRUE(isHubName("a/b:c.gguf"));
  for (llvm::StringRef path : {"a/b.gguf", "a/b.mlir", "./a", "a", "/a/b", "a/b/"})
    EXPECT_FALSE(isHubName(path)) << path.str();
}

TEST(HubPath, StaysInItsFolder) {
  for (llvm::StringRef path : {"a", "a/b", ".gitattributes", "a..b", "\xc3\xa4"})
    EXPECT_TRUE(isSafePath(path)) << path.str();
  for (llvm::StringRef path : {"", "/", "/a", "a/", ".", "..", "a/../b", "a/.", "a\tb"})
    EXPECT_FALSE(isSafePath(path)) << path.str();
  EXPECT_FALSE(isSafePath(std::string(256, 'a')));
  std::string deep = "a";
  for (int i = 0; i < 600; ++i)
    deep += "/a";
  EXPECT_FALSE(isSafePath(deep));
}

TEST(HubListing, ReadsSizesAndHashes) {
  std::string git(40, 'a'), sha(64, 'b');
  std::vector<RemoteFile> files = llvm::cantFail(parseListing(
      R"([{"type": "directory", "path": "d", "oid": "x"},
          {"type": "file", "path": "config.json", "size": 3, "oid": ")" +
          git + R"("},
          {"type": "file", "path": "d/w", "size": 3, "oid": ")" +
          git + R"(", "lfs": {"size": 70000000000, "oid": ")" + sha + R"(", "pointerSize": 134}}])",
      "url"));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].hash, git);
  EXPECT_FALSE(files[0].isLfs());
  EXPECT_EQ(files[1].path, "d/w");
  EXPECT_EQ(files[1].size, 70000000000u);
  EXPECT_EQ(files[1].hash, sha);
  EXPECT_TRUE(files[1].isLfs());
}

TEST(HubListing, RefusesPathsThatEscape) {
  std::string hash(40, 'a');
  auto listed = [&](const std::string &path, const std::string &size, const std::string &oid) {
    return failure(parseListing(R"([{"type": "file", "path": ")" + path + R"(", "size": )" + size +
                                    R"(, "oid": ")" + oid + "\"}]",
                                "url"));
  };
  EXPECT_EQ(listed("a", "1", hash), "no error");
  EXPECT_THAT(listed("../a", "1", hash),
              HasSubstr("url: lists \"../a\"; do not use this repository"));
  EXPECT_THAT(listed("a", "-1", hash), HasSubstr("lists \"a\" without a size and a hash"));
  EXPECT_THAT(listed("a", "1.5", hash), HasSubstr("without a size and a hash"));
  EXPECT_THAT(listed("a", "1", "../x"), HasSubstr("without a size and a hash"));
  EXPECT_THAT(failure(parseListing("{}", "url")), HasSubstr("url: is not a list of files"));
  EXPECT_EQ(llvm::cantFail(parseCommit("{\"sha\": \"" + hash + "\"}", "url")), hash);
  EXPECT_THAT(failure(parseCommit("{\"sha\": \"main\"}", "url")),
              HasSubstr("url: contains no commit"));
}

std::vector<std::string> chosen(const std::vector<std::string> &paths, llvm::StringRef name) {
  return llvm::cantFail(selectFiles(paths, named(name))).files;
}

TEST(HubSelection, OfAFolder) {
  std::vector<std::string> paths = {"README.md",        "config.json",
                                    "onnx/config.json", "pytorch_model.bin",
                                    "tokenizer.model",  "additional_chat_templates/tool_use.jinja",
                                    "model.gguf",       "consolidated.safetensors",
                                    "merges.txt",       "model.safetensors.index.json"};
  Selection sharded = llvm::cantFail(selectFiles(paths, named("a/b")));
  EXPECT_EQ(sharded.index, "model.safetensors.index.json");
  EXPECT_EQ(sharded.model, "");
  EXPECT_THAT(sharded.files, ElementsAre("config.json", "tokenizer.model",
                                         "additional_chat_templates/tool_use.jinja", "merges.txt",
                                         "model.safetensors.index.json"));
  EXPECT_THAT(chosen({"config.json", "model.safetensors", "model.safetensors.index.json"}, "a/b"),
              ElementsAre("config.json", "model.safetensors"));
  EXPECT_THAT(chosen({"config.json", "pytorch_model.bin"}, "a/b"),
              ElementsAre("config.json", "pytorch_model.bin"));
  EXPECT_THAT(failure(selectFiles({"config.json"}, named("a/b"))),
              HasSubstr("a/b: has neither config.json with model.safetensors nor a GGUF file; "
                        "choose another repository"));
  EXPECT_THAT(failure(selectFiles({"model.safetensors"}, named("a/b"))), HasSubstr("has neither"));
}

TEST(HubSelection, OfGgufFiles) {
  std::vector<std::string> paths = {"m-Q4_K_M.gguf", "m.q8_0.gguf", "mmproj-Q8_0.gguf",
                                    "s/m-F16-00001-of-00002.gguf", "s/m-F16-00002-of-00002.gguf"};
  EXPECT_THAT(chosen(paths, "a/b:Q8_0"), ElementsAre("m.q8_0.gguf"));
  EXPECT_THAT(chosen(paths, "a/b:mmproj-Q8_0.gguf"), ElementsAre("mmproj-Q8_0.gguf"));
  Selection parts = llvm::cantFail(selectFiles(paths, named("a/b:f16")));
  EXPECT_THAT(parts.files, ElementsAre(paths[3], paths[4]));
  EXPECT_EQ(parts.model, paths[3]);
  EXPECT_THAT(chosen(paths, "a/b:s/m-F16-00002-of-00002.gguf"), ElementsAre(paths[3], paths[4]));
  EXPECT_THAT(failure(selectFiles(paths, named("a/b"))),
              HasSubstr("a/b: could be any of m-Q4_K_M.gguf, m.q8_0.gguf, s/m-F16-00001"));
  EXPECT_THAT(failure(selectFiles(paths, named("a/b:4_K_M"))), HasSubstr("choose one of m-Q4_K_M"));
  EXPECT_THAT(chosen({"m.gguf"}, "a/b"), ElementsAre("m.gguf"));
  paths.pop_back();
  EXPECT_THAT(failure(selectFiles(paths, named("a/b:F16"))),
              HasSubstr("s/m-F16-00002-of-00002.gguf is missing among the parts of the model; "
                        "choose another file"));
}

TEST(Http, PathsAreEscaped) {
  EXPECT_EQ(escapePath("a b/c?d#e%f+g-._~"), "a%20b/c%3Fd%23e%25f%2Bg-._~");
  EXPECT_EQ(escapePath("\xc3\xa4"), "%C3%A4");
}

TEST(Http, TheNextPageIsFound) {
  EXPECT_EQ(nextPage("<http://h/x?cursor=1>; rel=\"next\""), "http://h/x?cursor=1");
  EXPECT_EQ(nextPage("<p>; rel=\"prev\", <n>; rel=\"next\""), "n");
  EXPECT_EQ(nextPage("<p>; rel=\"prev\""), "");
  EXPECT_EQ(nextPage(""), "");
  EXPECT_EQ(nextPage("<<<"), "");
}

} // namespace
