"""Prepares a workload in the cache: the model's folder and its ONNX export at the workload's shapes. Usage: prepare.py WORKLOAD"""

import sys

import workloads
import seeded_models


def main():
    workload = workloads.find(sys.argv[1])
    folder = seeded_models.ensure_folder(workload.model, workloads.CACHE)
    if not workload.onnx.exists():
        seeded_models.export_onnx(seeded_models.load(workload.model, folder), workload.inputs(), workload.onnx)


if __name__ == "__main__":
    main()
