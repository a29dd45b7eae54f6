"""Writes tests/data/onnx-quantized: a small convolution net, quantized by onnxruntime, and what its operators compute one by one.

    python tests/peers/make_quantized_images.py tests/data/onnx-quantized
"""

import json
import os
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

CHANNELS, SIDE, IMAGES = 3, 16, 2
FORMS = {
    "u8": {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8, "per_channel": True},
    "s8": {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8, "per_channel": False},
}


def build(random):
    nodes, weights = [], []

    def conv(name, source, outputs, inputs, kernel, stride, padding, groups=1):
        terms = inputs // groups * kernel * kernel
        weight = random.standard_normal((outputs, inputs // groups, kernel, kernel)) / numpy.sqrt(terms)
        weights.append(numpy_helper.from_array(weight.astype(numpy.float32), name + ".weight"))
        weights.append(numpy_helper.from_array((0.1 * random.standard_normal(outputs)).astype(numpy.float32), name + ".bias"))
        nodes.append(helper.make_node("Conv", [source, name + ".weight", name + ".bias"], [name], name=name, strides=[stride] * 2,
                                      pads=[padding] * 4, group=groups))
        return name

    def plain(kind, *sources):
        nodes.append(helper.make_node(kind, list(sources), [kind + str(len(nodes))], name=kind + str(len(nodes))))
        return nodes[-1].output[0]

    stem = plain("Relu", conv("stem", "x", 16, CHANNELS, 3, 2, 1))
    window = plain("Relu", conv("window", stem, 16, 16, 3, 1, 1))
    # Depthwise, then pointwise of what may be negative.
    wide = conv("pointwise", conv("depthwise", window, 16, 16, 3, 1, 1, groups=16), 32, 16, 1, 1, 0)
    total = plain("Relu", plain("Add", wide, conv("shortcut", stem, 32, 16, 1, 1, 0)))
    last = conv("grouped", total, 8, 32, 3, 1, 1, groups=2)
    nodes.append(helper.make_node("Flatten", [plain("GlobalAveragePool", last)], ["y"], name="flatten"))
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", CHANNELS, SIDE, SIDE])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 8])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


class Images(CalibrationDataReader):
    def __init__(self, random):
        self.batches = iter([{"x": random.standard_normal((4, CHANNELS, SIDE, SIDE)).astype(numpy.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.batches, None)


def run(path, x):
    options = onnxruntime.SessionOptions()
    # Without fusions: QuantizeLinear and DequantizeLinear are operators of floats.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options).run(None, {"x": x})[0]


def step_of(path):
    """The scale of the result, which the last DequantizeLinear multiplies by."""
    graph = onnx.load(path).graph
    last = next(node for node in graph.node if "y" in node.output)
    return float(next(numpy_helper.to_array(each) for each in graph.initializer if each.name == last.input[1]))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    random = numpy.random.default_rng(0)
    source = os.path.join(folder, "float.onnx")
    onnx.save(build(random), source)
    x = random.standard_normal((IMAGES, CHANNELS, SIDE, SIDE)).astype(numpy.float32)
    numpy.save(os.path.join(folder, "x.npy"), x)
    expected = {"float": {"y": run(source, x).ravel().tolist(), "step": 0}}
    for form, options in FORMS.items():
        path = os.path.join(folder, form + ".onnx")
        quantize_static(source, path, Images(numpy.random.default_rng(1)), quant_format=QuantFormat.QDQ, **options)
        expected[form] = {"y": run(path, x).ravel().tolist(), "step": step_of(path)}
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf8") as file:
        json.dump(expected, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
