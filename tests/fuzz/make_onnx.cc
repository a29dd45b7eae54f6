// Writes a small ONNX file with device annotations, as a seed for fuzzing.
#include <fstream>

#include "frontends/onnx/test_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ofstream file(argv[1], std::ios::binary);
  file << partita::onnx::dividedPerceptron().encoded();
  return file.good() ? 0 : 1;
}
