"""The workloads: models, fixed shapes, inputs. Needs only numpy."""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CACHE  # noqa: E402: also finds tests/peers
import seeded_weights  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    model: str  # folder in the cache, see seeded_models.py
    batch: int
    seq: int = 0  # 0: an image

    @property
    def folder(self):
        return CACHE / self.model

    @property
    def onnx(self):
        return CACHE / f"{self.name}.onnx"

    @property
    def dims(self):
        return {"batch": self.batch, "seq": self.seq} if self.seq else {"batch": self.batch}

    def inputs(self):
        """Input name -> array. MiniLM's batch has texts of different lengths, padded, like real batches."""
        if not self.seq:
            image = seeded_weights.seeded_array("image", (self.batch, 3, 224, 224), 0.0, 3.0**0.5)
            return {"x" if self.model == "coatnet-0" else "pixel_values": image}
        gpt2 = self.model.startswith("gpt2")
        vocabulary = 50257 if gpt2 else 30522
        ids = seeded_weights.seeded_ids("ids", (self.batch, self.seq), vocabulary)
        if gpt2:
            return {"input_ids": ids}
        mask = ids * 0 + 1
        for row in range(self.batch):
            mask[row, self.seq - row * self.seq // 16:] = 0
        return {"input_ids": ids * mask, "attention_mask": mask}


WORKLOADS = [
    Workload("minilm-8x128", "minilm", 8, 128),
    Workload("minilm-1x16", "minilm", 1, 16),
    Workload("gpt2-1x128", "gpt2", 1, 128),
    Workload("vit-b-16-1", "vit-b-16", 1),
    Workload("coatnet-0-1", "coatnet-0", 1),
]
# Small models, whose parallel regions take about as long as starting them: for --beside.
SMALL = [
    Workload("gpt2-tiny-4x64", "gpt2-tiny", 4, 64),
    Workload("gpt2-mini-4x64", "gpt2-mini", 4, 64),
    Workload("vit-micro-16-4", "vit-micro-16", 4),
    Workload("vit-ti-16-1", "vit-ti-16", 1),
    Workload("vit-s-16-1", "vit-s-16", 1),
]


def find(name):
    for workload in WORKLOADS + SMALL:
        if workload.name == name:
            return workload
    raise SystemExit(f"expected one of {', '.join(w.name for w in WORKLOADS + SMALL)}, found {name}")
