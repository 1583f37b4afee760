//===- ProgramOutput.cpp - the program file ------------------------------------------------------===//

#include "backends/cpu/compile/ProgramOutput.h"

#include "backends/cpu/pack/PackWeights.h"
#include "backends/cpu/program/ProgramWriter.h"

using namespace llvm;
using mica::program::ProgramWriter;
using mica::program::SectionKind;

namespace mica::cpu {

static Error toError(const rt::Status &status) {
  return status ? Error::success() : createStringError(status.error().message);
}

static Error addSection(ProgramWriter &writer, SectionKind kind, StringRef bytes) {
  return toError(writer.add(kind, std::as_bytes(std::span(bytes.data(), bytes.size()))));
}

static Error addWeights(ProgramWriter &writer, const ProgramParts &parts) {
  if (Error error = toError(writer.begin(SectionKind::Weights)))
    return error;
  auto sink = [&](ArrayRef<uint8_t> bytes) {
    return toError(writer.append(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  };
  if (Error error = packWeights(parts.weights, *parts.source, {sink, parts.progress}))
    return error;
  return toError(writer.end());
}

Error writeProgram(const ProgramParts &parts, StringRef target) {
  rt::Result<std::unique_ptr<ProgramWriter>> writer = ProgramWriter::create(target.str(), parts.launcher);
  if (!writer)
    return createStringError(writer.error().message);
  if (Error error = addSection(**writer, SectionKind::Code, parts.code))
    return error;
  if (Error error = addWeights(**writer, parts))
    return error;
  if (!parts.tokenizer.empty())
    if (Error error = toError((*writer)->add(SectionKind::Tokenizer, std::span(parts.tokenizer.data(), parts.tokenizer.size()))))
      return error;
  if (Error error = addSection(**writer, SectionKind::Manifest, parts.manifest))
    return error;
  return toError((*writer)->commit());
}

} // namespace mica::cpu
