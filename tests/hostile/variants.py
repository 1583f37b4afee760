"""The broken variants: a name, the required content of the error, and a function that breaks the folder.

A variant changes the parts of a Folder before it is written, or, with `after`, the written files.
"""
import json
import os
import shutil
import struct
import zipfile

import containers
from containers import pieces

VARIANTS = []

Q_PROJ = "model.layers.0.self_attn.q_proj.weight"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def variant(mention, after=None):
    def register(function):
        VARIANTS.append((function.__name__.replace("_", "-"), mention, function, after))
        return function

    return register


# --- the header of model.safetensors -----------------------------------------------------------------------------


def before_the_header(folder, before):
    folder.header_text = before + json.dumps(folder.header).encode()


@variant('has a header that does not begin with "{"')
def header_after_a_byte_order_mark(folder):
    before_the_header(folder, b"\xef\xbb\xbf")


@variant('has a header that does not begin with "{"')
def header_after_spaces(folder):
    before_the_header(folder, b"  ")


@variant("declares a header of")
def header_length_lies(folder):
    folder.header_length = 2**63


@variant("declares a header of")
def header_longer_than_the_file(folder):
    folder.header_length = len(folder.weights()) + 1


@variant("is not valid JSON")
def header_cut_in_the_middle(folder):
    folder.header_text = json.dumps(folder.header).encode()[:100]


@variant("nests deeper")
def header_nests_deep(folder):
    folder.header_text = b'{"a":' + b"[" * 200000


@variant("occurs twice")
def header_repeats_a_name(folder):
    text = json.dumps(folder.header)
    folder.header_text = (text[:-1] + ', "model.norm.weight": {}}').encode()


@variant('model.safetensors: has a header that does not begin with "{"')
def header_is_binary(folder):
    folder.header_text = bytes(range(128, 256))


@variant("bytes of data")
def data_truncated(folder):
    folder.data = folder.data[:-4]


@variant("bytes of data")
def data_trailing(folder):
    folder.data += b"more"


@variant("overlaps")
def offsets_overlap(folder):
    entry = folder.header["model.norm.weight"]
    entry["data_offsets"] = [offset - 4 for offset in entry["data_offsets"]]


@variant("leaves a gap")
def offsets_leave_a_gap(folder):
    entry = folder.header["model.norm.weight"]
    entry["data_offsets"] = [offset + 4 for offset in entry["data_offsets"]]
    folder.data += b"gap!"


@variant("has the invalid data_offsets")
def offsets_run_backwards(folder):
    folder.header[Q_PROJ]["data_offsets"].reverse()


@variant("overflows")
def shape_overflows(folder):
    folder.header[Q_PROJ]["shape"] = [2**32, 2**33]


@variant("needs")
def shape_disagrees_with_the_size(folder):
    folder.header[Q_PROJ]["shape"] = [64, 63]


@variant("has the invalid dimension -64")
def shape_negative(folder):
    folder.header[Q_PROJ]["shape"] = [-64, -64]


@variant("unknown dtype")
def type_unknown(folder):
    folder.header[Q_PROJ]["dtype"] = "F31"


@variant("is not a safetensors file")
def weights_too_short(folder):
    folder.header_text, folder.data = b"", b""
    folder.extra["model.safetensors"] = b"abc"


@variant("is empty")
def weights_empty(folder):
    folder.extra["model.safetensors"] = b""


@variant("model.safetensors")
def weights_missing(folder):
    folder.extra["model.safetensors"] = None


@variant("has a pickle that is not a torch checkpoint; convert the model to safetensors")
def weights_pickled(folder):
    folder.extra["model.safetensors"] = None
    folder.extra["pytorch_model.bin"] = b"\x80\x02."


@variant("is not a whole zip archive")
def weights_zipped_in_part(folder):
    folder.extra["model.safetensors"] = None
    folder.extra["pytorch_model.bin"] = b"PK\x03\x04"


# --- checkpoints of torch ----------------------------------------------------------------------------------------


def in_torch(folder, change=lambda torch: None, after=lambda content: content):
    """The weights as a torch checkpoint; `change` modifies its parts, `after` its bytes."""
    torch = containers.Torch(folder)
    change(torch)
    folder.extra["model.safetensors"] = None
    folder.extra["pytorch_model.bin"] = after(torch.bytes())


@variant("system")
def torch_pickle_calls_something(folder):
    in_torch(folder, lambda torch: setattr(torch, "rebuild", ("os", "system")))


@variant("pytorch_model.bin")
def torch_tensor_beyond_its_storage(folder):
    in_torch(folder, lambda torch: setattr(torch, "storage_offset", 1))


@variant("pytorch_model.bin")
def torch_storage_missing(folder):
    in_torch(folder, lambda torch: setattr(torch, "left_out", 2))


@variant("pytorch_model.bin")
def torch_archive_compressed(folder):
    in_torch(folder, lambda torch: setattr(torch, "compression", zipfile.ZIP_DEFLATED))


