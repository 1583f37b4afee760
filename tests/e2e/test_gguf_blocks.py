"""Tensor layouts of families in blocks: latents, shared experts, fused matrices, biases of experts."""

import os
import re

import numpy as np

import checkpoint
import gguf_blocks
import gguf_families
import gguf_file
import harness
import test_gguf
from harness import GOLDENS, Case, program

# New sizes in config.json, and extents by the golden's, so that all rows are whole blocks; where that is ambiguous, for names with a part.
# Latents of 256 and 32 numbers are smaller than the keys and values of 3 heads, 64 numbers each, so that caches hold latents.
LATENT = ({"hidden_size": 192, "intermediate_size": 256, "moe_intermediate_size": 256, "q_lora_rank": 32, "kv_lora_rank": 256,
           "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "qk_head_dim": 64, "v_head_dim": 64, "head_dim": 32,
           "rope_parameters": test_gguf.YARN},
          {24: 192, 40: 256, 8: 256, 10: 32, 12: 256, 30: 192, 16: 288, 42: 288}, {"shared_experts": {24: 192, 16: 512}})
FAMILIES = {
    "deepseek-v2": LATENT,  # keys and values in one matrix
    "deepseek-v3": LATENT,  # in two, the keys' transposed
    "gpt-oss": ({"hidden_size": 256, "intermediate_size": 256, "head_dim": 32, "swiglu_limit": 7.0},
                {24: 256, 20: 256, 40: 512, 10: 32, 30: 96}, {}),
    "phi3": ({"hidden_size": 96, "intermediate_size": 256}, {48: 96, 40: 256, 80: 160}, {"gate_up": {80: 512}}),
    "qwen2-moe": ({"hidden_size": 96, "intermediate_size": 96, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256},
                  {24: 96, 8: 32, 12: 256, 20: 256}, {}),
}


def draw(name, shape, rng):
    numbers = rng.standard_normal(shape, "f4")
    if len(shape) == 1:
        return 1 + np.float32(0.2) * numbers if "norm" in name else np.float32(0.1) * numbers
    return numbers / np.float32(np.sqrt(shape[-1]))


def widened(family):
    """The golden model, with random weights of the new sizes."""
    config, extents, others = FAMILIES[family]
    rng = np.random.default_rng(0)

    def widen(tensors):
        for name, array in tensors.items():
            special = next((own for part, own in others.items() if part in name), {})
            tensors[name] = draw(name, [(extents | special).get(extent, extent) for extent in array.shape], rng)

    source = test_gguf.family(family) if family in test_gguf.FAMILIES else GOLDENS / "models" / family
    return checkpoint.edited(source, os.path.join(harness.folder("blocks"), family), lambda values: values.update(config), widen)


def in_blocks(file, kinds):
    """The file with its matrices, but not routers and biases, in blocks: of one kind for rows of whole blocks of 256, of another for
    others."""
    result = gguf_file.File()
    result.keys = file.keys
    for name, shape, kind, data in file.tensors:
        if len(shape) > 1 and name.endswith(".weight") and "ffn_gate_inp" not in name:
            kind = next(kind for kind in kinds if shape[-1] % gguf_blocks.BLOCKS[kind][1] == 0)
            data, _ = gguf_blocks.encode(np.frombuffer(data, "<f4").reshape(shape), kind)
        result.tensor(name, shape, kind, data)
    return result


@harness.for_each(FAMILIES, "layout")
class Blocks(Case):
    def layout(self, family):
        """Every op equals the interpreter's, and the logits are near those of the dequantized numbers."""
        folder = widened(family)
        own = family in test_gguf.FAMILIES
        file = gguf_file.Converter(folder, "F32").convert() if own else gguf_families.convert(folder)
        kinds = ("Q5_K", "MXFP4") if family == "gpt-oss" else ("Q4_K", "Q5_1")
        path = in_blocks(file, kinds).write(os.path.join(folder, "blocks.gguf"))
        fused = harness.emit(path, "fused")
        for kind in kinds:
            self.assertRegex(fused, rf"mica\.weight @[^\n]*x!mica\.block<{kind.lower()}>>\n")
        if FAMILIES[family] is LATENT:
            self.assertRegex(fused, r"!mica\.kv_cache<3 x 1 x \d+ x bf16>")
            keys = "bf16" if family == "deepseek-v2" else "!mica.block<q5_1>"  # read transposed, or stored so
            self.assertRegex(fused, rf"mica\.weight @[^\n]*kv_b_proj_keys[^\n]*x{re.escape(keys)}>\n")
        got, wanted = (program(path, "--kv", "f32", *options).generate([[i] for i in range(16)], 2)[1] for options in ((), ("--weights", "f32")))
        # Looser than for one architecture: matrices that are read transposed and weights without blocks are rounded to bf16.
        test_gguf.verify(self, path, family, got, wanted, outliers=3, bounds=(1e-3, 1e-3))


del Case  # unittest would treat it as a test
