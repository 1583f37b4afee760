"""The features of a model, detected in its IR at stage `model`: a table of features, each with the words of the dialect that express it
and a test whether a module has it."""

import dataclasses
import re
from typing import Callable


@dataclasses.dataclass
class Op:
    """A line of a function: `name` without the dialect, `uses` and `results` without the percent sign."""

    name: str
    text: str
    results: list
    uses: list
    place: int


class Function:
    """The ops of a function in order. Results are named without suffixes such as `#0`."""

    def __init__(self, name, lines):
        self.name, self.ops, self.producer = name, [], {}
        for line in lines:
            found = re.match(r"\s*(?:(%[^=]+) = )?(?:mica\.|func\.)?(\w+) ?(.*)", line)
            left, name, rest = found[1] or "", found[2], found[3]
            values = [re.findall(r"%([\w.]+)", text) for text in (left, rest)]
            op = Op(name, rest, *values, len(self.ops))
            self.ops.append(op)
            self.producer |= dict.fromkeys(op.results, op)

    def of(self, *names):
        return [op for op in self.ops if op.name in names]

    def source(self, op, index=0):
        """The op that defines an operand; null for an argument."""
        return self.producer.get(op.uses[index])

    def produced_by(self, op, *names):
        source = self.source(op)
        return source is not None and source.name in names

    def users(self, op):
        return [other for other in self.ops if set(op.results) & set(other.uses)]


class Model:
    """The text of a module, its functions of layers and its entry."""

    def __init__(self, text):
        self.weights = re.findall(r"^  mica\.weight (.*)$", text, re.M)
        functions = [Function(name, body.splitlines())
                     for name, body in re.findall(r"^  func\.func (?:private )?@(\w+)\(.*\n((?:    .*\n)+)  }", text, re.M)]
        self.layers = [f for f in functions if f.name != "main"]
        self.main = next(f for f in functions if f.name == "main")

    def ops(self, *names):
        return [op for layer in self.layers for op in layer.of(*names)]

    def pairs(self, *names):
        """Ops with their layer."""
        return [(layer, op) for layer in self.layers for op in layer.of(*names)]


def has(*names, word="", main=False):
    """Whether there is such an op, with the word in its text."""
    return lambda model: any(word in op.text for op in (model.main.of(*names) if main else model.ops(*names)))


def some_without(name, word):
    return lambda model: has(name, word=word)(model) and any(word not in op.text for op in model.ops(name))


NORMS = ("rmsnorm", "layernorm")


def result_of(op):
    return op.text.rpartition("-> ")[2] if "->" in op.text else op.text.rpartition(" : ")[2].partition(", ")[0]


def head_norms(model, shared):
    """Norms of heads, i.e. of three-dimensional tensors; a one-dimensional weight is shared by all heads. Mamba's norm is of the groups of a
    row."""
    for layer, op in model.pairs(*NORMS):
        if any(user.name == "merge_heads" for user in layer.users(op)):
            continue
        row, weight = re.findall(r"tensor<([^>]*)x[^x>]*>", op.text.rpartition(" : ")[2])[:2]
        if row.count("x") == 2 and ("x" not in weight) == shared:
            return True
    return False


def norms_over_heads(model):
    return any(layer.produced_by(op, "linear") and any(user.name == "split_heads" for user in layer.users(op))
               for layer, op in model.pairs(*NORMS))


def post_norms(model):
    return any(layer.produced_by(op, "linear") and any(user.name == "add" for user in layer.users(op))
               for layer, op in model.pairs(*NORMS))


def no_pre_norm(model):
    return any(layer.source(layer.of("linear")[0]) is None for layer in model.layers)


def with_attention(model):
    return [layer for layer in model.layers if layer.of("attention")]


def after_attention(layer, *names):
    start = layer.of("attention")[0].place
    return [op for op in layer.of(*names) if op.place > start]


def parallel(name):
    """The MLP reads the input of attention, through its own norm or that of attention."""

    def test(model):
        for layer in with_attention(model):
            start = layer.of("attention")[0].place
            for op in after_attention(layer, *name):
                source = layer.source(op)
                if source is None or source.place < start:
                    return True
        return False

    return test


