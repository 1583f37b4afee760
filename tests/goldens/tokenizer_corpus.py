#!/usr/bin/env python3
"""Writes ten megabytes of reproducible mixed text, for comparing tokenizers on more than manually written text.

    tokenizer_corpus.py FILE [--megabytes N]

FILE gets one record per text: its length in bytes as u32, little-endian, then the text in UTF-8. Texts are prose and
code, some thirty languages, emoji with joiners and modifiers, combining marks in any order, long runs of spaces, digits,
letters and line ends, spellings of special tokens, and characters from all of Unicode. They are followed by some texts of a
hundred kilobytes and more, most of them without a break, which lead to long queues and sums of scores. Only functions
that are stable across Python versions are used (random(), not choice()), so that the output is reproducible.
"""

import argparse
import random
import struct
import sys

SEED = 20261122

ENGLISH = """the of and to a in that is was he for it with as his on be at by I this had not are but from or have an
they which one you were her all she there would their we him been has when who will more no if out so said what up its
about into than them can only other new some could time these two may then do first any my now such like our over man me
even most made after also did many before must through back years where much your way well down should because each just
those people how too little state good very make world still own see men work long get here between both life being under
never day same another know while last might us great old year off come since against go came right used take three
don't can't it's I'm you'll we've they'd isn't Hello World However Therefore LONDON NASA iPhone e.g. i.e. Mr. Dr. U.S.A.
antidisestablishmentarianism tokenizer unbelievable reproducibility naïve café résumé co-operate state-of-the-art""".split()

LANGUAGES = [
    "Die Größe der Straße überrascht die Übermütigen, während Äpfel und Öle fließen",
    "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío, ¿añoraba a su querido cachorro?",
    "Luís argüia à Júlia que brações fé chá óxido pôr zângão eram palavras do português",
    "Zażółć gęślą jaźń, pchnąć w tę łódź jeża lub ośm skrzyń fig",
    "Příliš žluťoučký kůň úpěl ďábelské ódy", "Árvíztűrő tükörfúrógép", "Flygande bäckasiner söka hwila på mjuka tuvor",
    "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da ılık ılıman İ I ı i", "Þjóðin æðir yfir á Ægi öxin",
    "Съешь же ещё этих мягких французских булок, да выпей чаю", "Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо",
    "Ταχίστη αλώπηξ βαφής ψημένη γη, δρασκελίζει υπέρ νωθρού κυνός ΟΔΥΣΣΕΥΣ", "Բել դղյակի ձախ ժամն օֆ ազգությանը ցպահանջ չճշտած",
    "ავად მყოფი ქართველი ყვავილი ჯიბეში", "דג סקרן שט בים מאוכזב ולפתע מצא חברה", "אָלֶף־בֵּית שָׁלוֹם עֲלֵיכֶם",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق", "ِصِفْ خَلْقَ خَوْدٍ كَمِثْلِ الشَّمْسِ", "روباه قهوه‌ای سریع می‌پرد ۱۲۳۴۵۶۷۸۹۰",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले १२३४", "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি ১২৩",
    "தமிழ் மொழி என் உயிர்க்கு நேர் ௧௨௩", "తెలుగు భాష తేనె వంటిది", "ಕನ್ನಡ ಭಾಷೆ ಸುಂದರ", "മലയാളം ഒരു മനോഹരമായ ഭാഷയാണ്",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓", "ພາສາລາວ ສະບາຍດີ", "မြန်မာဘာသာစကား", "កម្ពុជា ភាសាខ្មែរ", "བོད་སྐད་ བཀྲ་ཤིས་བདེ་ལེགས།",
    "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。", "今天天气很好，我们一起去公园散步吧！二〇二六年十一月", "いろはにほへと ちりぬるを 色は匂へど 散りぬるを。ｶﾀｶﾅ ガギグゲゴ", "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다",
    "ሰማይ አይታረስ ንጉሥ አይከሰስ", "Ngừng bắn, người Việt Nam đã đọc được những chữ cái", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "𐍅𐌰𐍃 𐌲𐌿𐍄𐌰𐌽𐍃", "𒀀𒀁 𓀀𓀁 𝔘𝔫𝔦 𝟘𝟙𝟚 ℵ ∀x∈ℝ: ⌈x⌉ = −⌊−x⌋ ∑ ½ ² Ⅷ ㎏ ﬁ",
]

