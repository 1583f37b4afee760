#!/usr/bin/env python3
"""Small tokenizers for the tests, and the reference packages' results for text with them.

    make_tokenizer_goldens.py [--shared DIR]

Trains the tokenizers of tests/data/tokenizers on text generated from a seed, and writes
tests/goldens/tokenizers/NAME.json for them and for the published ones in DIR (default ../shared beside
the tree): `files` (name in a model folder -> file; `shared:` stands for DIR, `data:`
for tests/data/tokenizers), `ids` of each of TEXTS without special tokens, `decoded` of those ids,
`prompt` (the ids of the first text with special tokens), and `random` (random ids and the text
to which they decode). References: the packages `tokenizers`, `sentencepiece` and `tiktoken` of requirements.txt.
"""

import argparse
import base64
import hashlib
import io
import json
import pathlib
import random
import struct
import unittest.mock

import sentencepiece
import tiktoken
import tokenizers
from tiktoken_ext import openai_public
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import AddedToken, Regex, Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "tokenizers"
OUT = HERE / "tokenizers"
SEED = 20240817

SAMPLES = [
    "Hello, world! It's a nice day; they're here and I'll go, WE'D SAY.",
    "The quick brown fox jumps over the lazy dog 1234567890 times.",
    " leading space", "trailing space ", "  two   three    four     spaces", "\ttab\tand\nnewline\n\n\n",
    "a\r\nb\r\n\r\nc \n d  \n  e", "   \n   ", "x", " ", "\n", "...!?---", "a.b,c;d:e",
    "int main(int argc, char **argv) {\n    return argc > 1 ? 0x1F : -1; // done\n}\n",
    "def f(x):\n\treturn [i**2 for i in range(x) if i % 3 == 0]\n",
    "https://example.org/a/b?c=d&e=f#g user@example.com", "3.14159 1,000,000 2024-08-17T12:34:56Z 007",
    "Größe, naïve café, Ærøskøbing, façade, Ångström", "Привет, мир! Как дела?", "Γειά σου Κόσμε",
    "שלום עולם", "مرحبا بالعالم ١٢٣", "नमस्ते दुनिया १२३", "你好，世界！今天天气很好。", "こんにちは世界、テスト",
    "안녕하세요 세계", "สวัสดีชาวโลก", "កាន់តែពិសេស", "🦙.cpp 🚀 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪", "e\u0301 vs é, a\u0328\u0301 o\u0302\u0323",
    "ﬁne ½ ① Ⅷ ㎏ Ａｂｃ ﬀ", "zero\u200bwidth\u00a0nbsp\u2003em\u3000wide\u202fnarrow\u180emvs\u0085nel",
    "\u1100\u1161\u11a8 \uac01 \ud7a3", "ſtraße ſ's 'S 'ſ I'M", "\u0000nul \u0007bell \u001b[0m esc \u007f",
    "a\u0300\u0301\u0302\u0315\u035c\u0345b", "\ufeffbom \ufffd replacement \uffff",
    "<|endoftext|>text<|im_start|>user\nhi<|im_end|>", "<s>[INST] hi [/INST]</s>", "<unk><0x0A>▁under▁",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "One day, Tim", "The cat", "word" * 20, "1" * 41, "!" * 37, " " * 50 + "x", "\n" * 20,
    "a <mask> b <tool> c<tool>d", "mid<word>dle <word> end <word>", "[REFERENCE_DOC_3] is kept whole[REFERENCE_DOC_12]",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𓀀 \U0010ffff", "don't can't won't y'all'd've it's It'S", "",
]


def mixed_texts(count, rng):
    """Texts of random characters from many ranges, which no author would write."""
    ranges = [(32, 126), (32, 32), (9, 13), (48, 57), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x900, 0x97F),
              (0x1100, 0x11FF), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2150, 0x218F), (0x3040, 0x30FF),
              (0x4E00, 0x4FFF), (0xAC00, 0xAFFF), (0xF900, 0xFAFF), (0xFF00, 0xFF5E), (0x1F300, 0x1F5FF), (97, 122)]
    texts = []
    for _ in range(count):
        text = ""
        while len(text) < rng.randint(5, 60):
            low, high = rng.choice(ranges)
            text += "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 5)))
        texts.append(text)
    return texts


