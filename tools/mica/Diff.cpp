//===- Diff.cpp - mica diff -----------------------------------------------===//

#include "tools/mica/Diff.h"

#include "frontend/support/InputError.h"
#include "tools/explore/Diff.h"
#include "tools/mica/Eval.h"
#include "tools/mica/Explore.h"
#include "tools/mica/Pull.h"
#include "tools/support/Support.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace mica::tool {

static Expected<explore::DiffSide> readSide(const ModelArguments &model) {
  explore::DiffSide side{model.model, {}, std::nullopt};
  bool program = isProgram(model.model);
  Expected<explore::Record> record = program ? recordProgram(model.model) : recordModel(model);
  if (!record)
    return record.takeError();
  Expected<json::Object> parsed = explore::parseManifestJson(record->manifest, model.model);
  if (!parsed)
    return parsed.takeError();
  side.manifest = std::move(*parsed);
  if (!program)
    side.record = std::move(*record);
  return side;
}

/// Runs `PROGRAM bench`; returns the tokens per second of each test.
static Expected<json::Object> measureSpeed(const std::string &program) {
  SmallString<128> output;
  if (std::error_code failed = sys::fs::createTemporaryFile("mica-diff", "json", output))
    return inputError("--bench", "cannot create a temporary file (" + failed.message() + ")",
                      "set TMPDIR to a folder with free space");
  FileRemover remover(output);
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(output), std::nullopt};
  SmallString<128> path(program);
  sys::fs::make_absolute(path);
  if (sys::ExecuteAndWait(path, {path, "bench", "--json", "--repeat", "3"}, std::nullopt, redirects,
                          0, 0, &message) != 0)
    return inputError(program, "cannot be measured" + Twine(message.empty() ? "" : ": ") + message,
                      "run `PROGRAM bench` to see why");
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(output);
  Expected<json::Value> parsed = json::parse(text ? (*text)->getBuffer() : StringRef());
  if (!parsed)
    return parsed.takeError();
  json::Object speeds;
  if (const json::Object *report = parsed->getAsObject())
    if (const json::Array *results = report->getArray("results"))
      for (const json::Value &each : *results)
        if (const json::Object *test = each.getAsObject())
          speeds[test->getString("test").value_or("").str()] =
              test->getNumber("tokens_per_s").value_or(0);
  return speeds;
}

static Error addSpeed(json::Object &diff, const DiffArguments &arguments) {
  Expected<json::Object> a = measureSpeed(arguments.a.model);
  if (!a)
    return a.takeError();
  Expected<json::Object> b = measureSpeed(arguments.b.model);
  if (!b)
    return b.takeError();
  json::Array speeds;
  for (const auto &[test, value] : *a)
    if (std::optional<double> other = b->getNumber(test))
      speeds.push_back(json::Object{{"test", test.str()}, {"a", value}, {"b", *other}});
  diff["speed"] = std::move(speeds);
  return Error::success();
}

static Error addDivergence(json::Object &diff, const DiffArguments &arguments) {
  EvalArguments eval;
  eval.program = arguments.b.model;
  eval.reference = arguments.a.model;
  eval.text = arguments.text;
  Expected<json::Object> result = evaluate(eval);
  if (!result)
    return result.takeError();
  diff["kl"] = *result->get("kl");
  diff["same_top"] = *result->get("same_top");
  return Error::success();
}

static Expected<std::string> textOfDiff(const DiffArguments &arguments) {
  Expected<explore::DiffSide> a = readSide(arguments.a);
  if (!a)
    return a.takeError();
  Expected<explore::DiffSide> b = readSide(arguments.b);
  if (!b)
    return b.takeError();
  json::Object diff = explore::diffOf(*a, *b, arguments.stages);
  if (!arguments.text.empty())
    if (Error error = addDivergence(diff, arguments))
      return std::move(error);
  if (arguments.bench)
    if (Error error = addSpeed(diff, arguments))
      return std::move(error);
  return arguments.json ? formatv("{0}\n", json::Value(std::move(diff))).str()
                        : explore::diffText(diff);
}

int runDiff(DiffArguments arguments) {
  for (ModelArguments *side : {&arguments.a, &arguments.b}) {
    Expected<std::string> path = modelPath(side->model);
    if (!path)
      return report(side->model, path.takeError());
    side->model = std::move(*path);
  }
  bool isProgramA = isProgram(arguments.a.model), isProgramB = isProgram(arguments.b.model);
  bool programs = isProgramA && isProgramB;
  if (std::string given = arguments.a.givenOption(); programs && !given.empty())
    return usage(notForPrograms(given), "mica diff");
  if (std::string given = arguments.a.givenOption(/*values=*/2);
      isProgramA != isProgramB && !given.empty())
    return usage(given + " has a value for " + (isProgramA ? "A" : "B") +
                     ", which is a program; pass one value, for the model",
                 "mica diff");
  if (!programs && (!arguments.text.empty() || arguments.bench))
    return usage((arguments.bench ? "--bench" : "--text") + Twine(" needs two programs"),
                 "mica diff");
  for (const ModelArguments *side : {&arguments.a, &arguments.b})
    if (!arguments.stages.empty() && isProgram(side->model))
      return report(side->model, inputError(side->model, "is a program, which has no stages",
                                            "pass the model that it was compiled from"));
  Expected<std::string> text = textOfDiff(arguments);
  if (!text)
    return report(arguments.a.model, text.takeError(),
                  {arguments.b.model, arguments.text, "--bench"});
  return print(*text);
}

} // namespace mica::tool
