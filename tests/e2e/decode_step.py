"""Runs single decode steps of a model object and reports their writes, in a separate process, because it calls native code.

    decode_step.py OBJECT.so MANIFEST.json DEPTH...

Prints {depth: {"scratch": bytes written, "caches": bytes changed, "pages": pages of the caches with such bytes,
"read_only_pages": the other ones, which a second run showed not to be written to, "products": calls of oneDNN}}.
"""

import ctypes
import json
import mmap
import sys

import numpy as np

PAGE = mmap.PAGESIZE
# backends/runtime/abi/RuntimeCalls.def
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64)
MATMUL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 5, *[ctypes.c_int32] * 2)


class RuntimeTable(ctypes.Structure):
    _fields_ = [("size", ctypes.c_int64), ("runtime", ctypes.c_void_p), ("parallelFor", PARALLEL_FOR),
                ("matmul", MATMUL), ("probe", ctypes.c_void_p), ("exchanges", ctypes.c_void_p * 4)]


class Runtime:
    """Runs tasks on this thread, and counts matmuls instead of computing them."""

    def __init__(self):
        self.products = 0
        self.table = RuntimeTable(ctypes.sizeof(RuntimeTable), None, PARALLEL_FOR(self.parallel_for), MATMUL(self.matmul))

    def parallel_for(self, _, body, context, tasks):
        body(context, 0, tasks)

    def matmul(self, *_):
        self.products += 1


def region(size):
    """Zeroed page-aligned memory; the mapping is never removed."""
    memory = mmap.mmap(-1, max(-(-size // PAGE), 1) * PAGE)
    return np.frombuffer(memory, "u1")[:size]


def descriptor(array, sizes):
    strides = [int(np.prod(sizes[i + 1:])) for i in range(len(sizes))]
    address = array.ctypes.data
    return (ctypes.c_int64 * (3 + 2 * len(sizes)))(address, address, 0, *sizes, *strides)


def protect(array, pages, flags):
    """Sets the protection of these pages of the array; a write that is not allowed then ends this process."""
    for page in pages:
        address = ctypes.c_void_p(array.ctypes.data + int(page) * PAGE)
        if ctypes.CDLL(None, use_errno=True).mprotect(address, ctypes.c_size_t(PAGE), flags):
            raise OSError(ctypes.get_errno(), "mprotect")


def changed_pages(before, after):
    return np.unique(np.flatnonzero(before != after) // PAGE)


def main():
    library = ctypes.CDLL(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as f:
        manifest = json.load(f)
    depths = [int(d) for d in sys.argv[3:]]
    blocks = -(-manifest["max_seq"] // manifest["position_block"])
    rng = np.random.default_rng(0)
    caches, shapes = [], []
    for cache in manifest["caches"]:
        shape = [{-1: 1, -2: blocks}.get(n, n) for n in cache["shape"]]
        size = int(np.prod(shape))
        values = rng.standard_normal(size, dtype="f4")
        raw = values if cache["element"] == "f32" else (values.view("u4") >> 16).astype("u2")
        caches.append(region(raw.nbytes))
        caches[-1][:] = raw.view("u1")
        shapes.append(shape)
    weights = region(manifest["weight_bytes"])
    scratch = region(sum(manifest["scratch"].values()))
    logits = region(manifest["vocab"] * 4)
    runtime, report = Runtime(), {}
    needed = ctypes.c_int64.in_dll(library, "mica_runtime_bytes").value
    if needed > ctypes.sizeof(RuntimeTable):
        raise ValueError(f"the model needs a table of {needed} bytes")

    def step(depth):
        row = {"tokens": 5, "sequences": 0, "positions": depth, "logit_indices": 0}
        row = {role: np.array([value], "i4") for role, value in row.items()}
        given = {role: descriptor(vector, [1]) for role, vector in row.items()}
        given |= {"weights": descriptor(weights, [weights.size]), "scratch": descriptor(scratch, [scratch.size]),
                  "logits": descriptor(logits, [1, manifest["vocab"]])}
        cache = map(descriptor, caches, shapes)
        arguments = [next(cache) if role == "cache" else given[role] for role in manifest["entry"]["arguments"]]
        decode = ctypes.c_int64(0)
        library.mica_forward((ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments]), decode,
                             ctypes.byref(runtime.table))

    for depth in depths:
        before, written = [c.copy() for c in caches], np.zeros(scratch.size, bool)
        scratch[:] = 0xA5
        step(depth)
        written |= scratch != 0xA5
        pages = [changed_pages(b, c) for b, c in zip(before, caches)]
        changed = sum(int((b != c).sum()) for b, c in zip(before, caches))
        # Again, with only those pages writable, to detect writes that do not change anything.
        others = [np.setdiff1d(np.arange(-(-c.size // PAGE)), p) for c, p in zip(caches, pages)]
        for c, b, other in zip(caches, before, others):
            c[:] = b
            protect(c, other, mmap.PROT_READ)
        scratch[:] = 0x5A
        step(depth)
        written |= scratch != 0x5A
        for c, b, other in zip(caches, before, others):
            protect(c, other, mmap.PROT_READ | mmap.PROT_WRITE)
            c[:] = b
        report[depth] = {"scratch": int(written.sum()), "caches": changed, "pages": sum(p.size for p in pages),
                         "read_only_pages": sum(o.size for o in others), "products": runtime.products}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
