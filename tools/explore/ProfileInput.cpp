//===- ProfileInput.cpp - profiles of programs ----------------------------===//

#include "tools/explore/ProfileInput.h"

#include "backends/runtime/profile/ProfileReport.h"
#include "frontend/support/InputError.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace mica::explore {

static constexpr StringLiteral kHint = "create one with `PROGRAM bench --profile-json FILE`";

/// Describes the problem of a test; empty if there is none.
static std::string wrongTest(const json::Value &value) {
  const json::Object *test = value.getAsObject();
  if (!test || !test->getString("test") || !test->getNumber("seconds") ||
      !test->getNumber("tokens") || !test->getObject("limits"))
    return "a test lacks `test`, `seconds`, `tokens` or `limits`";
  for (const char *key : {"seconds", "tokens"})
    if (*test->getNumber(key) <= 0)
      return ("a test lacks `" + Twine(key) + "` above 0").str();
  for (const char *key : {"gb_per_s", "gflop_per_s"})
    if (test->getObject("limits")->getNumber(key).value_or(0) <= 0)
      return ("the limits of a test lack `" + Twine(key) + "` above 0").str();
  const json::Array *kernels = test->getArray("kernels");
  if (!kernels)
    return "a test lacks `kernels`";
  for (const json::Value &each : *kernels) {
    const json::Object *kernel = each.getAsObject();
    if (!kernel || !kernel->getString("kernel"))
      return "a kernel has no name";
    for (const char *key : {"launches", "seconds", "bytes", "flops"})
      if (kernel->getNumber(key).value_or(-1) < 0)
        return ("the kernel `" + *kernel->getString("kernel") + "` lacks `" + key +
                "` of at least 0")
            .str();
    const json::Value *location = kernel->get("location");
    const json::Array *modules = location ? location->getAsArray() : nullptr;
    if (location && (!modules || !all_of(*modules, [](const json::Value &module) {
          return module.getAsString().has_value();
        })))
      return ("the `location` of the kernel `" + *kernel->getString("kernel") +
              "` is not a list of modules")
          .str();
  }
  return {};
}

Expected<json::Value> readProfile(StringRef path, uint64_t codeHash) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path);
  if (!file)
    return inputError(path, "cannot be read (" + file.getError().message() + ")",
                      "pass a file written by `PROGRAM bench --profile-json`");
  Expected<json::Value> parsed = json::parse((*file)->getBuffer());
  if (!parsed) {
    consumeError(parsed.takeError());
    return inputError(path, "is not JSON", kHint);
  }
  const json::Object *profile = parsed->getAsObject();
  std::optional<int64_t> version = profile ? profile->getInteger("mica_profile") : std::nullopt;
  if (!version)
    return inputError(path, "is not a profile of a program", kHint);
  if (*version != rt::kProfileVersion)
    return inputError(path,
                      "is a profile of version " + Twine(*version) + ", expected " +
                          Twine(rt::kProfileVersion),
                      "create it again with a program of this version");
  const json::Object *program = profile->getObject("program");
  std::optional<StringRef> code = program ? program->getString("code") : std::nullopt;
  const json::Array *tests = profile->getArray("tests");
  if (!code || !tests)
    return inputError(path, "lacks `program` or `tests`", kHint);
  if (*code != rt::codeHashText(codeHash)) {
    std::string model = program->getString("model").value_or("unknown").str(),
                weights = program->getString("weights").value_or("unknown").str();
    return inputError(path,
                      "is a profile of another program (model " + model + ", weights " + weights +
                          ", code " + code->str() + " instead of " + rt::codeHashText(codeHash) +
                          ")",
                      "pass the model and the options with which that program was compiled");
  }
  if (tests->empty())
    return inputError(path, "has no tests", kHint);
  for (const json::Value &test : *tests)
    if (std::string wrong = wrongTest(test); !wrong.empty())
      return inputError(path, "is damaged: " + wrong, kHint);
  return parsed;
}

} // namespace mica::explore
