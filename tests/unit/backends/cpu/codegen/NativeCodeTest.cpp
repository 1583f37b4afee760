//===- NativeCodeTest.cpp - objects, shared objects, undefined symbols ----===//

#include "backends/cpu/codegen/NativeCode.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace mica::cpu;
using testing::ElementsAre;

namespace {

SmallVector<char, 0> shared(StringRef ir) {
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseAssemblyString(ir, diagnostic, context);
  auto machine = cantFail(createTargetMachine(cantFail(describeTarget("x86-64-v3"))));
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple());
  return cantFail(linkSharedObject(cantFail(emit(*module, *machine, CodeGenFileType::ObjectFile))));
}

TEST(NativeCode, ListsUndefinedSymbols) {
  SmallVector<char, 0> elf =
      shared("declare void @b()\n declare void @a()\n"
             "define void @mica_forward() { call void @b()\n call void @a()\n ret void }");
  StringRef bytes(elf.data(), elf.size());
  EXPECT_THAT(cantFail(undefinedSymbols(bytes)), ElementsAre("a", "b"));
  EXPECT_FALSE(bool(checkUndefinedSymbols(bytes, {"a", "b", "c"})));
  EXPECT_EQ(toString(checkUndefinedSymbols(bytes, {"a"})),
            "the model's code calls b, which no program has");
}

TEST(NativeCode, RefusesWhatIsNoObject) {
  Expected<SmallVector<char, 0>> linked = linkSharedObject("no object");
  ASSERT_FALSE(bool(linked));
  EXPECT_THAT(toString(linked.takeError()),
              testing::StartsWith("the model's code cannot be linked: "));
}

TEST(NativeCode, LinksAgainAfterAFailure) {
  consumeError(linkSharedObject("no object").takeError());
  EXPECT_GT(shared("define void @mica_forward() { ret void }").size(), 0u);
}

TEST(NativeCode, LinkingNeedsNoFiles) {
  ::setenv("TMPDIR", "/nowhere", 1);
  EXPECT_GT(shared("define void @mica_forward() { ret void }").size(), 0u);
  consumeError(linkSharedObject("no object").takeError());
  ::unsetenv("TMPDIR");
}

TEST(NativeCode, LinksWhatIsLargerThanAPipe) {
  std::string code = "@table = global [400000 x i8] c\"" + std::string(400000, 'x') +
                     "\"\ndefine void @mica_forward() { ret void }";
  EXPECT_GT(shared(code).size(), 400000u);
}

} // namespace
