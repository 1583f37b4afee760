"""A cost model of tensor parallelism: how many tokens per second a model generates on several ranks, and when replicas serve better.

A step computes one token of each of `sequences`. Its time is the sum of
- the time of a rank for its part of the matrices: the time to read them or the time to compute with them, whichever is longer, and the
  time to read its part of the cache;
- the time of the exchanges, which nothing overlaps: for each, the latency of the link times the rounds of messages, log2 of the number of
  ranks, and the bytes that a rank receives divided by the bandwidth of the link, which is lower beyond EAGER bytes.

What all ranks compute, such as norms and sampling, is not counted. Units: bytes, seconds.
"""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Shape:
    """A dense model with gated MLPs."""

    name: str
    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool = False  # embedding and output matrix are one

    def layer_parameters(self):
        columns = self.head_dim * (self.heads + 2 * self.kv_heads)
        return self.layers * self.hidden * (columns + self.heads * self.head_dim + 3 * self.inner)

    def table_parameters(self):
        """Of the output matrix. Of the embedding, a step reads a row for each token only."""
        return self.vocab * self.hidden


#: Published shapes: Llama 3.2 1B, Llama 3.1 8B, Qwen2.5 32B, Llama 3.1 70B.
SHAPES = (Shape("1B", 16, 2048, 8192, 32, 8, 64, 128256, tied=True), Shape("8B", 32, 4096, 14336, 32, 8, 128, 128256),
          Shape("32B", 64, 5120, 27648, 40, 8, 128, 152064), Shape("70B", 80, 8192, 28672, 64, 8, 128, 128256))


@dataclasses.dataclass(frozen=True)
class Format:
    """Bits per weight of layers, and of embedding and output matrix; bytes of a number that a matmul reads."""

    name: str
    layer_bits: float
    table_bits: float
    row_bytes: int


#: bf16 matmuls read rows of bf16, the others quantize rows of f32 themselves.
FORMATS = (Format("bf16", 16, 16, 2), Format("int8", 8.3, 8.3, 4), Format("int4", 4.6, 6.3, 4))


@dataclasses.dataclass(frozen=True)
class Link:
    """Seconds of a message of no bytes, and bytes per second of a rank: of the first EAGER bytes of an exchange, and of the others."""

    name: str
    latency: float
    bandwidth: float
    bulk: float


