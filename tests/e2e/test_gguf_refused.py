"""Broken GGUF files, which are refused."""

import itertools
import os
import pathlib
import struct

import numpy as np

import gguf_blocks
import gguf_file
import harness
from harness import BUNDLED, Case
from test_gguf import MODELS, experts_folder


class Refused(Case):
    """Broken files: one line that names the file and a hint, after warnings if options have any, and no remaining files."""

    def refuse(self, data, mention, *options):
        place = pathlib.Path(harness.folder("refused"))
        path = place / "m.gguf"
        path.write_bytes(data if isinstance(data, bytes) else data.bytes())
        done = harness.execute([harness.mica, "compile", path, "-o", place / "program", *options], check=False)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, 1, error)
        self.assertRegex(error, rf"\A(mica: warning: {path}: [^\n]*\n)*mica: error: {path}: [^\n]*; [a-z]+ [^\n]*\n\Z")
        self.assertIn(mention, error)
        self.assertEqual(os.listdir(place), ["m.gguf"])
        return error

    def file(self):
        return gguf_file.Converter(MODELS["qwen3-dense"], "F32").convert()

    def test_cut(self):
        whole = self.file().bytes()
        for size in (3, 4, 8, 23, 24, 100, len(self.file().header()) - 1, len(whole) // 2, len(whole) - 40):
            self.refuse(whole[:size], "download it again")

    def test_rows_that_are_not_whole_blocks(self):
        """A row that is not a multiple of the block, and a tensor with too few bytes, for every type."""
        for kind, (number, elements, size) in gguf_blocks.BLOCKS.items():
            file = self.file()
            index = next(i for i, (name, *_) in enumerate(file.tensors) if name == "blk.0.ffn_up.weight")
            name, _, _, _ = file.tensors[index]
            file.tensors[index] = name, (32, elements - 16), number, bytes(32 * size)
            self.refuse(file, f'tensor "{name}" has rows of {elements - 16} elements')
            file = gguf_file.Converter(MODELS["qwen3-moe"], "F32").convert()
            index = next(i for i, (name, *_) in enumerate(file.tensors) if name == "blk.0.ffn_up_exps.weight")
            name, shape, _, _ = file.tensors[index]
            file.tensors[index] = name, (*shape[:2], elements - 16), number, bytes(shape[0] * shape[1] * size)
            self.refuse(file, f'tensor "{name}" has rows of {elements - 16} elements')
            # The last block of the file ends too early.
            file = gguf_file.Converter(experts_folder(), kind).convert()
            name, shape, _, _ = file.tensors[-1]
            file.tensors[-1] = name, (shape[0], elements), number, bytes(shape[0] * size)
            error = self.refuse(file.bytes()[:-size // 2 - 32], f'tensor "{name}" has {shape[0] * size} bytes at offset ')
            self.assertIn("beyond the end of the file", error)

    def test_wrong_lengths(self):
        file = self.file()
        file.keys.append(("s", struct.pack("<IQ", gguf_file.STRING, 1 << 63)))
        self.refuse(file, 'has a value of 9223372036854775808 bytes for the key "s"')
        file = self.file()
        file.keys.append(("s", struct.pack("<IIQ", gguf_file.ARRAY, gguf_file.F64, 1 << 61)))
        self.refuse(file, 'declares 2305843009213693952 elements for the key "s"')

    def test_versions(self):
        file = self.file()
        file.version = 1
        self.refuse(file, "has the GGUF version 1")
        file.version = 3 << 24
        self.refuse(file, "is a big-endian GGUF file")
        self.refuse(b"junk that ends in .gguf", "is not a GGUF file")

    def test_unknown_keys_and_types(self):
        file = self.file()
        file.key("qwen3.trick", gguf_file.F32, 1)
        self.refuse(file, 'has the key "qwen3.trick", which is unknown for qwen3')
        file = self.file()
        file.tensor("blk.0.attn_sinks.weight", (4,), "F32", bytes(16))
        self.refuse(file, 'tensor "blk.0.attn_sinks.weight" [4] does not belong to qwen3')
        file = self.file()
        file.key("tokenizer.ggml.model", gguf_file.STRING, "bert")
        file.list("tokenizer.ggml.tokens", gguf_file.STRING, ["a"])
        self.refuse(file, 'the tokenizer "bert" is not known')

    def test_invalid_numbers(self):
        file = self.file()
        name, shape, kind, data = file.tensors[3]
        file.tensors[3] = name, shape, kind, struct.pack("<f", np.nan) + data[4:]
        self.refuse(file, "holds NaN")

    def test_nonfinite_scales(self):
        """The tensor is named as in the file, and its block."""
        file = gguf_file.Converter(BUNDLED / "minimind-dense", "Q8_0").convert()
        names = [name for name, *_ in file.tensors]
        index = names.index("blk.1.ffn_down.weight")
        name, shape, kind, data = file.tensors[index]
        broken = bytearray(data)
        broken[34 * 1234:34 * 1234 + 2] = struct.pack("<e", np.nan)
        file.tensors[index] = name, shape, kind, bytes(broken)
        self.refuse(file, 'tensor "blk.1.ffn_down.weight" holds NaN or infinity in block 1234')

    def test_nonfinite_scales_of_every_type(self):
        """In a matrix, in an expert, which is named as well, and in the embedding, whatever the weights become. BlockPanelTest tests each
        scale, offset and bad value of each type in every format that it becomes. E8M0 scales have one NaN and no infinity."""
        where = {"blk.0.attn_q.weight": "blk.0.attn_q.weight", "token_embd.weight": "token_embd.weight",
                 "blk.0.ffn_up_exps.weight": "blk.0.ffn_up_exps.weight[2]"}
        cases = itertools.product(where, ((), ("--weights", "bf16"), ("--weights", "int8"), ("--weights", "f32")))
        self.assertGreater(len(gguf_blocks.BLOCKS), 12, "all cases")
        for number, ((kind, (_, _, size)), (tensor, options)) in enumerate(zip(gguf_blocks.BLOCKS.items(), itertools.cycle(cases))):
            at = gguf_blocks.SCALES[kind][number // 2 % len(gguf_blocks.SCALES[kind])]
            bad = b"\xff" if kind == "MXFP4" else struct.pack("<e", (np.nan, -np.inf)[number % 2])
            file = gguf_file.Converter(experts_folder(), kind).convert()
            index = [name for name, *_ in file.tensors].index(tensor)
            name, shape, stored, data = file.tensors[index]
            before, block = (2 * len(data) // 4 // size, 1) if len(shape) == 3 else (0, 3)
            broken = bytearray(data)
            broken[(before + block) * size + at:(before + block) * size + at + len(bad)] = bad
            file.tensors[index] = name, shape, stored, bytes(broken)
            with self.subTest(kind=kind, at=at, tensor=tensor, options=options):
                self.assertIn(f" in block {block}; check", self.refuse(file, f'tensor "{where[tensor]}" holds NaN', *options))

    def test_type_that_contradicts_the_size(self):
        """A tensor of a smaller type ends before the next one begins."""
        data = gguf_file.Converter(MODELS["qwen3-dense"], "Q8_0").convert().bytes()
        name = b"blk.0.ffn_down.weight"
        place = data.index(name) + len(name)
        place += 4 + 8 * struct.unpack_from("<I", data, place)[0]
        self.assertEqual(struct.unpack_from("<I", data, place), (8,), "Q8_0")
        self.refuse(data[:place] + struct.pack("<I", 20) + data[place + 4:], "bytes that belong to no tensor between the tensor")

    def test_the_epsilon_of_norms(self):
        file = self.file()
        file.keys = [key for key in file.keys if not key[0].endswith("layer_norm_rms_epsilon")]
        self.refuse(file, 'has no key "qwen3.attention.layer_norm_rms_epsilon", which qwen3 needs')

    def test_the_model_is_not_overwritten(self):
        place = pathlib.Path(harness.folder("own"))
        first = self.file().write_parts(str(place / "m"), [3, len(self.file().tensors) - 3])
        for path in (first, first.replace("00001-of", "00002-of")):
            done = harness.execute([harness.mica, "compile", first, "-o", path], check=False)
            self.assertIn("is a file of the model, which would be replaced", done.stderr.decode())


del Case  # unittest would treat it as a test