def head_size(op):
    return int(re.search(r"tensor<\?x\d+x(\d+)x", op.text)[1])


def keys_as_values(model):
    return any(len([user for user in layer.users(op) if user.name == "split_heads"]) > 1 for layer, op in model.pairs("linear"))


def own_scale(model):
    for op in model.ops("attention"):
        size = head_size(op)
        if abs(float(re.search(r"scale\(([^)]*)\)", op.text)[1]) * size**0.5 - 1) > 1e-6:
            return True
    return False


def biases(in_mlp):
    def test(model):
        for layer in with_attention(model):
            last = layer.of("merge_heads")[0]
            while last.name != "linear":
                last = next(user for user in layer.users(last))
            if any("bias(" in op.text and (op.place > last.place) == in_mlp for op in layer.of("linear")):
                return True
        return False

    return test


def rope(word):
    return has("rope", word=word)


def two_ropes(model):
    return len({re.search(r"theta\(.*?\)( scaling\(#[^>]*>\))?", op.text)[0] for op in model.ops("rope")}) > 1


def activation(name, gated):
    """For dense layers; the activated gate is multiplied, and the last matrix multiplies the result."""

    def test(model):
        for layer, op in model.pairs(name):
            products = [user for user in layer.users(op) if user.name == "mul"]
            if not gated and not products:
                return True
            if gated and any(user.name == "linear" for product in products for user in layer.users(product)):
                return True
        return False

    return test


def scaled(*producers):
    """Whether the results of these ops are multiplied in layers."""
    return lambda model: any(layer.produced_by(op, *producers) for layer, op in model.pairs("scale"))


def scaled_in_main(producer):
    return lambda model: any(model.main.produced_by(op, producer) for op in model.main.of("scale"))


def shared_experts(model):
    return any(gate.uses[0] == op.uses[0] for layer, gate in model.pairs("moe_gate") for op in layer.of("linear"))


def tied(model):
    return any(op.uses[1] == model.main.of("embedding")[0].uses[1] for op in model.main.of("lm_head"))


def parts(count):
    """Whether a stored matrix is split into that many weights of a layer's matmuls."""

    def test(model):
        found = {}
        for weight in model.weights:
            name, _, source = weight.partition(" from ")
            if ".weight" in name and "_proj_" not in name:
                for stored in set(re.findall(r'#mica\.slice<"([^"]+)"[^>]*, rows \d+ to \d+ of \d+>', source)):
                    found.setdefault(stored, set()).add(name)
        return any(len(names) == count for names in found.values())

    return test


@dataclasses.dataclass
class Feature:
    topic: str
    name: str
    written: str  # in the IR
    test: Callable


def by_topic(rows):
    """Features from rows of their fields; a row that is a string is the topic of the following ones."""
    topic = ""
    for row in rows:
        if isinstance(row, str):
            topic = row
        else:
            yield Feature(topic, *row)


