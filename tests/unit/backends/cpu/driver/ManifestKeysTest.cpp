//===- ManifestKeysTest.cpp - the keys that the compiler writes -----------===//
//
// ManifestTest.cpp has the same for the keys that programs read.
//
//===----------------------------------------------------------------------===//

#include "backends/runtime/abi/ManifestKeys.h"
#include "backends/cpu/driver/Compiler.h"
#include "frontend/import/ModelInput.h"

#include "tests/unit/Paths.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <set>

using namespace mlir;
using namespace mica;
using nlohmann::json;

namespace {

/// Takes the manifest of a compilation.
struct ManifestObserver : cpu::CompileObserver {
  void onPipeline(Stage, PassManager &) override {}
  llvm::Error onModule(Stage, ModuleOp) override { return llvm::Error::success(); }
  void onOptimizer(llvm::Module &, llvm::PassInstrumentationCallbacks &) override {}
  llvm::Error onCode(llvm::Module &, llvm::TargetMachine &) override {
    return llvm::Error::success();
  }
  llvm::Error onObject(StringRef, StringRef text) override {
    manifest = json::parse(text.str());
    return llvm::Error::success();
  }

  json manifest;
};

/// The manifest of a program with the model of that golden, relative to the folder of goldens.
json manifestOf(const std::string &model, cpu::CompileOptions options,
                MtpHead mtp = MtpHead::LeftOut) {
  DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  MLIRContext context(registry);
  auto input = llvm::cantFail(
      readModel(context, MICA_SOURCE_DIR "/tests/goldens/" + model, WeightsNeeded::Yes, mtp));
  ManifestObserver observer;
  options.emit = Stage::Obj;
  options.target = llvm::cantFail(cpu::describeTarget("x86-64-v3"));
  options.observer = &observer;
  auto report = cpu::compile(*input.module, nullptr, options, "");
  EXPECT_TRUE(bool(report)) << (report ? "" : llvm::toString(report.takeError()));
  return observer.manifest;
}

using Keys = std::set<std::pair<std::string, std::string>>;

/// Adds the keys of `value`, and those of the objects in it that have listed keys.
void addKeys(const json &value, const std::string &object, Keys &keys) {
  for (const json &each : value.is_array() ? value : json::array({value}))
    for (const auto &[key, inner] : each.items()) {
      keys.emplace(object, key);
      bool hasKeys = llvm::any_of(rt::kManifestKeys,
                                  [&](rt::ManifestKey listed) { return listed.object == key; });
      if (object.empty() && hasKeys)
        addKeys(inner, key, keys);
    }
}

/// Together, these programs have all optional keys.
TEST(ManifestKeys, AreThoseThatTheCompilerWrites) {
  Keys written;
  cpu::CompileOptions chat;
  chat.chatTemplate = chat.toolTemplate = "{{ bos_token }}";
  chat.specialTokens = {{"bos_token", "<s>"}};
  cpu::CompileOptions integers;
  integers.weights = Precision::Int8;
  integers.promptRows = PromptRows::Int8;
  addKeys(manifestOf("models/llama-rope-dynamic", chat), "", written); // lengths
  addKeys(manifestOf("models/gemma3-text", integers), "", written);    // windows
  addKeys(manifestOf("models/lfm2", {}), "", written);                 // states of fixed size
  addKeys(manifestOf("models/mamba2", {}), "", written);               // recurrent states
  addKeys(manifestOf("mtp/qwen3-5", {}, MtpHead::Kept), "", written);
  cpu::CompileOptions ranks;
  ranks.ranks = 3;
  addKeys(manifestOf("models/minimind2-moe", ranks), "", written);

  Keys listed;
  for (rt::ManifestKey key : rt::kManifestKeys)
    EXPECT_TRUE(listed.emplace(key.object, key.text).second) << key.text << " is listed twice";
  // They are written after the weights, which these compilations do without.
  for (rt::ManifestKey key : {rt::manifest_keys::weightBytes, rt::manifest_keys::paddingBytes,
                              rt::manifest_keys::unshardedBytes})
    EXPECT_EQ(listed.erase({"", key.text}), 1u);
  EXPECT_EQ(written, listed);
}

} // namespace
