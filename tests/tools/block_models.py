#!/usr/bin/env python3
"""The models of compare_asm.py as GGUF files whose matrices are stored in blocks.

    block_models.py FOLDER MODEL,... FORMAT,...

writes FOLDER/FORMAT/MODEL.gguf, such as q4_k/latent.gguf.

Rows must be whole blocks, of up to 256 elements, so that models smaller than that are widened: each extent of their tensors and the
sizes in their config.json are replaced. All elements are zero: a compiler reads them for the program, not for its assembly.
"""

import os
import pathlib
import sys

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "e2e"))
import checkpoint
import gguf_blocks
import gguf_families
import gguf_file

FORMATS = tuple(name.lower() for name in gguf_blocks.BLOCKS)
MODELS = TESTS / "goldens/models"
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16,
        "beta_fast": 4.0, "beta_slow": 0.5, "mscale": 0.9, "mscale_all_dim": 0.9}
#: Folder, changes of its config, and the new extent for each that is widened.
WIDENED = {
    "experts": (MODELS / "qwen3-moe", {"hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 256, "head_dim": 128},
                {32: 256, 16: 256, 48: 768, 24: 384, 8: 128}),
    "latent": (MODELS / "deepseek-v3",
               {"hidden_size": 768, "intermediate_size": 512, "moe_intermediate_size": 256, "q_lora_rank": 256, "kv_lora_rank": 256,
                "qk_nope_head_dim": 256, "qk_rope_head_dim": 64, "qk_head_dim": 320, "v_head_dim": 256, "head_dim": 64,
                "rope_parameters": YARN},
               {24: 768, 40: 512, 8: 256, 10: 256, 12: 256, 30: 960, 16: 320, 42: 1536}),
    "window": (MODELS / "gpt-oss", {"hidden_size": 256, "intermediate_size": 256, "head_dim": 256, "swiglu_limit": 7.0},
               {24: 256, 20: 256, 40: 512, 10: 256, 30: 768}),
    "positions": (MODELS / "gpt2", {"n_embd": 768}, {24: 768, 72: 2304, 96: 3072}),
}
NAMES = ("dense", *WIDENED)
#: Matrices that files do not store in blocks, besides biases of experts.
PLAIN = ("ffn_gate_inp.weight", "position_embd.weight")


def widened(name, target):
    """A folder with the widened model, and its config."""
    source, config, extents = WIDENED[name]

    def replace(tensors):
        for key, array in tensors.items():
            tensors[key] = np.zeros([extents.get(extent, extent) for extent in array.shape], "<f4")

    return checkpoint.edited(source, target, lambda values: values.update(config), replace)


def converted(name, target):
    """The model `name` as a GGUF file in f32."""
    if name == "dense":
        return gguf_file.Converter(TESTS / "models/minimind-dense", "F32", keep_numbers=False).convert()
    folder = widened(name, os.path.join(target, name))
    if name == "experts":
        return gguf_file.Converter(folder, "F32", keep_numbers=False).convert()
    return gguf_families.convert(folder)


def in_blocks(file, form):
    """`file` with its matrices in blocks of zeros of the format `form`."""
    kind, elements, stored = gguf_blocks.BLOCKS[form.upper()]
    result = gguf_file.File()
    result.keys = file.keys
    for name, shape, own, data in file.tensors:
        if len(shape) > 1 and not name.endswith((".bias", *PLAIN)):
            assert shape[-1] % elements == 0, (name, shape)
            own, data = kind, gguf_file.Zeros(int(np.prod(shape)) // elements * stored)
        result.tensors.append((name, shape, own, data))
    return result


def write_all(names, forms, folder):
    """{(name, format): path} of the models `names` in all `forms`, in a folder per format, as the name of a model is its file's."""
    paths = {}
    for name in names:
        file = converted(name, folder)
        for form in forms:
            os.makedirs(os.path.join(folder, form), exist_ok=True)
            paths[name, form] = in_blocks(file, form).write(os.path.join(folder, form, f"{name}.gguf"))
    return paths


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    write_all(sys.argv[2].split(","), sys.argv[3].split(","), sys.argv[1])
