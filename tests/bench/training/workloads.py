"""The training workloads: models, batches, hyperparameters of the optimizer. Needs only numpy."""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CACHE  # noqa: E402: also finds tests/peers
import seeded_weights  # noqa: E402

RATE, BETA1, BETA2, EPSILON, DECAY = 1e-4, 0.9, 0.999, 1e-8, 0.01
PRECISIONS = ("f32", "bf16")
JAX = ("gpt2", "vit-b-16", "coatnet-0")  # of jax_models.py
EXPORTED = ("resnet-50", "convnext-t", "swin-t", "efficientnet-b0")


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    model: str  # folder in the cache, see seeded_models.py
    batch: int
    seq: int = 0  # 0: images

    @property
    def folder(self):
        return CACHE / self.model

    @property
    def is_exported(self):
        """Partita reads a .pt2 file of PyTorch in training mode instead of the folder."""
        return self.model in EXPORTED

    @property
    def source(self):
        """The model that `partita compile` reads, and its options."""
        if self.is_exported:
            return [self.folder / f"train-{self.batch}.pt2"]
        return [self.folder, "--dim", f"batch={self.batch},seq={self.seq}" if self.seq else f"batch={self.batch}", "--dropout", "0"]

    @property
    def classes(self):
        return (32000 if self.model == "llama-100m" else 50257) if self.seq else 1000

    def batch_of(self):
        """The model's input by its name, and `targets`: the next tokens, or labels."""
        if not self.seq:
            images = seeded_weights.seeded_array("images", (self.batch, 3, 224, 224), 0.0, 3.0**0.5)
            labels = seeded_weights.seeded_ids("labels", (self.batch,), self.classes)
            return {"pixel_values" if self.model.startswith("vit") else "x": images, "targets": labels}
        text = seeded_weights.seeded_ids("text", (self.batch, self.seq + 1), self.classes)
        return {"input_ids": text[:, :-1].copy(), "targets": text[:, 1:].copy()}


# 196 million parameters; not run unless named.
EXPERTS = [Workload("mixtral-200m-4x256", "mixtral-200m", 4, 256)]
WORKLOADS = [Workload("gpt2-4x256", "gpt2", 4, 256), Workload("llama-100m-4x256", "llama-100m", 4, 256),
             *(Workload(f"{model}-8", model, 8) for model in ("vit-b-16", "coatnet-0", *EXPORTED))]
# Small models, whose parallel regions take about as long as starting them: for --beside.
SMALL = [Workload("gpt2-tiny-4x64", "gpt2-tiny", 4, 64), Workload("gpt2-mini-4x64", "gpt2-mini", 4, 64),
         Workload("vit-micro-16-8", "vit-micro-16", 8), Workload("vit-ti-16-8", "vit-ti-16", 8), Workload("vit-s-16-8", "vit-s-16", 8)]


def find(name):
    for workload in WORKLOADS + EXPERTS + SMALL:
        if workload.name == name:
            return workload
    raise SystemExit(f"expected one of {', '.join(w.name for w in WORKLOADS + EXPERTS + SMALL)}, found {name}")
