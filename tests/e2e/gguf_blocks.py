"""Encodes f32 matrices in every block format of GGUF that Mica reads, by rounding to nearest.

Scales are computed from the extremes of each block: simple, and less precise than llama.cpp's search. Layouts are those of GGUF files;
`encode` returns the bytes and the dequantized numbers.
"""

import numpy as np

#: The 16 values of IQ4_NL and IQ4_XS, and of MXFP4 (FP4 E2M1; a sign in the highest bit).
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], "f4")
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], "f4")


def divided(a, b):
    """a / b, or 0 if b is 0."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.zeros(a.shape, "f4"), where=b != 0)


def rounded(values, low, high):
    return np.clip(np.rint(values), low, high)


def half(values):
    """The bytes of f16, and the f32 that they represent."""
    stored = values.astype("<f2")
    return stored.reshape(len(values), -1).view("u1"), stored.astype("f4")


def signed_scale(x, low):
    """The scale that maps the value of largest magnitude along the last axis to `low`, a negative number."""
    return np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1) / np.float32(low)


def nearest(x, table):
    return np.abs(x[..., None] - table).argmin(-1).astype("u1")


def halves(q):
    """4-bit numbers [blocks, 32] as 16 bytes: the second half of the block in the high bits."""
    return q[:, :16] | q[:, 16:] << 4


# ---------------------------------------------------------------- blocks of 32


def high_bits(q):
    """Bit 4 of each of 32 numbers, as 4 bytes."""
    return np.packbits(q >> 4 & 1, axis=1, bitorder="little")


def offset_32(x, bits):
    """Q4_0 and Q5_0: a scale, and numbers minus half of their range."""
    zero = 1 << bits - 1
    data, d = half(signed_scale(x, -zero))
    q = rounded(divided(x, d), -zero, zero - 1)
    stored = (q + zero).astype("u1")
    high = [high_bits(stored)] if bits == 5 else []
    return [data, *high, halves(stored & 15)], d * q


def minimum_32(x, bits):
    """Q4_1 and Q5_1: a scale and a minimum."""
    low, top = x.min(1, keepdims=True), (1 << bits) - 1
    scale, d = half((x.max(1, keepdims=True) - low) / np.float32(top))
    minimum, m = half(low)
    q = rounded(divided(x - m, d), 0, top)
    stored = q.astype("u1")
    high = [high_bits(stored)] if bits == 5 else []
    return [scale, minimum, *high, halves(stored & 15)], d * q + m


def q8_0(x):
    data, d = half(np.abs(x).max(1, keepdims=True) / np.float32(127))
    q = rounded(divided(x, d), -127, 127)
    return [data, q.astype("i1").view("u1")], d * q


def iq4_nl(x):
    data, d = half(signed_scale(x, -127))
    q = nearest(divided(x, d), IQ4)
    return [data, halves(q)], d * IQ4[q]


def mxfp4(x):
    """The scale is a power of two, stored as its exponent: the smallest one at which 6 is exceeded by at most one step."""
    largest = np.abs(x).max(1, keepdims=True)
    exponent = np.where(largest > 0, np.floor(np.log2(np.maximum(largest, 1e-38))) - 2, -127)
    stored = np.clip(exponent + 127, 0, 254).astype("u1")
    d = np.exp2(stored.astype("f4") - 127).astype("f4")
    q = nearest(divided(x, d), FP4)
    return [stored, halves(q)], d * FP4[q]


# ---------------------------------------------------------------- blocks of 256


def planes(q, bits, count):
    """Numbers with few bits [blocks, 256], `count` planes of 32 in each byte of their half of the block."""
    parts = q.reshape(len(q), -1, count, 32)
    shifts = (np.arange(count, dtype="u1") * bits).reshape(1, 1, -1, 1)
    return np.bitwise_or.reduce(parts << shifts, axis=2).reshape(len(q), -1)


def scale_min_6(scales, minimums):
    """8 scales and 8 minimums of 6 bits as 12 bytes, as in Q4_K and Q5_K."""
    first = scales[:, :4] | (scales[:, 4:] >> 4) << 6
    second = minimums[:, :4] | (minimums[:, 4:] >> 4) << 6
    third = scales[:, 4:] & 15 | (minimums[:, 4:] & 15) << 4
    return np.concatenate([first, second, third], 1)


def with_minimums(x, group, bits, scale_bits):
    """Q2_K, Q4_K and Q5_K: scales and minimums of groups, each a small number times an f16 of the block. Returns the bytes of both f16, the
    small numbers, the quantized values [blocks, 256], and the dequantized ones."""
    groups = x.reshape(len(x), -1, group)
    top, maximum = (1 << bits) - 1, (1 << scale_bits) - 1
    low = np.minimum(groups.min(2), 0)
    wide = (groups.max(2) - low) / np.float32(top)
    d_bytes, d = half(wide.max(1, keepdims=True) / np.float32(maximum))
    m_bytes, dmin = half((-low).max(1, keepdims=True) / np.float32(maximum))
    scales, minimums = rounded(divided(wide, d), 0, maximum), rounded(divided(-low, dmin), 0, maximum)
    scale, minimum = (d * scales)[..., None], (dmin * minimums)[..., None]
    q = rounded(divided(groups + minimum, scale), 0, top)
    return (d_bytes, m_bytes, scales.astype("u1"), minimums.astype("u1"), q.astype("u1").reshape(x.shape),
            (scale * q - minimum).reshape(x.shape))


def q2_k(x):
    d, dmin, scales, minimums, q, numbers = with_minimums(x, 16, 2, 4)
    return [scales | minimums << 4, planes(q, 2, 4), d, dmin], numbers


def q4_k(x):
    d, dmin, scales, minimums, q, numbers = with_minimums(x, 32, 4, 6)
    return [d, dmin, scale_min_6(scales, minimums), planes(q, 4, 2)], numbers


def q5_k(x):
    d, dmin, scales, minimums, q, numbers = with_minimums(x, 32, 5, 6)
    return [d, dmin, scale_min_6(scales, minimums), planes(q >> 4, 1, 8), planes(q & 15, 4, 2)], numbers


def with_scales(x, group, low, scale_low):
    """Q3_K and Q6_K: signed scales of groups, each a small number times an f16 of the block."""
    groups = x.reshape(len(x), -1, group)
    wide = signed_scale(groups, low)[..., 0]
    data, d = half(signed_scale(wide, scale_low))
    scales = rounded(divided(wide, d), scale_low, -scale_low - 1)
    scale = (d * scales)[..., None]
    q = rounded(divided(groups, scale), low, -low - 1)
    return data, scales.astype("i1"), (q - low).astype("u1").reshape(x.shape), (scale * q).reshape(x.shape)


def q3_k(x):
    d, scales, q, numbers = with_scales(x, 16, -4, -32)
    stored = (scales + 32).astype("u1")
    low = stored[:, :8] & 15 | (stored[:, 8:] & 15) << 4
    top = (stored >> 4).reshape(len(x), 4, 4)
    high = np.bitwise_or.reduce(top << (2 * np.arange(4, dtype="u1")).reshape(1, 4, 1), axis=1)
    return [planes(q >> 2, 1, 8), planes(q & 3, 2, 4), low, high, d], numbers


def q6_k(x):
    d, scales, q, numbers = with_scales(x, 16, -32, -128)
    parts = q.reshape(-1, 2, 2, 64)  # block, half, quarters of which two share a byte
    low = (parts[:, :, 0] & 15 | (parts[:, :, 1] & 15) << 4).reshape(len(x), -1)
    return [low, planes(q >> 4, 2, 4), scales.view("u1"), d], numbers


def iq4_xs(x):
    groups = x.reshape(len(x), 8, 32)
    wide = signed_scale(groups, -127)[..., 0]
    data, d = half(signed_scale(wide, -32))
    scales = rounded(divided(wide, d), -32, 31)
    scale = (d * scales)[..., None]
    q = nearest(divided(groups, scale), IQ4)
    stored = (scales + 32).astype("u1")
    high = np.bitwise_or.reduce((stored >> 4).astype("<u2") << (2 * np.arange(8, dtype="<u2")), axis=1).astype("<u2")
    low = stored[:, ::2] & 15 | (stored[:, 1::2] & 15) << 4
    return [data, high.reshape(-1, 1).view("u1"), low, halves(q.reshape(-1, 32)).reshape(len(x), -1)], (
        scale * IQ4[q]).reshape(x.shape)


#: GGUF's number of each type, values and bytes of a block, positions of its scales and offsets (f16; E8M0 in MXFP4), the encoder of blocks.
FORMATS = {
    "Q4_0": (2, 32, 18, (0,), lambda x: offset_32(x, 4)),
    "Q4_1": (3, 32, 20, (0, 2), lambda x: minimum_32(x, 4)),
    "Q5_0": (6, 32, 22, (0,), lambda x: offset_32(x, 5)),
    "Q5_1": (7, 32, 24, (0, 2), lambda x: minimum_32(x, 5)),
    "Q8_0": (8, 32, 34, (0,), q8_0),
    "Q2_K": (10, 256, 84, (80, 82), q2_k),
    "Q3_K": (11, 256, 110, (108,), q3_k),
    "Q4_K": (12, 256, 144, (0, 2), q4_k),
    "Q5_K": (13, 256, 176, (0, 2), q5_k),
    "Q6_K": (14, 256, 210, (208,), q6_k),
    "IQ4_NL": (20, 32, 18, (0,), iq4_nl),
    "IQ4_XS": (23, 256, 136, (0,), iq4_xs),
    "MXFP4": (39, 32, 17, (0,), mxfp4),
}
#: The same without encoders: number, values, bytes; and the positions of scales and offsets.
BLOCKS = {name: row[:3] for name, row in FORMATS.items()}
SCALES = {name: row[3] for name, row in FORMATS.items()}


def encode(values, kind):
    """Bytes of `values` [..., columns] as blocks of `kind`, and the dequantized numbers."""
    _, size, stored, _, encoder = FORMATS[kind]
    blocks = np.ascontiguousarray(values, "f4").reshape(-1, size)
    parts, numbers = encoder(blocks)
    data = np.concatenate(parts, 1)
    assert data.dtype == np.uint8 and data.shape == (len(blocks), stored), (kind, data.dtype, data.shape)
    return data.tobytes(), numbers.astype("f4").reshape(values.shape)
