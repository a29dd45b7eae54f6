// Makes a model's weights, or one array, from names alone: the C++ of
// tests/peers/seeded_weights.py, bit for bit. Usage: seeded_weights tensors.txt
// out.safetensors | seeded_weights --npy NAME 1x3x224x224 CENTER SPREAD out.npy
// A line of tensors.txt: name, F32 or I64 (zeros), shape as 2x3 or "scalar",
// center, spread.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Tensor {
  std::string name, dtype, shape;
  float center = 0, spread = 0;
};

std::vector<int64_t> Dims(const std::string& shape) {
  std::vector<int64_t> dims;
  if (shape == "scalar") return dims;
  std::istringstream text(shape);
  for (std::string dim; std::getline(text, dim, 'x');)
    dims.push_back(std::stoll(dim));
  return dims;
}

std::string Joined(const std::vector<int64_t>& dims, bool trailing_comma) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + (trailing_comma ? "," : "");
}

int64_t Count(const Tensor& tensor) {
  int64_t count = 1;
  for (int64_t dim : Dims(tensor.shape)) count *= dim;
  return count;
}

int64_t Bytes(const Tensor& tensor) {
  return Count(tensor) * (tensor.dtype == "I64" ? 8 : 4);
}

uint64_t NameHash(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (unsigned char byte : name) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

float Element(const Tensor& tensor, uint64_t hash, uint64_t index) {
  uint64_t z = hash + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  const double u = static_cast<double>(z >> 40) * 0x1p-24;
  // The product is exact in double, so contraction to a fused multiply-add
  // changes nothing.
  return static_cast<float>(static_cast<double>(tensor.center) +
                            static_cast<double>(tensor.spread) *
                                (2.0 * u - 1.0));
}

void WriteValues(const Tensor& tensor, std::ostream& out) {
  if (tensor.dtype == "I64") {
    const std::string zeros(Bytes(tensor), '\0');
    out.write(zeros.data(), zeros.size());
    return;
  }
  const uint64_t hash = NameHash(tensor.name);
  std::vector<float> values(Count(tensor));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = Element(tensor, hash, i);
  out.write(reinterpret_cast<const char*>(values.data()), Bytes(tensor));
}

std::string SafetensorsHeader(const std::vector<Tensor>& tensors) {
  std::ostringstream json;
  json << R"({"__metadata__": {"format": "pt"})";
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const int64_t end = offset + Bytes(tensor);
    json << ", \"" << tensor.name << R"(": {"dtype": ")" << tensor.dtype
         << R"(", "shape": [)" << Joined(Dims(tensor.shape), false)
         << R"(], "data_offsets": [)" << offset << ", " << end << "]}";
    offset = end;
  }
  json << "}";
  std::string header = json.str();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

bool WriteSafetensors(std::istream& list, std::ostream& out) {
  std::vector<Tensor> tensors;
  for (std::string line; std::getline(list, line);) {
    std::istringstream fields(line);
    Tensor tensor;
    if (!(fields >> tensor.name >> tensor.dtype >> tensor.shape >>
          tensor.center >> tensor.spread)) {
      std::cerr << "seeded_weights: expected name, dtype, shape, center and "
                   "spread, found: "
                << line << "\n";
      return false;
    }
    tensors.push_back(tensor);
  }
  const std::string header = SafetensorsHeader(tensors);
  const uint64_t size = header.size();
  out.write(reinterpret_cast<const char*>(&size), sizeof(size));
  out << header;
  for (const Tensor& tensor : tensors) WriteValues(tensor, out);
  return true;
}

void WriteNpy(const Tensor& tensor, std::ostream& out) {
  const std::vector<int64_t> dims = Dims(tensor.shape);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       Joined(dims, dims.size() == 1) + "), }";
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const uint16_t size = static_cast<uint16_t>(header.size());
  out << "\x93NUMPY" << '\x01' << '\0';
  out.write(reinterpret_cast<const char*>(&size), sizeof(size));
  out << header;
  WriteValues(tensor, out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool npy = arguments.size() == 6 && arguments[0] == "--npy";
  if (!npy && arguments.size() != 2) {
    std::cerr
        << "usage: seeded_weights tensors.txt out.safetensors\n"
           "       seeded_weights --npy NAME SHAPE CENTER SPREAD out.npy\n";
    return 2;
  }
  std::ofstream out(arguments.back(), std::ios::binary);
  bool written = true;
  if (npy) {
    WriteNpy({arguments[1], "F32", arguments[2], std::stof(arguments[3]),
              std::stof(arguments[4])},
             out);
  } else {
    std::ifstream list(arguments[0]);
    written = list && WriteSafetensors(list, out);
  }
  out.close();
  if (!written || !out) {
    std::cerr << "seeded_weights: could not write " << arguments.back() << "\n";
    return 1;
  }
  return 0;
}