#: OpenMPI announces longer messages by TCP before it sends them (btl_tcp_eager_limit).
EAGER = 64 << 10
#: Assumptions. A message by TCP takes about 20 us with a busy processor on both sides, most of it in the kernel. Long messages are slower than the
#: link: `bulk` is what exchanges of 512 rows reached in each direction, with a limit of 10 Gb/s and without a limit, which is assumed for
#: 100 Gb/s.
LINKS = (Link("shared memory", 1e-6, 10e9, 4e9), Link("100 Gb/s", 15e-6, 12.5e9, 1.3e9), Link("10 Gb/s", 20e-6, 1.25e9, 0.6e9))


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a rank has: bytes per second of its memory, operations per second in matmuls, bytes of memory."""

    bandwidth: float
    flops: float
    memory: float


#: An assumption: a server's socket with eight channels of memory, of whose bandwidth 80 % are reached.
MACHINE = Machine(200e9, 4e12, 128e9)
#: Cached positions of each sequence, in bf16.
CONTEXT = 1024
RANKS = (1, 2, 4, 8, 16)
#: Rows of f32 that are exchanged once per step: the embedding's, and the head of a step and its tokens, which rank 0 sends.
HEADS_OF_A_STEP = 2


@dataclasses.dataclass(frozen=True)
class Exchanges:
    """What a rank receives in a step, counting its own part: numbers of exchanges and bytes. A gather of N bytes counts N."""

    latencies: int
    bytes: int


def exchanges(shape, form, ranks, rows=1, reductions=False):
    """Of a step. `reductions`: every second matmul is partitioned along K, which Mica does not do, and sums are computed where they are
    sent, so that a rank receives less than two rows."""
    hidden = 4 * shape.hidden
    if reductions:
        layer, count = 2 * hidden * 2, 2
    else:
        layer, count = 2 * hidden + form.row_bytes * (shape.heads * shape.head_dim + shape.inner), 4
    # The embedding's row is sent by all ranks; logits are those of the last row of each sequence.
    once = ranks * hidden + 4 * shape.vocab
    return Exchanges(count * shape.layers + 2 + HEADS_OF_A_STEP, rows * (shape.layers * layer + once))


def exchange_time(found, link, ranks):
    """A lower bound for reductions, of which none has the fewest rounds (a tree) and the fewest bytes (a ring)."""
    if ranks == 1:
        return 0.0
    received = found.bytes * (ranks - 1) / ranks / found.latencies  # by an exchange on average
    eager = min(received, EAGER)
    return found.latencies * (math.ceil(math.log2(ranks)) * link.latency + eager / link.bandwidth + (received - eager) / link.bulk)


def weight_bytes(shape, form):
    """Of all matrices in memory."""
    tables = 1 if shape.tied else 2
    return (shape.layer_parameters() * form.layer_bits + tables * shape.table_parameters() * form.table_bits) / 8


def cache_bytes(shape):
    """Of one sequence."""
    return 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim * CONTEXT


def compute_time(shape, form, ranks, sequences, machine):
    read = (shape.layer_parameters() * form.layer_bits + shape.table_parameters() * form.table_bits) / 8
    operations = 2 * (shape.layer_parameters() + shape.table_parameters()) * sequences
    # Ranks beyond the number of key/value heads have the same ones.
    cache = sequences * cache_bytes(shape) / min(ranks, shape.kv_heads)
    return max(read / ranks / machine.bandwidth, operations / ranks / machine.flops) + cache / machine.bandwidth


def tokens_per_s(shape, form, link, ranks, sequences=1, machine=MACHINE, reductions=False):
    """Of all sequences together, one model on all ranks."""
    time = compute_time(shape, form, ranks, sequences, machine)
    return sequences / (time + exchange_time(exchanges(shape, form, ranks, sequences, reductions), link, ranks))


def speed_of_gathers(shape, form, link, ranks):
    """The tokens per second of one sequence, relative to those with reductions: what exactness costs."""
    return tokens_per_s(shape, form, link, ranks) / tokens_per_s(shape, form, link, ranks, reductions=True)


def is_possible(shape, form, ranks, machine=MACHINE):
    """Whether one model runs on all ranks: each has as many heads as the others, and its part fits into its memory."""
    part = weight_bytes(shape, form) / ranks + cache_bytes(shape) / min(ranks, shape.kv_heads)
    return (shape.heads % ranks == 0 and (shape.kv_heads % ranks == 0 or ranks % shape.kv_heads == 0)
            and part <= machine.memory)


def possible_speeds(shape, form, link):
    """Tokens per second of one sequence, by the number of ranks."""
    return {ranks: tokens_per_s(shape, form, link, ranks) for ranks in RANKS if is_possible(shape, form, ranks)}


def replicas_per_s(shape, form, ranks, sequences, machine=MACHINE):
    """Of all sequences together, a model on each of the ranks; 0 if one does not fit."""
    each = math.ceil(sequences / ranks)
    if weight_bytes(shape, form) + each * cache_bytes(shape) > machine.memory:
        return 0.0
    return sequences / compute_time(shape, form, 1, each, machine)


MAX_SEQUENCES = 1024


def replicas_from(shape, form, link, ranks, machine=MACHINE):
    """The number of sequences from which replicas generate more tokens per second than one model on all ranks; None if there is none up to
    MAX_SEQUENCES, 0 if the model does not fit into the memory of one rank."""
    if weight_bytes(shape, form) + cache_bytes(shape) > machine.memory:
        return 0
    last = None
    for sequences in range(MAX_SEQUENCES, 0, -1):
        replicas = replicas_per_s(shape, form, ranks, sequences, machine)
        # Where their memory is full, replicas are limited by it and not by speed.
        if 0 < replicas <= tokens_per_s(shape, form, link, ranks, sequences, machine):
            break
        last = sequences if replicas else last
    return last


# ---------------------------------------------------------------- a measured machine


def measured_exchange_time(layer_us, exchange_us, shape):
    """Of a step. `layer_us`: measured exchanges of a layer; `exchange_us`: a short one."""
    return 1e-6 * (shape.layers * layer_us + (2 + HEADS_OF_A_STEP) * exchange_us)


def predicted_ratio(one_per_s, exchange_seconds):
    """The tokens per second of several ranks that have one machine's processors and memory together, divided by `one_per_s`, those of one
    process: what they compute takes the same time, and the exchanges of a step are added."""
    step = 1 / one_per_s
    return step / (step + exchange_seconds)