TEXTS = SAMPLES + mixed_texts(24, random.Random(SEED))


def corpus():
    """Training text: sentences of made-up words, and the samples."""
    rng = random.Random(SEED)
    syllables = [c + v + e for c in "bcdfghlmnprstw" for v in "aeiou" for e in ("", "n", "s", "r")]
    words = ["".join(rng.choice(syllables) for _ in range(rng.randint(1, 3))) for _ in range(300)]
    lines = [" ".join(rng.choice(words) for _ in range(rng.randint(3, 12))) + rng.choice(".!?") for _ in range(600)]
    return lines + [line for line in SAMPLES if line.strip() and "\0" not in line and "<" not in line] * 4


QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
         r"\s+(?!\S)|\s+")
# Marks belong to letters.
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+", 1).replace(r"[^\s\p{L}\p{N}]+", r"[^\s\p{L}\p{M}\p{N}]+", 1)
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)


def byte_level(size, pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  special_tokens=["<|endoftext|>", "<|begin|>"], show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2_kin():
    tokenizer = byte_level(600, pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def qwen2_kin():
    tokenizer = byte_level(600, split_then_bytes(QWEN2), normalizers.NFC())
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, normalized=False),
                          AddedToken("<tool>", rstrip=True, normalized=True),
                          AddedToken("<word>", single_word=True, normalized=False),
                          AddedToken("é,", normalized=True)])
    return tokenizer


def qwen35_kin():
    """Similar to Qwen3.5's; `<think>` is an added token that is not special."""
    tokenizer = byte_level(600, split_then_bytes(QWEN35), normalizers.NFC())
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    return tokenizer


def llama3_kin():
    tokenizer = byte_level(600, split_then_bytes(LLAMA3))
    state = json.loads(tokenizer.to_str())
    state["model"]["ignore_merges"] = True
    tokenizer = Tokenizer.from_str(json.dumps(state))
    begin = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A $B",
                                       special_tokens=[("<|begin|>", begin)])])
    return tokenizer


def digits_kin():
    return byte_level(500, pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("contiguous"),
         pre_tokenizers.Split("lo", "merged_with_previous"), pre_tokenizers.Split(Regex("[A-Z]"), "merged_with_next"),
         pre_tokenizers.ByteLevel(add_prefix_space=False)]))


def falcon_kin():
    return byte_level(500, pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
         pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))


def whitespace_kin():
    return byte_level(500, pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), normalizers.NFD())


def with_byte_pieces(special, prepend_scheme, first=""):
    """BPE within words, which include the space before them, with pieces for every byte and for 90 characters, beginning with `first`."""
    letters = list(first) + sorted(set("".join(corpus())) - set("\n\t\r") - set(chr(c) for c in range(0x600, 0x20000)))
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme)
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, limit_alphabet=90, initial_alphabet=letters[:90],
                                  special_tokens=special + [f"<0x{b:02X}>" for b in range(256)])
    tokenizer.train_from_iterator(corpus(), trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["id"] < len(special)]
    return Tokenizer.from_str(json.dumps(state))


