// The tokenizer in a compiled program, written by frontend/text/tokenizer and read by the runtime.
//
// Everything is little-endian and unaligned, in this order; `str` is u32 length + bytes, `list<T>`
// is u32 count + elements:
// - header: u64 magic, u32 version, u32 bytes of the whole table
// - model: u8 ModelKind, u32 ModelFlags, i32 unknown id (-1: none), i32[256] id of each byte
// - pieces: list<u32> ascending end offsets of their bytes, str all bytes, list<u8> PieceFlags
// - scores: list<f32> one per piece, or empty (ModelKind::MergesByRank)
// - merges: list<{u32 left, u32 right, u32 merged}> in order of rank, or empty
// - normalizer: list<{u8 NormalizerKind, fields below}>
// - pre-tokenizer: list<{u8 PreTokenizerKind, fields below}>
// - added tokens: list<{i32 id, u8 AddedTokenFlags, str content}>
// - prompt: list<i32> ids before the text, list<i32> ids after it
// - decoder: u8 DecoderStart, u32 count, str stripped, str unknown's text, list<{str from, str to}>
// Pieces are stored as the bytes that they represent, also in byte-level vocabularies.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TABLEFORMAT_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TABLEFORMAT_H

#include <cstddef>
#include <cstdint>

namespace mica::rt::tokenizer {

constexpr uint64_t tableMagic = 0x314B4F544143494Dull; // "MICATOK1"
constexpr uint32_t tableVersion = 1;

/// Bounds enforced by writer and reader; published vocabularies are below a tenth of them.
constexpr uint32_t maxPieces = 1u << 22;
constexpr uint32_t maxMerges = 1u << 23;
constexpr uint32_t maxPieceBytes = 1u << 16;
constexpr uint32_t maxSteps = 64;
constexpr uint32_t maxPatternBytes = 1u << 14;
constexpr uint32_t maxCharsMapBytes = 1u << 24;
constexpr uint32_t maxCharsMapReplacement = 256; ///< bytes for one match

enum class ModelKind : uint8_t {
  MergesByRank = 1,  ///< BPE; pairs of ids are merged, lowest rank first (Hugging Face)
  MergesByScore = 2, ///< BPE; neighbors are merged when their text is a piece, highest score first
  Unigram = 3,       ///< the segmentation with the highest sum of scores (Viterbi)
  ExactUnigram = 4, ///< the same as the tokenizers package computes it: scores are list<f64>, every
                    ///< piece can be matched, byte pieces by their spelling <0xNN>
};
constexpr uint8_t lastModelKind = 4;

namespace ModelFlags {
constexpr uint32_t byteLevel =
    1; ///< the symbols that merging starts from are bytes, not characters
constexpr uint32_t byteFallback = 2; ///< an unknown character becomes the ids of its bytes
constexpr uint32_t fuseUnknown = 4;  ///< neighboring unknown characters become one unknown id
constexpr uint32_t ignoreMerges = 8; ///< a word that is a piece is not split into symbols and
                                     ///< merged
constexpr uint32_t all = 15;
} // namespace ModelFlags

namespace PieceFlags {
constexpr uint8_t normal = 0;
constexpr uint8_t unknown = 1;
constexpr uint8_t control = 2;     ///< never made from text and never printed (sentencepiece)
constexpr uint8_t userDefined = 4; ///< always kept whole (sentencepiece)
constexpr uint8_t unused = 8;      ///< may be merged through, but is split again (sentencepiece)
constexpr uint8_t byte = 16; ///< one byte of an unknown character; the piece's bytes are that byte
constexpr uint8_t unmatched = 32; ///< printed, but never made from text by the model
constexpr uint8_t all = 63;
} // namespace PieceFlags

enum class NormalizerKind : uint8_t {
  Prepend = 1,     ///< str put before text that is not empty
  Replace = 2,     ///< str literal, str replacement
  UnicodeForm = 3, ///< u8 compose, list<u32> code point and class pairs (canonical combining class
                   ///< != 0), list<u32> decompositions {code point, count, code points...}, full
                   ///< and ordered, list<u32> compositions {first, second, composed}
  SentencePiece = 4, ///< u8 SentencePieceRules, str darts trie, str zero-terminated replacements
  CharacterMap =
      5,     ///< list<u32> {code point, count, code points...}: replacements of single characters
  Strip = 6, ///< u8 left, u8 right: white space at the ends is removed
  ReplacePattern = 7, ///< str PCRE2 pattern, str replacement
  CharsMap = 8, ///< str darts trie, str zero-terminated replacements, as the tokenizers package
                ///< reads what sentencepiece has written
};
constexpr uint8_t lastNormalizerKind = 8;

namespace SentencePieceRules {
constexpr uint8_t dummyPrefix = 1;
constexpr uint8_t removeExtraSpaces = 2;
constexpr uint8_t escapeSpaces = 4;
constexpr uint8_t spaceAsSuffix = 8;
constexpr uint8_t all = 15;
} // namespace SentencePieceRules

enum class PreTokenizerKind : uint8_t {
  Split = 1,       ///< u8 SplitBehavior, u8 invert, str PCRE2 pattern
  PrefixSpace = 2, ///< a space before a segment that does not start with one
  Metaspace = 3,   ///< u8 PrependScheme, u8 split, str replacement of spaces
};
constexpr uint8_t lastPreTokenizerKind = 3;

enum class SplitBehavior : uint8_t {
  Removed = 0,
  Isolated = 1,
  MergedWithPrevious = 2,
  MergedWithNext = 3,
  Contiguous = 4,
};
constexpr uint8_t lastSplitBehavior = 4;

enum class PrependScheme : uint8_t { Never = 0, First = 1, Always = 2 };
constexpr uint8_t lastPrependScheme = 2;

namespace AddedTokenFlags {
constexpr uint8_t special = 1;     ///< not printed
constexpr uint8_t singleWord = 2;  ///< only where no word character is beside it
constexpr uint8_t stripLeft = 4;   ///< takes the white space before it
constexpr uint8_t stripRight = 8;  ///< takes the white space after it
constexpr uint8_t normalized = 16; ///< looked for in normalized text
constexpr uint8_t all = 31;
/// Not in tables: written by the chat template, see ReservedTokens.h.
constexpr uint8_t reserved = 32;
constexpr uint8_t piece = 64; ///< not in tables either: a piece, spelled as in normalized text
} // namespace AddedTokenFlags

/// What decoding removes at the start of the text: `count` times `stripped`.
enum class DecoderStart : uint8_t {
  Nothing = 0,
  Stream = 1,     ///< up to `count` times `stripped` at the start of the text
  FirstToken = 2, ///< every `stripped` of the first token, before replacements
  EachToken = 3,  ///< one `stripped` at the start of each token, until something was printed
};
constexpr uint8_t lastDecoderStart = 3;

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TABLEFORMAT_H
