"""A model with known answers: after each token of a script it predicts the next one."""

import json
import pathlib

import checkpoint
import harness
import numpy as np

MODEL = harness.BUNDLED / "minimind-dense"
END = 2  # <|im_end|>


def scripted(name, template, scripts, special=()):
    """A model folder. `scripts` maps a special token, with which a template ends, to the tokens that follow it; a token may only occur
    once, and those of `special` are special tokens."""
    place = pathlib.Path(harness.folder(name)) / name
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text(encoding="utf-8"))
    size = len(tokenizer["model"]["vocab"])
    ids = {}
    for start, follow in scripts.items():
        for token in (start, *follow):
            if token in ids:
                raise ValueError(f"{token!r} is in two places")
            ids[token] = size + len(ids)
            tokenizer["added_tokens"].append({"id": ids[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                                              "normalized": False, "special": token == start or token in special})
    following = {ids[token]: ids[after] for start, follow in scripts.items() for token, after in zip((start, *follow), follow)}
    total = size + len(ids)

    def config(values):
        values.update(vocab_size=total, tie_word_embeddings=False, num_hidden_layers=1)

    def tensors(weights):
        # Each token has its own embedding direction; layers add nothing.
        hidden = weights["model.norm.weight"].shape[0]
        assert len(ids) < hidden
        embedding, head = np.zeros((total, hidden), "f4"), np.zeros((total, hidden), "f4")
        embedding[:, 0] = 1
        head[END, :] = 1
        for row, token in enumerate(ids.values(), 1):
            embedding[token] = 0
            embedding[token, row] = 1
            if token in following:
                head[END, row] = 0
                head[following[token], row] = 1
        for key in list(weights):
            if ".layers." in key and not ".layers.0." in key:
                del weights[key]
            elif key.endswith(("o_proj.weight", "down_proj.weight")):
                weights[key] = np.zeros(weights[key].shape, "f4")
            elif weights[key].dtype == np.dtype("<u2"):
                weights[key] = (weights[key].astype("u4") << 16).view("f4")
        weights["model.norm.weight"] = np.full(hidden, 10, "f4")
        weights["model.embed_tokens.weight"], weights["lm_head.weight"] = embedding, head

    checkpoint.edited(MODEL, place, config, tensors)
    (place / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    settings = json.loads((place / "tokenizer_config.json").read_text())
    settings["added_tokens_decoder"] = {str(each["id"]): {key: value for key, value in each.items() if key != "id"}
                                        for each in tokenizer["added_tokens"]}
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    (place / "chat_template.jinja").write_text(template, encoding="utf-8")
    return place