CODE = [
    "int main(int argc, char **argv) {{\n    for (size_t i = {n}; i < argc; ++i)\n\t\tprintf(\"%s\\n\", argv[i]);\n    return {n};\n}}\n",
    "def {w}(self, {w}=None):\n    \"\"\"Returns {w}.\"\"\"\n    return [x ** {n} for x in range({n}) if x % 3 != 0]\n\n\n",
    "{{\"{w}\": [{n}, {n}.{n}e-{n}], \"{w}_{w}\": null, \"{w}\": {{\"a\": true}}}}", "SELECT {w}, COUNT(*) FROM {w} WHERE id >= {n} GROUP BY 1;\r\n",
    "https://www.{w}.org/{w}/{w}?q={n}&lang=en#{w} {w}.{w}@example.com", "<div class=\"{w}\"><a href='/{w}/{n}'>{w}</a></div>\n",
    "fn {w}<'a, T: Into<String>>(x: &'a T) -> Option<u{n}> {{ x.map(|y| y << {n})? }}\n", "#include <{w}.h>\n#define {w} 0x{n}FFul // {w}\n/* {w} */\n",
    "$ git commit -m \"{w}: {w} (#{n})\" && ./{w} --{w}={n} 2>&1 | grep -v '^#'\n", "|{w}|{n}|\n|---|---:|\n| **{w}** | `{w}` |\n- [x] {w}\n1. {w}\n",
    "2026-{n}-{n}T{n}:{n}:00.{n}Z [{n}] ERROR  {w}.{w}:{n}   {w}\n", "E = m c^2, \\frac{{{n}}}{{\\sqrt{{{w}}}}} \\leq $ {n}.{n} % {w}\n",
]

EMOJI = "😀 🦙 🚀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🇯🇵🇫🇷 ❤️ ☺ ⌚️ 1️⃣ #️⃣ 🧑🏿‍🚀 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🤷‍♀️ 🫠 🪿 ♥︎".split()

SPECIAL = ("<|endoftext|> <|im_start|> <|im_end|> <s> </s> <unk> <pad> <0x0A> [INST] [/INST] <think> </think> <tool_call> <|begin|> <tool> <mask> "
           "<word> <|fim_prefix|> <repo_name> <|im_start |im_end|> ▁ ▁▁▁ ĠĊ <| [REFERENCE_DOC_3] ab").split()

SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x85", "\u00a0", "\u1680", "\u180e", "\u2003", "\u200b", "\u2028", "\u2029",
          "\u202f", "\u3000", "\ufeff"]

# Where most of Unicode's characters are.
BLOCKS = [(0, 0x3400), (0x3400, 0x3500), (0x4E00, 0x5000), (0x9F80, 0xAC80), (0xD700, 0xD800), (0xE000, 0xE080), (0xF900, 0x10000), (0x10000, 0x12500),
          (0x13000, 0x13480), (0x14400, 0x14680), (0x16800, 0x17000), (0x18800, 0x18D80), (0x1AF80, 0x1B300), (0x1BC00, 0x1BD00), (0x1CF00, 0x1FC00),
          (0x20000, 0x20080), (0x2F800, 0x2FA80), (0x30000, 0x30080), (0xE0000, 0xE0200), (0x10FF80, 0x110000)]

