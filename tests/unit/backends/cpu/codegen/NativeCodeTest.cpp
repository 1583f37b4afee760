//===- NativeCodeTest.cpp - objects, shared objects, undefined symbols ----===//

#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/SharedObject.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <sys/resource.h>

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

// A chain of additions is not balanced into a tree, which needs another register.
TEST(NativeCode, KeepsTheOrderOfAdditions) {
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseAssemblyString(
      "define <8 x i32> @sum(<8 x i32> %a, <8 x i32> %b, <8 x i32> %c, <8 x i32> %d) {\n"
      "  %1 = add <8 x i32> %a, %b\n  %2 = add <8 x i32> %1, %c\n  %3 = add <8 x i32> %2, %d\n"
      "  ret <8 x i32> %3 }",
      diagnostic, context);
  ASSERT_TRUE(module);
  auto machine = cantFail(createTargetMachine(cantFail(describeTarget("x86-64-v3"))));
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple());
  for (Function &function : *module)
    function.addFnAttr("target-features", "+avx2");
  auto &options = cl::getRegisteredOptions();
  ASSERT_TRUE(options.contains("x86-machine-combiner"));
  for (int time = 0; time < 2; ++time) {
    std::unique_ptr<Module> copy = CloneModule(*module);
    std::string code(cantFail(emit(*copy, *machine, CodeGenFileType::AssemblyFile)));
    size_t first = code.find("vpaddd"), second = code.find("vpaddd", first + 1);
    ASSERT_NE(second, code.npos) << code;
    // The sum so far is an operand of each addition.
    EXPECT_THAT(code.substr(first, 40), testing::HasSubstr("%ymm1, %ymm0, %ymm0")) << code;
    EXPECT_EQ(code.find("vpaddd\t%ymm3, %ymm2"), code.npos) << code;
    cl::ResetAllOptionOccurrences();
  }
}

TEST(NativeCode, RefusesNonObjects) {
  Expected<SmallVector<char, 0>> linked = linkSharedObject("no object");
  ASSERT_FALSE(bool(linked));
  EXPECT_THAT(toString(linked.takeError()),
              testing::StartsWith("the model's code cannot be linked: "));
}

TEST(NativeCode, RefusesToLinkWithoutMemoryOfItsOwn) {
  rlimit before, none;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Expected<SmallVector<char, 0>> linked = linkSharedObject("object");
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(bool(linked));
  EXPECT_EQ(toString(linked.takeError()),
            "the model's code cannot be linked: memory for the object: Too many open files; free "
            "memory or raise the limits (ulimit -v, ulimit -n)");
}

TEST(NativeCode, TranslatesOnlyStageLlvm) {
  mlir::MLIRContext mlirContext;
  mlirContext.loadDialect<mlir::func::FuncDialect>();
  mlir::ScopedDiagnosticHandler quiet(&mlirContext, [](mlir::Diagnostic &) {});
  auto module = mlir::parseSourceString<mlir::ModuleOp>("func.func @f() { return }", &mlirContext);
  ASSERT_TRUE(module);
  LLVMContext context;
  auto translated =
      translateToLlvmIr(*module, context, *cantFail(createTargetMachine(targetOf(*module))));
  ASSERT_FALSE(bool(translated));
  EXPECT_EQ(toString(translated.takeError()), "stage llvm cannot be translated to LLVM IR");
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

TEST(NativeCode, LinksObjectsLargerThanAPipe) {
  std::string code = "@table = global [400000 x i8] c\"" + std::string(400000, 'x') +
                     "\"\ndefine void @mica_forward() { ret void }";
  EXPECT_GT(shared(code).size(), 400000u);
}

} // namespace
