"""A small llama as a Hugging Face folder, in parts that a test can corrupt before they are written."""
import json
import os
import random
import struct

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}

LAYER = {
    "input_layernorm": (64,),
    "self_attn.q_proj": (64, 64),
    "self_attn.k_proj": (32, 64),
    "self_attn.v_proj": (32, 64),
    "self_attn.o_proj": (64, 64),
    "post_attention_layernorm": (64,),
    "mlp.gate_proj": (96, 64),
    "mlp.up_proj": (96, 64),
    "mlp.down_proj": (64, 96),
}


def shapes():
    """Name and shape of every tensor of the model."""
    yield "model.embed_tokens.weight", (128, 64)
    for layer in range(2):
        for name, shape in LAYER.items():
            yield f"model.layers.{layer}.{name}.weight", shape
    yield "model.norm.weight", (64,)


def values(shape):
    """The f32 bytes of a tensor: norm weights near one, small matrices."""
    count = 1
    for size in shape:
        count *= size
    generator = random.Random(count)
    middle, width = (1.0, 0.1) if len(shape) == 1 else (0.0, 0.1)
    return struct.pack(f"<{count}f", *(generator.gauss(middle, width) for _ in range(count)))


class Folder:
    """The parts of a model folder. `config` and `header` are written as JSON unless `*_text` replaces them."""

    def __init__(self):
        self.config = dict(CONFIG)
        self.config_text = None
        self.header, self.data = {"__metadata__": {"format": "pt"}}, b""
        self.header_text = None
        self.header_length = None
        self.extra = {}  # further files: name to bytes
        self.weights_name = "model.safetensors"
        for name, shape in shapes():
            self.add(name, shape, values(shape))

    def add(self, name, shape, data, dtype="F32"):
        start = len(self.data)
        self.header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, start + len(data)]}
        self.data += data

    def rebuild(self, keep):
        """Keeps the tensors for which `keep(name)` is true, with contiguous data."""
        old, data = self.header, self.data
        self.header, self.data = {"__metadata__": {"format": "pt"}}, b""
        for name, entry in old.items():
            if name != "__metadata__" and keep(name):
                start, end = entry["data_offsets"]
                self.add(name, entry["shape"], data[start:end], entry["dtype"])

    def weights(self):
        text = self.header_text if self.header_text is not None else json.dumps(self.header).encode()
        length = self.header_length if self.header_length is not None else len(text)
        return struct.pack("<Q", length) + text + self.data

    def write(self, path):
        os.makedirs(path)
        config = self.config_text if self.config_text is not None else json.dumps(self.config).encode()
        files = {"config.json": config, self.weights_name: self.weights(), **self.extra}
        for name, content in files.items():
            if content is None:
                continue
            with open(os.path.join(path, name), "wb") as file:
                file.write(content)