# Numbers added after Unicode 15, the latest version in ICU 72; the tokenizers package has them in its own tables.
NEWER = {point: "7" for low in (0x10D40, 0x116D0, 0x116DA, 0x11BF0, 0x11DE0, 0x16FF4, 0x1CCF0, 0x1E5F1) for point in range(low, low + 10)}


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.blocks = [first for low, high in BLOCKS for first in range(low, high, 0x80)]
        self.kinds = [(30, self.prose), (14, self.language), (12, self.code), (4, self.emoji), (6, self.run), (5, self.spaces),
                      (4, self.numbers), (3, self.special), (6, self.block), (5, self.anything), (4, self.marks), (3, self.invented), (2, self.case)]
        self.weight = sum(weight for weight, _ in self.kinds)

    def below(self, count):
        return int(self.random() * count)

    def one(self, items):
        return items[self.below(len(items))]

    def word(self):
        return ENGLISH[int(len(ENGLISH) * self.random() ** 2)]

    def prose(self):
        words = [self.word() for _ in range(4 + self.below(40))]
        for _ in range(self.below(4)):
            words[self.below(len(words))] += self.one(",;:—–")
        return " ".join(words).capitalize() + self.one([".", "!", "?", "...", ".\n", '."\n\n', "”", "\n"])

    def language(self):
        text = self.one(LANGUAGES)
        begin = self.below(len(text))
        return text if self.random() < 0.5 else text[begin:begin + 1 + self.below(30)]

    def code(self):
        template, out = self.one(CODE), ""
        while template:
            at = template.find("{")
            if at < 0:
                return out + template.replace("}}", "}")
            out, template = out + template[:at].replace("}}", "}"), template[at:]
            if template.startswith("{n}"):
                out, template = out + str(self.below(10 ** (1 + self.below(5)))), template[3:]
            elif template.startswith("{w}"):
                out, template = out + self.word(), template[3:]
            else:
                out, template = out + "{", template[2:]
        return out

    def emoji(self):
        return self.one(["", " "]).join(self.one(EMOJI) for _ in range(1 + self.below(6)))

    def run(self):
        return self.one([" ", "\n", "\t", "a", "A", "1", "!", "-", "=", "é", "中", "😀", "\u0301", "\r\n", " \n", "ab", "🇩🇪", "0", "_", "'s", "▁"]) \
            * (1 + int(300 * self.random() ** 3))

    def spaces(self):
        return "".join(self.one(SPACES) + self.one(["", "", "x", ".", "7"]) for _ in range(1 + self.below(8)))

    def numbers(self):
        return self.one(["{}", "{}.{}", "{},{}", "-{}e{}", "{}:{}", "€{}.{}%", "0x{}{}", "٣{}", "{}²{}"]).replace("{}", "%d") \
            .replace("%d", str(self.below(10 ** (1 + self.below(20)))))

    def special(self):
        return self.one(["", " ", "x", "\n"]).join(self.one(SPECIAL) for _ in range(1 + self.below(3)))

    def block(self):
        first = self.one(self.blocks)
        return "".join(chr(first + self.below(0x80)) for _ in range(2 + self.below(20)))

    def anything(self):
        points = (self.below(0x110000 if self.random() < 0.3 else 0x3000) for _ in range(1 + self.below(12)))
        return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)

    def marks(self):
        return "".join(self.one("aeouAEnscKàêüŝ가각ᄀ") + "".join(chr(0x300 + self.below(0x70)) for _ in range(self.below(4)))
                       + self.one(["", "", "\u1161", "\u11a8", "\u093c", "\u3099", "\u0323"]) for _ in range(1 + self.below(8)))

    def invented(self):
        return "".join(chr(97 + self.below(26)) for _ in range(3 + self.below(30)))

    def case(self):
        return "".join(letter.upper() if self.random() < 0.4 else letter for letter in self.word() + self.one(["'S", "'ll", "'ſ", "ß", "İ", "_x", "XYZ"]))

    def text(self):
        parts, wanted = [], 1 + int(40 * self.random() ** 2)
        while len(parts) < wanted:
            choice = self.random() * self.weight
            for weight, kind in self.kinds:
                choice -= weight
                if choice < 0:
                    parts += [kind(), self.one(["", " ", " ", " ", "\n"])]
                    break
        return "".join(parts[:-1]).translate(NEWER)


    def long_texts(self):
        """Texts of a hundred kilobytes and more: first with breaks, then without."""
        han, kana = ("".join(text for text in LANGUAGES if text[0] in first) for first in ("天今", "い"))
        for size, join, piece in ((150, "", lambda: self.text() + "\n"), (120, " ", self.word), (100, "", lambda: self.one(han[:-1])),
                                  (100, "", self.word), (100, "", self.invented), (100, "", lambda: self.one(han + kana + "a1 ")),
                                  (100, "", lambda: str(self.below(10))), (100, "", lambda: "a"), (100, "", lambda: self.one("你 .a")),
                                  (100, "", lambda: self.one(["▁", "a", "é", "중", "🦙", "\u0301"]))):
            parts, made = [], 0
            while made < size * 1000:
                parts.append(piece())
                made += len((parts[-1] + join).encode())
            yield join.join(parts).translate(NEWER)


def texts(size, seed=SEED):
    """UTF-8 texts until their total number of bytes reaches `size`, then the long ones."""
    writer, made = Writer(seed), 0
    while made < size:
        text = writer.text().encode()
        made += len(text)
        yield text
    for text in writer.long_texts():
        yield text.encode()


def write(file, size):
    for text in texts(size):
        file.write(struct.pack("<I", len(text)) + text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--megabytes", type=int, default=10)
    arguments = parser.parse_args()
    with open(arguments.file, "wb") as file:
        write(file, arguments.megabytes * 1000000)


if __name__ == "__main__":
    sys.exit(main())
