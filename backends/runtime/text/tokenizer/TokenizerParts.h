// What a Tokenizer is made of; shared by the files that implement it.
#pragma once

#include "backends/runtime/text/tokenizer/AddedTokens.h"
#include "backends/runtime/text/tokenizer/Model.h"
#include "backends/runtime/text/tokenizer/Normalizer.h"
#include "backends/runtime/text/tokenizer/PreTokenizer.h"
#include "backends/runtime/text/tokenizer/Seams.h"
#include "backends/runtime/text/tokenizer/Table.h"
#include "backends/runtime/text/tokenizer/Tokenizer.h"

#include <unordered_map>

namespace mica::rt {

struct Tokenizer::Parts {
  explicit Parts(tokenizer::Table opened)
      : table(std::move(opened)), normalizer(table), model(tokenizer::makeModel(table)),
        seams(table), special(idsWith(table, tokenizer::AddedTokenFlags::special)) {}

  tokenizer::Table table;
  tokenizer::Normalizer normalizer;
  std::unique_ptr<tokenizer::Model> model;
  tokenizer::Seams seams;
  tokenizer::AddedTokens addedTokens;
  tokenizer::PreTokenizer preTokenizer;
  std::vector<bool> special; // per id
};

} // namespace mica::rt
