"""Torch checkpoints, another format of a model's weights, in parts that a test can corrupt; `pieces` creates sentencepiece
models."""
import io
import os
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import pieces  # pylint: disable=unused-import
import torch_pickle


class Torch:
    """A folder's weights as pytorch_model.bin: a zip archive of a pickle and the tensors' bytes."""

    def __init__(self, folder):
        self.tensors = [(name, entry["shape"], folder.data[slice(*entry["data_offsets"])])
                        for name, entry in folder.header.items() if name != "__metadata__"]
        self.rebuild = ("torch._utils", "_rebuild_tensor_v2")
        self.storage_offset = 0
        self.left_out = None  # the number of a tensor whose bytes are missing
        self.compression = zipfile.ZIP_STORED

    def pickle(self):
        return torch_pickle.dictionary(
            (key, torch_pickle.tensor(torch_pickle.storage(str(i), "FloatStorage", len(data) // 4), shape, offset=self.storage_offset,
                                      rebuild=self.rebuild)) for i, (key, shape, data) in enumerate(self.tensors))

    def bytes(self):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", self.compression) as archive:
            archive.writestr("model/data.pkl", self.pickle())
            for i, (_, _, data) in enumerate(self.tensors):
                if i != self.left_out:
                    archive.writestr(f"model/data/{i}", data)
        return file.getvalue()
