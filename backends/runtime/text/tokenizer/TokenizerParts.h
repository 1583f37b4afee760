// The parts of a Tokenizer, shared by the files that implement it.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZERPARTS_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZERPARTS_H

#include "backends/runtime/text/tokenizer/AddedTokens.h"
#include "backends/runtime/text/tokenizer/Model.h"
#include "backends/runtime/text/tokenizer/Normalizer.h"
#include "backends/runtime/text/tokenizer/PreTokenizer.h"
#include "backends/runtime/text/tokenizer/SplitPoints.h"
#include "backends/runtime/text/tokenizer/Table.h"
#include "backends/runtime/text/tokenizer/Tokenizer.h"

#include <unordered_map>

namespace mica::rt {

struct Tokenizer::Parts {
  explicit Parts(tokenizer::Table opened)
      : table(std::move(opened)), normalizer(table), model(tokenizer::makeModel(table)),
        splitPoints(table), special(idsWith(table, tokenizer::AddedTokenFlags::special)) {}

  tokenizer::Table table;
  tokenizer::Normalizer normalizer;
  std::unique_ptr<tokenizer::Model> model;
  tokenizer::SplitPoints splitPoints;
  tokenizer::AddedTokens addedTokens;
  tokenizer::PreTokenizer preTokenizer;
  std::vector<bool> special; // per id
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZERPARTS_H
