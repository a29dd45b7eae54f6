// An ONNX file as plain structs: decoded, but not checked against the
// operators' meaning.
//
// Large data is not copied: names and tensor data are views into the file's
// bytes, which must outlive the model. Fields follow onnx.proto (IR version
// 13); fields that the importer does not need are skipped.
#ifndef PARTITA_FRONTENDS_ONNX_MODEL_H_
#define PARTITA_FRONTENDS_ONNX_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/onnx/device_configuration.h"
#include "frontends/onnx/wire.h"

namespace partita::onnx {

// TensorProto.DataType.
enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// E.g. "FLOAT", "INT4", or "DataType 99" for an unknown one.
std::string toString(DataType type);

using Strings = std::vector<std::pair<std::string_view, std::string_view>>;

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  DataType type = DataType::kUndefined;
  // The data is in one of these: raw (row-major, little-endian, sub-byte types
  // packed low bits first), `floats` or `doubles` (laid out like raw), `ints`
  // (one element each; 16-bit and smaller floats as bit patterns), `strings`,
  // or an external file.
  bool has_raw = false;
  std::string_view raw;
  uint64_t raw_offset = 0;  // offset of `raw` in the file
  std::string_view floats, doubles;
  uint64_t floats_offset = 0, doubles_offset = 0;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  bool is_external = false;
  Strings external;
  uint64_t offset = 0;  // offset of the message in the file
};

struct Dim {
  int64_t value = -1;  // -1: not given
  std::string_view param;
};

struct ValueInfo {
  std::string_view name;
  // A tensor's element type and shape. If the value is not a (dense) tensor,
  // `other_type` names its type: "sequence", "map", ...
  DataType type = DataType::kUndefined;
  std::string_view other_type;
  bool has_shape = false;
  std::vector<Dim> shape;
};

struct Graph;

struct Attribute {
  std::string_view name;
  // In a function body: the function's attribute that gives the value.
  std::string_view ref;
  int32_t type = 0;  // AttributeProto.AttributeType; 0 in old files
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::shared_ptr<TensorProto> t;
  std::shared_ptr<Graph> g;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct Node {
  std::string_view op_type, domain, overload, name;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> attributes;
  Strings metadata;
  // Null if there are none. Copies of a node share them.
  std::shared_ptr<std::vector<NodeConfiguration>> device_configurations;
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<std::string_view> sparse_initializers;  // encoded
  std::vector<ValueInfo> inputs, outputs, value_infos;
};

struct OperatorSet {
  std::string_view domain;
  int64_t version = 0;
};

struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<Attribute> default_attributes;
  std::vector<Node> nodes;
  std::vector<OperatorSet> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<OperatorSet> opsets;
  std::vector<Function> functions;
  Graph graph;
  Strings metadata;
  std::vector<DeviceConfiguration> configurations;
};

// Decode a ModelProto, and a TensorProto (e.g. a backend test's input_0.pb).
// Return false and set `error` if `bytes` is not one: truncated, corrupt,
// nested too deep, or with too many parts.
bool parseModel(std::string_view bytes, Model& model, WireError& error);
bool parseTensor(std::string_view bytes, TensorProto& tensor, WireError& error);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_MODEL_H_