def byte_fallback(metaspace):
    """Similar to Llama-2's; `metaspace`: with that pre-tokenizer and decoder, otherwise with normalizers."""
    tokenizer = with_byte_pieces(["<unk>", "<s>", "</s>"], "first")
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
    else:
        tokenizer.pre_tokenizer = None
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def gemma4_kin():
    """Similar to Gemma 3's and 4's: no space before the text, a pre-tokenizer that finds no spaces after the normalizer, and added tokens for
    repeated characters and parts of turns."""
    tokenizer = with_byte_pieces(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"], "never", "▁")
    state = json.loads(tokenizer.to_str())
    # Runs of spaces are merged before all others, and are added tokens as well.
    runs = ("▁▁", "▁▁▁▁")
    state["model"]["vocab"] |= {run: 700 + number for number, run in enumerate(runs)}
    state["model"]["merges"] = [[run[: len(run) // 2]] * 2 for run in runs] + state["model"]["merges"]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("\n\n", "\n\n\n", *runs, "<table>")])
    tokenizer.add_special_tokens(["<|turn>", "<turn|>", '<|"|>'])
    bos = tokenizer.token_to_id("<bos>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", bos)])
    return tokenizer


def unigram_kin(byte_fallback):
    """Unigram in the tokenizers package's form, after the normalizers of older encoders."""
    tokenizer = Tokenizer(models.Unigram())
    # Lower case is only used without byte fallback: the package supports letters of a later Unicode version than ICU.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Strip(left=not byte_fallback), normalizers.NFKD() if byte_fallback else normalizers.NFKC()]
        + ([] if byte_fallback else [normalizers.Lowercase()]) + [normalizers.Replace(Regex(" {2,}|\\.{3,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always" if byte_fallback else "first")
    pieces = [f"<0x{b:02X}>" for b in range(256)] if byte_fallback else []
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=400, show_progress=False, unk_token="<unk>",
                                                                    special_tokens=["<unk>", "<s>"]))
    state = json.loads(tokenizer.to_str())
    state["model"]["vocab"] += [[piece, 0.0] for piece in pieces]
    state["model"]["byte_fallback"] = byte_fallback
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)]) if byte_fallback else decoders.Metaspace()
    return tokenizer


def precompiled_kin():
    """Similar to XGLM's and XLM-R's: sentencepiece's character map as read by the tokenizers package."""
    proto = (DATA / "sp_unigram.model").read_bytes()
    map_bytes = normalizer_map(proto)
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(map_bytes), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=400, show_progress=False, unk_token="<unk>",
                                                                    special_tokens=["<s>", "<pad>", "</s>", "<unk>"]))
    tokenizer.post_processor = processors.TemplateProcessing(single="</s> $A", special_tokens=[("</s>", 2)])
    return tokenizer


def normalizer_map(proto):
    """The character map of a tokenizer.model: field 2 of the message in field 3."""
    def fields(data):
        at = 0
        def number():
            nonlocal at
            value, shift = 0, 0
            while True:
                byte, at = data[at], at + 1
                value, shift = value | (byte & 127) << shift, shift + 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = number()
            size = {0: lambda: 0, 1: lambda: 8, 2: number, 5: lambda: 4}[tag & 7]()
            if tag & 7 == 0:
                number()
            yield tag >> 3, data[at:at + size]
            at += size
    spec = dict(fields(proto))[3]
    return dict(fields(spec))[2]


def sentencepiece_model(**options):
    """Bytes of a tokenizer.model. Single-threaded: training must be reproducible."""
    model = io.BytesIO()
    own = {"user_defined_symbols": ["<tool>", "ab", "[REFERENCE_DOC_3]"], **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, num_threads=1, minloglevel=2, hard_vocab_limit=False, **own)
    return model.getvalue()


def rank_file():
    """A rank file of the tiktoken package: the pieces of qwen2_kin, in the order of their ids."""
    alphabet = bytes_of_alphabet()
    vocab = sorted(qwen2_kin().get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
    pieces = [bytes(alphabet[c] for c in piece) for piece, _ in vocab if not piece.startswith("<|")]
    return b"".join(base64.b64encode(piece) + b" %d\n" % rank for rank, piece in enumerate(pieces))


def bytes_of_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


# Replaces code that uses tiktoken: class or file -> pattern, special tokens by their distance from the last rank.
TIKTOKEN = {
    "qwen.tiktoken": (QWEN2, {"<|endoftext|>": 1, "<|im_start|>": 2, "<|im_end|>": 3, **{f"<|extra_{i}|>": 4 + i for i in range(205)}}),
    "cl100k_base.tiktoken": (openai_public.cl100k_base, {"<|endoftext|>": 2, "<|fim_prefix|>": 3, "<|fim_middle|>": 4,
                                                         "<|fim_suffix|>": 5, "<|endofprompt|>": 21}),
    "o200k_base.tiktoken": (openai_public.o200k_base, {"<|endoftext|>": 2, "<|endofprompt|>": 21})}


class Tiktoken:
    """Qwen's code composes by Python's Unicode version; here it is that of the package tokenizers."""

    byte_fallback = False

    def __init__(self, name, path):
        pattern, special = TIKTOKEN[name]
        ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in path.read_bytes().splitlines()}
        if callable(pattern):
            with unittest.mock.patch.object(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks):
                pattern = pattern()["pat_str"]
        self.engine = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks,
                                        special_tokens={token: len(ranks) - 1 + offset for token, offset in special.items()})
        self.special, self.size, self.composes = set(self.engine._special_tokens.values()), len(ranks), name == "qwen.tiktoken"

    def encode(self, text):
        return self.engine.encode(normalizers.NFC().normalize_str(text) if self.composes else text, allowed_special="all")

    prompt = encode

    def decode(self, ids):
        return self.engine.decode([i for i in ids if i not in self.special])


