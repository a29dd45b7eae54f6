// Writes small ONNX files as seeds for fuzzing, one with every kind of content
// and one with device annotations: make_onnx SAMPLE DIVIDED.
#include <fstream>
#include <string>

#include "frontends/onnx/test_model.h"

namespace {

namespace onnx = partita::onnx;

onnx::Message SmallModel() {
  using onnx::attribute;
  using onnx::kF32;
  using onnx::node;
  using onnx::valueInfo;
  const onnx::Message branch = onnx::graph({node("Neg", {"x"}, {"n"})}, {},
                                           {valueInfo("n", kF32, {"2"})});
  const onnx::Message function = onnx::Message()
                                     .bytes(1, "Twice")
                                     .bytes(4, "a")
                                     .bytes(5, "b")
                                     .message(7, node("Add", {"a", "a"}, {"b"}))
                                     .bytes(10, "own");
  return onnx::model(
      onnx::graph(
          {node("Add", {"x", "w"}, {"s"}, {}, "", "add"),
           node("Twice", {"s"}, {"t"}, {}, "own"),
           node("If", {"c"}, {"y"},
                {attribute("then_branch", branch), attribute("k", int64_t{-3}),
                 attribute("axes", std::vector<int64_t>{0, -1, 1 << 20})})},
          {valueInfo("x", kF32, {"batch", "2"}), valueInfo("z", kF32, {""})},
          {valueInfo("y", kF32, {"batch", "2"})},
          {onnx::floats("w", {2}, {1.5f, -2}), onnx::int64s("i", {1}, {7}),
           onnx::external("e", {2, 3}, "weights.bin", "64")}),
      17, {function});
}

bool Write(const std::string& path, const onnx::Message& model) {
  std::ofstream file(path, std::ios::binary);
  file << model.encoded();
  return file.flush().good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return Write(argv[1], SmallModel()) &&
                 Write(argv[2], onnx::dividedPerceptron())
             ? 0
             : 1;
}
