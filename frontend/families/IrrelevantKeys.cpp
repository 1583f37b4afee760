#include "frontend/families/IrrelevantKeys.h"

#include "llvm/Support/GlobPattern.h"

namespace mica {
namespace {

using namespace reasons;

constexpr llvm::StringLiteral training = "only affects training";
constexpr llvm::StringLiteral outputs = "selects additional outputs of Python code";
constexpr llvm::StringLiteral classification = "belongs to classification heads";
constexpr llvm::StringLiteral tokenizer = "belongs to the tokenizer, which has its own files";
constexpr llvm::StringLiteral generation = "belongs to text generation; see generation_config.json";
constexpr llvm::StringLiteral otherShapes = "belongs to encoder-decoder models";
constexpr llvm::StringLiteral browser = "configures a browser's runtime";

/// All keys that are known for every family but not read.
constexpr IgnoredKeyRow ignoredKeys[] = {
    {"_name_or_path", bookkeeping},
    {"_attn_implementation", implementation},
    {"_attn_implementation_autoset", implementation},
    {"_commit_hash", bookkeeping},
    {"architectures", used},
    {"attention_dropout", training},
    {"attn_implementation", implementation},
    {"auto_map", bookkeeping},
    {"activation_dropout", training},
    {"attn_pdrop", training},
    {"aux_loss_alpha", training},
    {"bad_words_ids", generation},
    {"begin_suppress_tokens", generation},
    {"cache_implementation", implementation},
    {"chunk_size_feed_forward", implementation},
    {"classifier_dropout", training},
    {"cross_attention_hidden_size", otherShapes},
    {"decoder_start_token_id", otherShapes},
    {"diversity_penalty", generation},
    {"do_sample", generation},
    {"dropout", training},
    {"early_stopping", generation},
    {"ep_size", implementation},
    {"embd_pdrop", training},
    {"embedding_dropout", training},
    {"encoder_no_repeat_ngram_size", generation},
    {"exponential_decay_length_penalty", generation},
    {"finetuning_task", bookkeeping},
    {"forced_bos_token_id", generation},
    {"forced_eos_token_id", generation},
    {"gradient_checkpointing", training},
    {"hidden_dropout", training},
    {"id2label", classification},
    {"initializer_range", training},
    {"init_std", training},
    {"is_decoder", otherShapes},
    {"label2id", classification},
    {"layerdrop", training},
    {"length_penalty", generation},
    {"mask_value", "masked keys have zero weight, however the mask is written"},
    {"max_length", generation},
    {"min_length", generation},
    {"model_type", used},
    {"name_or_path", bookkeeping},
    {"no_repeat_ngram_size", generation},
    {"num_beam_groups", generation},
    {"num_beams", generation},
    {"num_labels", classification},
    {"num_return_sequences", generation},
    {"output_attentions", outputs},
    {"output_hidden_states", outputs},
    {"output_router_logits", outputs},
    {"output_scores", outputs},
    {"pad_token_id", "batches are not padded"},
    {"prefix", tokenizer},
    {"problem_type", classification},
    {"remove_invalid_values", generation},
    {"repetition_penalty", generation},
    {"resid_pdrop", training},
    {"residual_dropout", training},
    {"return_dict", outputs},
    {"return_dict_in_generate", outputs},
    {"router_aux_loss_coef", training},
    {"router_jitter_noise", training},
    {"sep_token_id", tokenizer},
    {"seq_aux", training},
    {"summary_activation", classification},
    {"summary_first_dropout", classification},
    {"summary_proj_to_labels", classification},
    {"summary_type", classification},
    {"summary_use_proj", classification},
    {"suppress_tokens", generation},
    {"task_specific_params", generation},
    {"temperature", generation},
    {"tf_legacy_loss", training},
    {"tie_encoder_decoder", otherShapes},
    {"tokenizer_class", tokenizer},
    {"top_k", generation},
    {"top_p", generation},
    {"torchscript", bookkeeping},
    {"transformers.js_config", browser},
    {"transformers_version", bookkeeping},
    {"typical_p", generation},
    {"unk_token_id", tokenizer},
    {"unsloth_fixed", bookkeeping},
    {"unsloth_version", bookkeeping},
    {"use_bfloat16", training},
    {"use_cache", "the cache is always used"},
};

/// All tensors that are known and ignored. In patterns, a star matches anything.
struct TensorRow {
  llvm::StringLiteral pattern, reason;
};

constexpr llvm::StringLiteral ropeFactors =
    "holds the scaling factors of rope, which are read with its scaling";
constexpr llvm::StringLiteral ropeTable = "table of rope, which is computed from the config";
constexpr llvm::StringLiteral causalMask = "causal mask, which attention implies";

constexpr llvm::StringLiteral laterTokens = "is for multi-token prediction (MTP)";
constexpr llvm::StringLiteral vision = "belongs to the vision encoder, which is left out";
constexpr llvm::StringLiteral audio = "belongs to the audio encoder, which is left out";

constexpr TensorRow tensorRows[] = {
    {"mtp.*", laterTokens},
    {"model.visual.*", vision},
    {"model.vision_tower.*", vision},
    {"model.embed_vision.*", vision},
    {"model.audio_tower.*", audio},
    {"model.embed_audio.*", audio},
    {"*.rotary_emb.inv_freq", ropeTable},
    {"*.attention.rope.freqs", ropeTable},
    {"rope.freqs", ropeTable},
    {"rope_freqs.weight", ropeFactors},
    {"rope_factors_short.weight", ropeFactors},
    {"rope_factors_long.weight", ropeFactors},
    {"pos_cis", ropeTable},
    {"*freqs_cis", ropeTable},
    {"model.freqs_cos", ropeTable},
    {"model.freqs_sin", ropeTable},
    {"layers.*.attention.mask", causalMask},
    {"h.*.attn.bias", causalMask},
    {"h.*.attn.masked_bias", causalMask},
    {"transformer.h.*.attn.bias", causalMask},
    {"transformer.h.*.attn.masked_bias", causalMask},
    {"gpt_neox.layers.*.attention.bias", causalMask},
    {"gpt_neox.layers.*.attention.masked_bias", causalMask},
};

} // namespace

llvm::ArrayRef<IgnoredKeyRow> commonIgnoredKeys() { return ignoredKeys; }

std::optional<llvm::StringRef> reasonTensorIsIrrelevant(llvm::StringRef name) {
  for (const TensorRow &row : tensorRows)
    if (auto pattern = llvm::GlobPattern::create(row.pattern); pattern && pattern->match(name))
      return row.reason;
    else if (!pattern)
      llvm::consumeError(pattern.takeError());
  return std::nullopt;
}

} // namespace mica