SENTENCEPIECE = ("sp_bpe", "sp_unigram", "sp_unigram_bytes", "sp_unigram_runs", "sp_bpe_suffix")


def isolated(*patterns):
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


DIGITS = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
LETTERS = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]%s[\p{Ll}\p{Lm}\p{Lo}\p{M}]%s"
ENDINGS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# The meaning of names in tokenizer.ggml.pre, from tokenizer.json of those models.
GGUF_NAMES = {
    "bloom": [*isolated(" ?[^(\\s|[.,!?…。，、।۔،])]+"), BYTES],
    "codeshell": DIGITS, "command-r": DIGITS, "refact": DIGITS, "smollm": DIGITS, "starcoder": DIGITS,
    "deepseek-coder": [*isolated("[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+"), pre_tokenizers.Digits(individual_digits=True), BYTES],
    "deepseek-v3": [*isolated("\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
                              "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"), BYTES],
    "gpt-2": [pre_tokenizers.ByteLevel(add_prefix_space=False)], "phi-2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "qwen2": [*isolated(QWEN2), BYTES], "deepseek-r1-qwen": [*isolated(QWEN2), BYTES],
    "llama-bpe": [*isolated(LLAMA3), BYTES], "llama3": [*isolated(LLAMA3), BYTES], "llama-v3": [*isolated(LLAMA3), BYTES],
    "tekken": [*isolated(LETTERS % ("*", "+") + "|" + LETTERS % ("+", "*") + r"|\p{N}|" + ENDINGS), BYTES]}
for NAME in ("gpt-4o", "llama4"):
    GGUF_NAMES[NAME] = [*isolated("|".join(LETTERS % marks + "(?i:'s|'t|'re|'ve|'m|'ll|'d)?" for marks in (("*", "+"), ("+", "*")))
                                  + r"|\p{N}{1,3}|" + ENDINGS), BYTES]


CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
# The letters of deepseek-llm as ranges (first, last).
CASED = """41 5A 61 7A B5 B5 C0 D6 D8 F6 F8 1BA 1BC 1BF 1C4 293 295 2AF 370 373 376 377 37B 37D 37F 37F 386 386 388 38A 38C
38C 38E 3A1 3A3 3F5 3F7 481 48A 52F 531 556 10A0 10C5 13A0 13F5 13F8 13FD 1C90 1CBA 1CBD 1CBF 1D00 1D2B 1D6B 1D77 1D79 1D9A
1E00 1F15 1F18 1F1D 1F20 1F45 1F48 1F4D 1F50 1F57 1F59 1F59 1F5B 1F5B 1F5D 1F5D 1F5F 1F7D 1F80 1FB4 1FB6 1FBC 1FBE 1FBE 1FC2
1FC4 1FC6 1FCC 1FD0 1FD3 1FD6 1FDB 1FE0 1FEC 1FF2 1FF4 1FF6 1FFC 2102 2102 2107 2107 210A 2113 2115 2115 2119 211D 2124 2124
2126 2126 2128 2128 212A 212D 212F 2134 2139 2139 213C 213F 2145 2149 214E 214E 2183 2184 2C00 2C7B 2C7E 2CE4 2CEB 2CEE 2CF2
2CF3 A640 A66D A680 A69B A722 A76F A771 A787 A78B A78E AB70 ABBF FB00 FB06 FB13 FB17 FF21 FF3A FF41 FF5A 10400 1044F 104B0
104D3 104D8 104FB 10C80 10CB2 10CC0 10CF2 118A0 118DF 1E900 1E943""".split()
LETTERS_WITH_CASE = "".join(f"{chr(int(a, 16))}-{chr(int(b, 16))}" for a, b in zip(CASED[::2], CASED[1::2]))
SPACES = "".join(rf"\s{{{n}}}(?!\S)|" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
GGUF_NAMES |= {
    "deepseek-llm": [*isolated("[\r\n]", f"\\s?[{LETTERS_WITH_CASE}]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
                               "[一-龥ࠀ-一가-퟿]+", "\\p{N}+"), BYTES],
    "qwen35": [*isolated(QWEN35), BYTES],
    # In its tokenizer.json, ByteLevel is second, so that later steps see the spelling of bytes, in which digits are ASCII. Bytes
    # spelled as numbers would be split too, which makes no difference to its vocabulary.
    "falcon": [pre_tokenizers.Punctuation("contiguous"), *isolated(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
               *isolated("[0-9]+", "[0-9][0-9][0-9]"), BYTES],
    "viking": [*isolated(" ?[^(\\s|[.,!?…。，、।۔،])]+", r"\p{N}"), BYTES],
    "bailingmoe": [*isolated(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"), BYTES],
    "seed-coder": [*isolated(CONTRACTIONS + "[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|"
                             "\\s+(?!\\S)|\\s+"), BYTES],
    "exaone-moe": [*isolated(CONTRACTIONS + r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|"
                             r"\s*[\r\n]|\s+(?!\S)|\s+"), BYTES],
    "jais-2": [*isolated(LLAMA3.replace(r"\s+(?!\S)|\s+", SPACES + r"\s{1}")), BYTES],
    "minicpm5": [*isolated(r"\p{N}{1,3}", QWEN2.replace(r"\p{N}|", r"\p{N}+|", 1)), BYTES],
    "laguna": [*isolated("[^\n]+|[\n]+", QWEN2), BYTES]}
SAME_AS = {
    "bloom": ("poro-chat", "gpt3-finnish"), "refact": ("exaone", "minerva-7b", "mellum2"),
    "gpt-2": ("jais", "trillion", "granite-docling", "exaone4", "gigachat", "a.x-4.0", "mellum", "mpt", "olmo"),
    "llama3": ("dbrx", "smaug-bpe", "glm4", "chatglm-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
    "qwen2": ("stablelm2", "megrez", "hunyuan", "solar-open", "grok-2"), "deepseek-v3": ("hunyuan-dense", "joyai-llm"),
    "gpt-4o": ("kanana2", "minimax-m2"), "bailingmoe": ("bailingmoe2", "llada-moe")}
GGUF_NAMES |= {name: GGUF_NAMES[like] for like, names in SAME_AS.items() for name in names}
TAKES_PIECES = ("llama-bpe", "llama3", "llama-v3", "tekken", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "minicpm5")
COMPOSES = ("qwen2", "deepseek-r1-qwen", "command-r", "stablelm2", "qwen35", "mpt", "olmo")


def whole():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = BYTES, decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXTS * 8, trainers.BpeTrainer(vocab_size=1100, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                                                 max_token_length=12, show_progress=False))
    return tokenizer


def gguf_names():
    """Name -> MD5 of the ids of all TEXTS (i32, little-endian) by whole.json, whose pieces ignore word boundaries."""
    digests = {}
    for name, steps in sorted(GGUF_NAMES.items()):
        state = json.loads((DATA / "whole.json").read_text())
        state["model"]["ignore_merges"] = name in TAKES_PIECES
        tokenizer = Tokenizer.from_str(json.dumps(state))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
        if name in COMPOSES:
            tokenizer.normalizer = normalizers.NFC()
        ids = [i for text in TEXTS for i in tokenizer.encode(text, add_special_tokens=False).ids]
        digests[name] = hashlib.md5(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
    return digests


def train(data):
    data.mkdir(parents=True, exist_ok=True)
    made = {"gpt2_kin": gpt2_kin(), "qwen2_kin": qwen2_kin(), "qwen35_kin": qwen35_kin(), "llama3_kin": llama3_kin(),
            "gemma4_kin": gemma4_kin(), "digits_kin": digits_kin(), "falcon_kin": falcon_kin(), "whitespace_kin": whitespace_kin(),
            "llama2_kin": byte_fallback(metaspace=False), "metaspace_kin": byte_fallback(metaspace=True),
            "unigram_kin": unigram_kin(byte_fallback=False), "unigram_bytes_kin": unigram_kin(byte_fallback=True)}
    for name, tokenizer in made.items():
        # Indented as in published files, but with each merge on one line.
        (data / f"{name}.json").write_text(tokenizer.to_str(pretty=False))
    (data / "whole.json").write_text(whole().to_str())
    (data / "rank_kin.tiktoken").write_bytes(rank_file())
    rules = data / "charsmap.tsv"  # a few rows of NFKC and one of ours: two kinds of capital letters
    rows = {"ﬁ": "fi", "½": "1⁄2", "①": "1", "Ａ": "A", "ｂ": "b", "e\u0301": "é", "\u00a0": " ", "\u3000": " ", "\u200b": ""}
    rules.write_text("".join(" ".join(f"{ord(c):04X}" for c in key) + "\t" + " ".join(f"{ord(c):04X}" for c in value) + "\n"
                             for key, value in rows.items()))
    models_made = {
        "sp_bpe": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity"),
        "sp_unigram": dict(model_type="unigram", vocab_size=500, byte_fallback=False, character_coverage=0.98,
                           normalization_rule_tsv=str(rules)),
        "sp_unigram_bytes": dict(model_type="unigram", vocab_size=700, byte_fallback=True, add_dummy_prefix=False,
                                 remove_extra_whitespaces=False, normalization_rule_name="identity"),
        # Many ways to split a run of one character, with sums that differ by rounding.
        "sp_unigram_runs": dict(model_type="unigram", vocab_size=400, byte_fallback=False, remove_extra_whitespaces=False,
                                normalization_rule_name="identity",
                                user_defined_symbols=["aa", "aaaa", "--", "---", "==", "00", "000", "the", "▁▁", "中中", "!!", "__"]),
        "sp_bpe_suffix": dict(model_type="bpe", vocab_size=400, byte_fallback=False,
                              treat_whitespace_as_suffix=True, normalization_rule_tsv=str(rules)),
    }
    for name, options in models_made.items():
        (data / f"{name}.model").write_bytes(sentencepiece_model(**options))
    rules.unlink()
    (data / "precompiled_kin.json").write_text(precompiled_kin().to_str(pretty=False))


def all_files():
    """Name of a tokenizer -> its files, including published ones."""
    trained = sorted(path.stem for path in DATA.glob("*_kin.json"))
    return {**{name: {"tokenizer.json": f"data:{name}.json"} for name in trained},
            **{name: {"tokenizer.model": f"data:{name}.model"} for name in SENTENCEPIECE},
            **{name.replace(".", "_"): {name: "data:rank_kin.tiktoken"} for name in TIKTOKEN}, **PUBLISHED}


PUBLISHED = {
    "gpt2": {"tokenizer.json": "shared:tokenizers/gpt2_tokenizer.json"},
    "smollm": {"tokenizer.json": "shared:tokenizers/smollm_tokenizer.json",
               "tokenizer_config.json": "shared:tokenizers/smollm_tokenizer_config.json"},
    "minimind": {"tokenizer.json": "shared:tokenizers/minimind_tokenizer.json",
                 "tokenizer_config.json": "shared:tokenizers/minimind_tokenizer_config.json"},
    "mistral_v1": {"tokenizer.model": "shared:tokenizers/mistral_v1_tokenizer.model"},
    "mistral_v3": {"tokenizer.model": "shared:tokenizers/mistral_v3_tokenizer.model"},
    "stories260K": {"tokenizer.model": "shared:models/stories260K/tokenizer.model"},
    "qwen2": {"vocab.json": "shared:tokenizers/qwen2_vocab.json", "merges.txt": "shared:tokenizers/qwen2_merges.txt",
              "tokenizer_config.json": "shared:tokenizers/qwen3_tokenizer_config.json"},
}


class HuggingFace:
    def __init__(self, tokenizer):
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer, self.size = tokenizer, tokenizer.get_vocab_size()
        self.byte_fallback = "ByteFallback" in str(tokenizer.decoder)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def prompt(self, text):
        return self.tokenizer.encode(text).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids)


class SentencePiece:
    byte_fallback = False

    def __init__(self, path):
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.size = self.processor.get_piece_size()

    def encode(self, text):
        return self.processor.encode(text)

    def prompt(self, text):  # transformers' LlamaTokenizer
        return [self.processor.bos_id()] + self.processor.encode(text)

    def decode(self, ids):
        return self.processor.decode(ids)


def qwen2(vocab, merges, config):
    pairs = [tuple(line.split(" ")) for line in merges.read_text().split("\n") if line and not line.startswith("#version")]
    tokenizer = Tokenizer(models.BPE(json.loads(vocab.read_text()), pairs))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split_then_bytes(QWEN2)
    tokenizer.decoder = decoders.ByteLevel()
    for _, token in sorted(json.loads(config.read_text())["added_tokens_decoder"].items(), key=lambda item: int(item[0])):
        flags = {key: token[key] for key in ("single_word", "lstrip", "rstrip", "normalized")}
        (tokenizer.add_special_tokens if token["special"] else tokenizer.add_tokens)([AddedToken(token["content"], **flags)])
    return tokenizer


def reference(files):
    for name in TIKTOKEN:
        if name in files:
            return Tiktoken(name, files[name])
    if "tokenizer.model" in files:
        return SentencePiece(files["tokenizer.model"])
    if "tokenizer.json" in files:
        return HuggingFace(Tokenizer.from_file(str(files["tokenizer.json"])))
    return HuggingFace(qwen2(files["vocab.json"], files["merges.txt"], files["tokenizer_config.json"]))


def golden(name, files, paths, texts=TEXTS):
    engine = reference(paths)
    rng = random.Random(f"{SEED} {name}")
    drawn = [[rng.randrange(engine.size) for _ in range(12)] for _ in range(0 if engine.byte_fallback else 12)]
    ids = [engine.encode(text) for text in texts]
    return {"files": files, "ids": ids, "decoded": [engine.decode(row) for row in ids], "prompt": engine.prompt(texts[0]),
            "random": [{"ids": row, "text": engine.decode(row)} for row in drawn]}


def write(path, value):
    """JSON with one text or one list of ids per line."""
    lines = []
    for key, item in value.items():
        rows = [json.dumps(row, ensure_ascii=True) for row in item] if isinstance(item, list) and key != "prompt" else None
        body = "[\n" + ",\n".join(rows) + "\n]" if rows else json.dumps(item, ensure_ascii=True)
        lines.append(f'{json.dumps(key)}: {body}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, default=HERE.parents[1] / ".." / "shared")
    arguments = parser.parse_args()
    roots = {"data": DATA, "shared": arguments.shared}
    OUT.mkdir(exist_ok=True)
    write(OUT / "texts.json", {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__,
                               "texts": TEXTS})
    train(DATA)
    write(OUT / "gguf_names.json", gguf_names())
    for name, files in all_files().items():
        paths = {key: roots[value.split(":")[0]] / value.split(":")[1] for key, value in files.items()}
        if all(path.exists() for path in paths.values()):
            write(OUT / f"{name}.json", golden(name, files, paths))
        else:
            print(f"{name}: left as it is, its files are missing")


if __name__ == "__main__":
    main()
