"""Makes tests/data/onnx-packed: BERT of tests/data/onnx-tiny with weights of 4 bits, as onnxruntime's quantizer writes them.

Each NAME.onnx has NAME.safetensors: inputs and onnxruntime's first output. It needs the environment of `tests/peers/setup.sh --torch`.
Usage: make_packed_onnx.py tests/data
"""

import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from safetensors.numpy import load_file, save_file

CASES = {"symmetric": (32, True), "zeros": (32, False), "blocks16": (16, False)}


def main():
    root = pathlib.Path(sys.argv[1])
    (root / "onnx-packed").mkdir(exist_ok=True)
    inputs = {name.removeprefix("in."): value for name, value in load_file(root / "onnx-tiny/bert_mlm/io.safetensors").items()
              if name.startswith("in.")}
    for name, (block, is_symmetric) in CASES.items():
        quantizer = MatMulNBitsQuantizer(onnx.load(root / "onnx-tiny/bert_mlm/model_eval.onnx"), block_size=block, is_symmetric=is_symmetric)
        quantizer.process()
        model = quantizer.model.model
        assert any(node.op_type == "MatMulNBits" for node in model.graph.node)
        path = root / "onnx-packed" / (name + ".onnx")
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        known = {each.name for each in session.get_inputs()}
        outputs = session.run(None, {key: value for key, value in inputs.items() if key in known})
        tensors = {"in." + key: value for key, value in inputs.items() if key in known}
        tensors["out.y"] = numpy.ascontiguousarray(outputs[0])
        save_file(tensors, path.with_suffix(".safetensors"))


if __name__ == "__main__":
    main()