FEATURES = list(by_topic((
    "Norms",
    ("RMS norms", "`rmsnorm`", has("rmsnorm")),
    ("layer norms", "`layernorm`", has("layernorm")),
    ("weight offset (1 + w)", "`rmsnorm .. weight_offset(..)`", has("rmsnorm", word="weight_offset(")),
    ("no pre-norm", "`linear` of the residual stream", no_pre_norm),
    ("post-norm", "a norm between `linear` and `add`", post_norms),
    ("q/k norm per head", "a norm after `split_heads`", lambda m: head_norms(m, True)),
    ("q/k norm, own weight per head", "a norm after `split_heads`, its weight `H x D`", lambda m: head_norms(m, False)),
    ("q/k norm over all heads", "a norm before `split_heads`", norms_over_heads),
    ("norm of values", "`l2norm` without `linear_attention`",
     lambda m: any(layer.of("l2norm") and not layer.of("linear_attention") for layer in m.layers)),
    "Attention",
    ("GQA", "`repeat_kv`", has("repeat_kv")),
    ("latent attention (MLA)", "`concat_heads`", has("concat_heads")),
    ("heads of two sizes", "`attention` with two values of D", lambda m: len({head_size(op) for op in m.ops("attention")}) > 1),
    ("values projected as keys", "`split_heads` of the same `linear` twice", keys_as_values),
    ("caches of earlier layers", "`attention` without `kv_append`",
     lambda m: any(layer.of("attention") and not layer.of("kv_append") for layer in m.layers)),
    "Weights and biases",
    ("fused qkv weight", "`weight .. from [#mica.slice<.., rows a to b of c>]`", parts(3)),
    ("fused gate_up weight", "`weight .. from [#mica.slice<.., rows a to b of c>]`", parts(2)),
    ("attention biases", "`linear .. bias(..)`", biases(False)),
    ("MLP biases", "`linear .. bias(..)`", biases(True)),
    "Positions",
    ("rope, rotate-half (NeoX)", "`rope .. half`", rope(" half ")),
    ("rope, interleaved (GPT-J)", "`rope .. interleaved`", rope(" interleaved ")),
    ("partial rope", "`rope .. rotary_dim(..)`", rope("rotary_dim(")),
    *((f"{kind} scaling", f"`rope .. scaling(#mica.{kind}_scaling<..>)`", rope(f"#mica.{kind}_scaling"))
      for kind in ("linear", "llama3", "yarn", "proportional")),
    *((f"{kind} scaling", f"`rope .. lengths(..) .. scaling(#mica.{kind}_scaling<..>)`", rope(f"#mica.{kind}_scaling"))
      for kind in ("dynamic", "longrope")),
    ("separate rope in window layers", "`rope` with two values of `theta`", two_ropes),
    ("learned positions", "`embedding %positions`", lambda m: any(op.uses[0] == "positions" for op in m.main.of("embedding"))),
    ("sinusoidal positions", "`sinusoid`", has("sinusoid", main=True)),
    ("padding row", "`sinusoid .. padding_idx(..)`", has("sinusoid", word="padding_idx(", main=True)),
    ("ALiBi", "`attention .. alibi(..)`", has("attention", word="alibi(")),
    "Attention",
    ("sliding window, all layers", "`attention .. window(..)`",
     lambda m: has("attention")(m) and all("window(" in op.text for op in m.ops("attention"))),
    ("sliding window, some layers", "`attention` with `window(..)` and without", some_without("attention", "window(")),
    ("attention softcapping", "`attention .. softcap(..)`", has("attention", word="softcap(")),
    ("scale other than 1 / sqrt(D)", "`attention .. scale(s)` with s not 1 / sqrt(D)", own_scale),
    ("attention sinks", "`attention .. sinks(..)`", has("attention", word="sinks(")),
    ("short convolution instead of attention, some layers", "`causal_conv1d` without `linear_attention`",
     lambda m: any(layer.of("causal_conv1d") and not layer.of("linear_attention") for layer in m.layers)),
    ("Mamba 2 instead of attention, some or all layers", "`causal_conv1d`, `linear_attention`, `scale_heads`",
     lambda m: any(layer.of("linear_attention") and layer.of("scale_heads") for layer in m.layers)),
    ("gated delta net instead of attention, some layers", "`causal_conv1d`, `l2norm`, `linear_attention .. beta(..)`",
     has("linear_attention", word=" beta(")),
    ("one block per layer", "functions without `attention`, `linear_attention` and `causal_conv1d`",
     lambda m: any(not layer.of("attention", "linear_attention", "causal_conv1d") for layer in m.layers)),
    ("output gate", "`sigmoid_gate` with a gate per element",
     lambda m: any("tensor<?x1xf32>" not in op.text for op in m.ops("sigmoid_gate"))),
    "MLP and residuals",
    ("parallel residual, shared norm", "`linear` of the input of attention", parallel(("linear",))),
    ("parallel residual, two norms", "a norm of the residual stream before attention", parallel(NORMS)),
    ("gated SiLU", "`silu`, `mul`", activation("silu", True)),
    ("gated GELU (tanh)", "`gelu_tanh`, `mul`", activation("gelu_tanh", True)),
    ("gated GELU (sigmoid)", "`quick_gelu`, `mul`", activation("quick_gelu", True)),
    ("plain GELU", "`gelu`", activation("gelu", False)),
    ("plain GELU (tanh)", "`gelu_tanh`", activation("gelu_tanh", False)),
    ("plain GELU (sigmoid)", "`quick_gelu`", activation("quick_gelu", False)),
    ("plain squared ReLU", "`relu2`", activation("relu2", False)),
    ("embeddings of layers", "`select_head`", has("select_head")),
    ("factor of a layer", "`scale_heads` of a single head", has("scale_heads", word="tensor<1xf32>")),
    "Experts",
    ("experts with squared ReLU", "`moe_experts .. relu2`", has("moe_experts", word="relu2")),
    ("experts without gate, squared ReLU", "`moe_experts .. relu`, its gate is up", has("moe_experts", word=" relu ")),
    ("experts that read a latent", "`moe_experts` of `linear`",
     lambda m: any(layer.produced_by(op, "linear") for layer, op in m.pairs("moe_experts"))),
    ("softmax router", "`moe_gate .. softmax`, `moe_experts`", has("moe_gate", word=" softmax ")),
    ("sigmoid router", "`moe_gate .. sigmoid`, `moe_experts`", has("moe_gate", word=" sigmoid ")),
    ("norm_topk_prob", "`moe_gate .. normalize`", has("moe_gate", word="normalize")),
    ("expert groups (topk_group)", "`moe_gate .. groups(..)`", has("moe_gate", word="groups(")),
    ("e_score_correction_bias", "`moe_gate .. e_score_correction_bias(..)`", has("moe_gate", word="e_score_correction_bias(")),
    ("router bias", "`moe_gate .. bias(..)`", has("moe_gate", word=" bias(")),
    ("expert biases", "`moe_experts .. biases(..)`", has("moe_experts", word="biases(")),
    ("clamped experts", "`moe_experts .. clamped(..)`", has("moe_experts", word="clamped(")),
    ("MXFP4 experts", "`weight .. from [#mica.slice<\".._blocks\", ..>]`", lambda m: any('_blocks", entry' in w for w in m.weights)),
    ("shared experts", "`linear` of the router's input", shared_experts),
    ("shared expert gate", "`sigmoid_gate` with a gate per row", has("sigmoid_gate", word="tensor<?x1xf32>")),
    ("dense and sparse layers", "functions with `moe_gate` and without",
     lambda m: len({bool(layer.of("moe_gate")) for layer in m.layers}) > 1),
    ("dense network beside experts", "a norm of `moe_experts`",
     lambda m: any(layer.produced_by(op, "moe_experts") for layer, op in m.pairs(*NORMS))),
    ("factors of experts", "`moe_gate .. expert_scales(..)`", has("moe_gate", word="expert_scales(")),
    ("routed scaling factor", "`scale` of `moe_experts`", scaled("moe_experts")),
    "Scales, embedding and head",
    ("residual multiplier", "`scale` of `linear`", scaled("linear")),
    ("embedding multiplier", "`scale` of `embedding`", scaled_in_main("embedding")),
    ("logit scale", "`scale` of `lm_head`", scaled_in_main("lm_head")),
    ("final logit softcapping", "`softcap`", has("softcap", main=True)),
    ("embedding norm", "a norm of `embedding`",
     lambda m: any(m.main.produced_by(op, "embedding") for op in m.main.of(*NORMS))),
    ("tied embeddings", "`lm_head` with the weight of `embedding`", tied),
    ("separate lm_head", "`lm_head` with a separate weight", lambda m: not tied(m)),
)))


def topics():
    """The topics of features, in order."""
    return list(dict.fromkeys(feature.topic for feature in FEATURES))


def features_of(text):
    """Names of the features of a module at stage `model`."""
    model = Model(text)
    return [feature.name for feature in FEATURES if feature.test(model)]
