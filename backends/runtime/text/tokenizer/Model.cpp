#include "backends/runtime/text/tokenizer/Model.h"
#include "backends/runtime/text/tokenizer/Table.h"

namespace mica::rt::tokenizer {

std::unique_ptr<Model> makeModel(const Table &table) {
  switch (table.kind) {
  case ModelKind::MergesByRank:
    return makeBpeModel(table);
  case ModelKind::MergesByScore:
    return makeSentencePieceBpe(table);
  case ModelKind::Unigram:
  case ModelKind::ExactUnigram:
    return makeUnigramModel(table);
  }
  return nullptr;
}

} // namespace mica::rt::tokenizer
