//===- Candidate.cpp - a program compared with a reference ----------------===//

#include "tools/quality/Candidate.h"

using namespace llvm;

namespace mica::tool {

Expected<Candidate> Candidate::open(StringRef path) {
  Candidate candidate;
  candidate.path = path.str();
  auto file = program::ProgramFile::open(candidate.path);
  if (!file)
    return candidate.error(file.error());
  auto manifest = rt::readManifest(*file);
  if (!manifest)
    return candidate.error(manifest.error());
  // It would have to be started by mpirun.
  if (manifest->ranks > 1)
    return candidate.error("is for " + Twine(manifest->ranks) + " ranks",
                           "pass one compiled without --shard, whose logits are the same");
  auto text = rt::ProgramTokenizer::load(*file, *manifest);
  if (!text)
    return candidate.error(text.error());
  candidate.manifest = *std::move(manifest);
  candidate.text = *std::move(text);
  candidate.weightBytes = file->layout().find(program::SectionKind::Weights)->size;
  return candidate;
}

} // namespace mica::tool
