// What a Tokenizer is made of; shared by the files that implement it.
#pragma once

#include "backends/cpu/runtime/tokenizer/AddedTokens.h"
#include "backends/cpu/runtime/tokenizer/Model.h"
#include "backends/cpu/runtime/tokenizer/Normalizer.h"
#include "backends/cpu/runtime/tokenizer/PreTokenizer.h"
#include "backends/cpu/runtime/tokenizer/Seams.h"
#include "backends/cpu/runtime/tokenizer/Table.h"
#include "backends/cpu/runtime/tokenizer/Tokenizer.h"

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