@variant("is not a whole zip archive")
def torch_archive_cut(folder):
    in_torch(folder, after=lambda content: content[:-40])


@variant("pytorch_model.bin")
def torch_pickle_damaged(folder):
    in_torch(folder, after=lambda content: content.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v3", 1))


@variant("pytorch_model.bin")
def torch_tensor_twice(folder):
    in_torch(folder, lambda torch: torch.tensors.append(torch.tensors[0]))


@variant(Q_PROJ)
def torch_tensor_of_wrong_shape(folder):
    def change(torch):
        torch.tensors = [(name, [32, 64] if name == Q_PROJ else shape, data) for name, shape, data in torch.tensors]

    in_torch(folder, change)


# --- sentencepiece's models --------------------------------------------------------------------------------------


@variant("tokenizer.model")
def pieces_cut(folder):
    folder.extra["tokenizer.model"] = pieces.model(128)[:-7]


@variant("tokenizer.model")
def pieces_of_an_unknown_type(folder):
    folder.extra["tokenizer.model"] = pieces.model(128, {70: 9})


@variant("tokenizer.model")
def pieces_without_an_unknown_one(folder):
    folder.extra["tokenizer.model"] = pieces.model(128, {0: 1})


@variant("tokenizer.model")
def pieces_that_are_none(folder):
    folder.extra["tokenizer.model"] = b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"


@variant("tokenizer.model")
def pieces_empty(folder):
    folder.extra["tokenizer.model"] = b""


# --- tensors that do not fit the config ------------------------------------------------------------------------


@variant(Q_PROJ)
def tensor_missing(folder):
    folder.rebuild(lambda name: name != Q_PROJ)


@variant("does not belong to llama")
def tensor_surplus(folder):
    folder.add("model.layers.0.self_attn.q_proj.bias", (64,), b"\0" * 256)


@variant("has the shape [32, 128], expected [64, 64]")
def tensor_of_wrong_shape(folder):
    folder.header[Q_PROJ]["shape"] = [32, 128]


@variant("has the type I32")
def tensor_of_wrong_type(folder):
    folder.header[Q_PROJ]["dtype"] = "I32"


@variant('adapter_config.json: is a LoRA adapter of "some/base-7b"; merge it into the model first')
def adapter_in_the_folder(folder):
    folder.extra["adapter_config.json"] = b'{"base_model_name_or_path": "some/base-7b"}'


@variant("adapter_model.bin: is a LoRA adapter of an unknown model; merge it into the model first")
def adapter_without_config(folder):
    folder.extra["adapter_model.bin"] = b"x"


@variant("differs from")
def tied_head_differs(folder):
    folder.add("lm_head.weight", (128, 64), b"\0" * (128 * 64 * 4))


@variant("is missing")
def untied_head_missing(folder):
    folder.config["tie_word_embeddings"] = False


@variant('model.safetensors: tensor "model.layers.1.mlp.up_proj.weight" holds NaN or infinity; check')
def weight_infinite(folder):
    start, _ = folder.header["model.layers.1.mlp.up_proj.weight"]["data_offsets"]
    folder.data = folder.data[:start] + struct.pack("<f", float("inf")) + folder.data[start + 4:]


# --- shards ----------------------------------------------------------------------------------------------------


def shard(folder, place):
    """Moves all weights to the first shard of an index that maps each tensor to `place`."""
    folder.weights_name = SHARDS[0]
    names = [name for name in folder.header if name != "__metadata__"]
    index = {"metadata": {}, "weight_map": {name: place(name) for name in names}}
    folder.extra["model.safetensors.index.json"] = json.dumps(index).encode()


@variant(SHARDS[1])
def shard_missing(folder):
    shard(folder, lambda name: SHARDS[1] if name == Q_PROJ else SHARDS[0])


@variant('in "../model-00001-of-00002.safetensors", which is not the plain name')
def shard_outside_of_the_folder(folder):
    shard(folder, lambda name: "../" + SHARDS[0])


@variant("is not valid JSON")
def index_broken(folder):
    shard(folder, lambda name: SHARDS[0])
    folder.extra["model.safetensors.index.json"] = b'{"weight_map": {'


# --- config.json -------------------------------------------------------------------------------------------------


@variant("rms_norm_eps")
def config_not_a_number(folder):
    folder.config["rms_norm_eps"] = float("nan")


@variant("rope_theta")
def config_infinite(folder):
    folder.config["rope_theta"] = float("inf")


@variant("out of range")
def config_number_too_large(folder):
    folder.config_text = json.dumps(folder.config).replace("10000.0", "1e999").encode()


@variant("a NUL byte")
def config_behind_a_nul_byte(folder):
    folder.config_text = json.dumps(folder.config).encode() + b"\0"


@variant("hidden_size")
def config_absurd_size(folder):
    folder.config["hidden_size"] = 2**62


@variant("vocab_size")
def config_negative_size(folder):
    folder.config["vocab_size"] = -128


@variant("num_attention_heads")
def config_zero_heads(folder):
    folder.config["num_attention_heads"] = 0


@variant("not a multiple of its 3 key/value heads")
def config_heads_do_not_divide(folder):
    folder.config["num_key_value_heads"] = 3


@variant("must be even")
def config_odd_head(folder):
    folder.config["head_dim"] = 15


@variant("num_hidden_layers")
def config_text_for_a_number(folder):
    folder.config["num_hidden_layers"] = "2"


@variant("has no key")
def config_key_missing(folder):
    del folder.config["intermediate_size"]


@variant("attention_chunk_size")
def config_key_unknown(folder):
    folder.config["attention_chunk_size"] = 16


@variant("quantization_config")
def config_quantized(folder):
    folder.config["quantization_config"] = {"bits": 4}


@variant("model_type")
def config_unknown_model(folder):
    folder.config["model_type"] = "transmogrifier"


@variant('has "torch_dtype": "float32", which contradicts "dtype"; keep one')
def config_types_differ(folder):
    folder.config["dtype"] = "bfloat16"


@variant('has no key "rope_scaling.rope_type"')
def config_scaling_without_type(folder):
    folder.config["rope_scaling"] = {"factor": 4}


@variant('has 1 "layer_types" for 2 layers')
def config_too_few_layer_types(folder):
    folder.config["layer_types"] = ["full_attention"]


@variant('has "hidden_act": null')
def config_function_null(folder):
    folder.config["hidden_act"] = None


@variant('has "rope_theta": null')
def config_theta_null(folder):
    folder.config["rope_theta"] = None


@variant("spiral")
def config_unknown_scaling(folder):
    folder.config["rope_scaling"] = {"type": "spiral", "factor": 2.0}


@variant("nests deeper")
def config_nests_deep(folder):
    folder.config_text = b'{"a":' * 100000


@variant("occurs twice")
def config_repeats_a_key(folder):
    folder.config_text = json.dumps(folder.config)[:-1].encode() + b', "hidden_size": 128}'


@variant("is larger than")
def config_huge(folder):
    folder.config_text = json.dumps(folder.config).encode() + b" " * (5 << 20)


@variant("is not valid JSON")
def config_truncated(folder):
    folder.config_text = json.dumps(folder.config).encode()[:-20]


@variant("does not hold a JSON object")
def config_is_a_list(folder):
    folder.config_text = b"[1, 2]"


@variant("config.json")
def config_missing(folder):
    folder.extra["config.json"] = None


@variant("eos")
def end_token_outside_of_the_vocabulary(folder):
    folder.config["eos_token_id"] = -7


@variant("names the token 99999")
def end_token_too_large(folder):
    folder.config["eos_token_id"] = 99999


@variant("temperature")
def generation_config_absurd(folder):
    folder.extra["generation_config.json"] = b'{"temperature": -3}'


# --- tokenizer.json ----------------------------------------------------------------------------------------------


def split_by(regex):
    """A tokenizer that splits by `regex` before its byte-level step."""
    return {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
    }


def regex_variant(name, regex):
    """The error names the position in the expression, with a hint."""
    mention = "(pre_tokenizer.pretokenizers[0].pattern.Regex); correct the expression"

    def spoil(folder):
        folder.extra["tokenizer.json"] = json.dumps(split_by(regex)).encode()

    VARIANTS.append((name, mention, spoil, None))


regex_variant("regex-unfinished", "(((a")
regex_variant("regex-unknown-script", r"\p{Klingon}+")
regex_variant("regex-endless-lookbehind", "(?<=a+)b")
regex_variant("regex-too-large", "((((a{1000}){1000}){1000}){1000})")
regex_variant("regex-unfinished-class", "[a")


@variant("the id 1 is used twice")
def tokenizer_repeats_an_id(folder):
    tokenizer = split_by("a")
    tokenizer["model"]["vocab"]["c"] = 1
    folder.extra["tokenizer.json"] = json.dumps(tokenizer).encode()


@variant("does not hold a JSON object")
def tokenizer_is_a_list(folder):
    folder.extra["tokenizer.json"] = b"[]"


# --- what is not a file ----------------------------------------------------------------------------------------------


def directory_instead(name):
    def apply(path):
        os.remove(os.path.join(path, name))
        os.mkdir(os.path.join(path, name))

    return apply


@variant("is a directory", after=directory_instead("config.json"))
def config_is_a_directory(folder):
    pass


@variant("is a directory", after=directory_instead("model.safetensors"))
def weights_are_a_directory(folder):
    pass


def fifo_instead(path):
    os.remove(os.path.join(path, "config.json"))
    os.mkfifo(os.path.join(path, "config.json"))


@variant("is not a regular file", after=fifo_instead)
def config_is_a_pipe(folder):
    pass


@variant("does not exist", after=shutil.rmtree)
def folder_missing(folder):
    pass
