#!/usr/bin/env python3
"""Small tokenizers for the tests, and what the reference packages make of text with them.

    make_tokenizer_goldens.py [--shared DIR]

Trains the tokenizers of tests/data/tokenizers on text generated from a seed, and writes
tests/goldens/tokenizers/NAME.json for them and, where DIR (default ../shared beside the tree) holds
them, for published ones: `files` (name in a model folder -> file; `shared:` stands for DIR, `data:`
for tests/data/tokenizers), `ids` of each of TEXTS without special tokens, `decoded` of those ids,
`prompt` (the ids of the first text with special tokens), and `random` (ids drawn at random and what
they decode to). References: the packages `tokenizers` and `sentencepiece` of requirements.txt.
"""

import argparse
import io
import json
import pathlib
import random

import sentencepiece
import tokenizers
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
    """Texts of random characters from many ranges: what nobody would think of writing down."""
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


def byte_fallback(metaspace):
    """Llama-2's kin; `metaspace`: written with that pre-tokenizer and decoder, else with normalisers."""
    letters = sorted(set("".join(corpus())) - set("\n\t\r") - set(chr(c) for c in range(0x600, 0x20000)))
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, limit_alphabet=90, initial_alphabet=letters[:90],
                                  special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    tokenizer.train_from_iterator(corpus(), trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(state))
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


def unigram_kin(byte_fallback):
    """Unigram as the tokenizers package has it, behind the normalisers of old encoders."""
    tokenizer = Tokenizer(models.Unigram())
    # Lower case is left to the one without bytes: the package knows letters of a later Unicode than ICU does.
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


def sentencepiece_model(**options):
    """Bytes of a tokenizer.model. Single-threaded: training must give the same bytes again."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, num_threads=1, minloglevel=2, hard_vocab_limit=False,
        user_defined_symbols=["<tool>", "ab", "[REFERENCE_DOC_3]"], **options)
    return model.getvalue()


SENTENCEPIECE = ("sp_bpe", "sp_unigram", "sp_unigram_bytes", "sp_bpe_suffix")


def train(data):
    data.mkdir(parents=True, exist_ok=True)
    made = {"gpt2_kin": gpt2_kin(), "qwen2_kin": qwen2_kin(), "llama3_kin": llama3_kin(), "digits_kin": digits_kin(),
            "llama2_kin": byte_fallback(metaspace=False), "metaspace_kin": byte_fallback(metaspace=True),
            "unigram_kin": unigram_kin(byte_fallback=False), "unigram_bytes_kin": unigram_kin(byte_fallback=True)}
    for name, tokenizer in made.items():
        # Indented, as published files are, but with each merge on one line.
        (data / f"{name}.json").write_text(tokenizer.to_str(pretty=False))
    rules = data / "charsmap.tsv"  # a few rows of NFKC and one of our own: capital letters of two kinds
    rows = {"ﬁ": "fi", "½": "1⁄2", "①": "1", "Ａ": "A", "ｂ": "b", "e\u0301": "é", "\u00a0": " ", "\u3000": " ", "\u200b": ""}
    rules.write_text("".join(" ".join(f"{ord(c):04X}" for c in key) + "\t" + " ".join(f"{ord(c):04X}" for c in value) + "\n"
                             for key, value in rows.items()))
    models_made = {
        "sp_bpe": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity"),
        "sp_unigram": dict(model_type="unigram", vocab_size=500, byte_fallback=False, character_coverage=0.98,
                           normalization_rule_tsv=str(rules)),
        "sp_unigram_bytes": dict(model_type="unigram", vocab_size=700, byte_fallback=True, add_dummy_prefix=False,
                                 remove_extra_whitespaces=False, normalization_rule_name="identity"),
        "sp_bpe_suffix": dict(model_type="bpe", vocab_size=400, byte_fallback=False,
                              treat_whitespace_as_suffix=True, normalization_rule_tsv=str(rules)),
    }
    for name, options in models_made.items():
        (data / f"{name}.model").write_bytes(sentencepiece_model(**options))
    rules.unlink()


def all_files():
    """Name of a tokenizer -> its files, of those trained here and the published ones."""
    trained = sorted(path.stem for path in DATA.glob("*.json"))
    return {**{name: {"tokenizer.json": f"data:{name}.json"} for name in trained},
            **{name: {"tokenizer.model": f"data:{name}.model"} for name in SENTENCEPIECE}, **PUBLISHED}


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
    for name, files in all_files().items():
        paths = {key: roots[value.split(":")[0]] / value.split(":")[1] for key, value in files.items()}
        if all(path.exists() for path in paths.values()):
            write(OUT / f"{name}.json", golden(name, files, paths))
        else:
            print(f"{name}: left as it is, its files are missing")


if __name__ == "__main__":
    main()
