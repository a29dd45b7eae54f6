// An exported program as plain structs: what models/model.json and the tables
// of weights hold, without MLIR. Names follow torch's schema.
#ifndef PARTITA_FRONTENDS_TORCH_PROGRAM_H_
#define PARTITA_FRONTENDS_TORCH_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/torch/archive.h"

namespace partita::torch {

// c10::ScalarType plus one, as the schema numbers it.
enum class ScalarType : int {
  kUnknown = 0,
  kByte = 1,
  kChar = 2,
  kShort = 3,
  kInt = 4,
  kLong = 5,
  kHalf = 6,
  kFloat = 7,
  kDouble = 8,
  kComplexHalf = 9,
  kComplexFloat = 10,
  kComplexDouble = 11,
  kBool = 12,
  kBfloat16 = 13,
  kUint16 = 28,
  kFloat8E4M3FN = 29,
  kFloat8E5M2 = 30,
  kFloat8E4M3FNUZ = 31,
  kFloat8E5M2FNUZ = 32,
  kFloat8E8M0FNU = 33,
  kUint32 = 34,
  kUint64 = 35,
};
// E.g. "float32"; "scalar type 99" for an unknown number.
std::string toString(ScalarType type);

// A size: a number, or an expression: the name of a symbol ("s77"), or what
// SymPy writes for Python ("Mul(Integer(2), Symbol('s27', integer=True))").
struct SymInt {
  int64_t value = 0;
  std::string expression;  // empty for a number

  bool operator==(const SymInt& other) const {
    return value == other.value && expression == other.expression;
  }
};

struct TensorMeta {
  ScalarType dtype = ScalarType::kUnknown;
  std::vector<SymInt> sizes, strides;
  SymInt storage_offset;
  bool requires_grad = false;
};

struct Graph;

// An integer argument: a number, or the name of a symbolic value.
struct IntArgument {
  int64_t value = 0;
  std::string name;  // empty for a number
};

struct Argument {
  enum class Kind {
    kNone,
    kTensor,
    kTensors,  // also of optional tensors: absent ones have empty names
    kInt,
    kInts,
    kFloat,
    kFloats,
    kBool,
    kBools,
    kString,
    kStrings,
    kScalarType,
    kOption,  // memory format, layout or device, which change no value
    kGraph,
    kOther,  // named by `text`
  };
  Kind kind = Kind::kNone;
  std::vector<std::string> names;  // tensors, strings
  std::vector<IntArgument> ints;   // integers, booleans, the scalar type
  std::vector<double> floats;
  std::string text;  // strings, and the kind of others
  std::shared_ptr<const Graph> graph;
};

struct NamedArgument {
  std::string name;  // as in the operator's schema; empty for higher-order ones
  Argument argument;
};

// The line of the user's program that made a node.
struct SourceLine {
  std::string file;
  int line = 0;
};

struct Node {
  std::string name;
  std::string target;  // "torch.ops.aten.add.Tensor"
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::string module;  // "transformer.h.0.attn"; empty for the model itself
  SourceLine source;
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta> tensors;
  std::map<std::string, SymInt> sym_ints;
};

struct InputSpec {
  enum class Kind { kUser, kParameter, kBuffer, kConstant, kValue };
  Kind kind = Kind::kUser;
  Argument argument;
  std::string target;  // name in the state dict, or of the constant
};

struct OutputSpec {
  // kLoss is a user's result, too. kMutation is a new value of a buffer.
  enum class Kind { kUser, kMutation };
  Kind kind = Kind::kUser;
  Argument argument;
  std::string target;
};

// The place of a stored weight.
struct Payload {
  std::string path;  // of the entry in the archive
  TensorMeta meta;
  bool is_pickled = false;
};

// Bounds of a symbol.
struct Range {
  int64_t low = 0, high = INT64_MAX;
};

struct Program {
  int64_t schema_major = 0, schema_minor = 0;
  std::string torch_version;
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<std::string> output_names;              // of the user's outputs
  std::map<std::string, Range> ranges;                // by symbol
  std::map<std::string, Payload> weights, constants;  // by name
};

// Reads the JSON text of an exported program.
bool readProgram(std::string_view json, Program& program, std::string& error);
// Reads a table of weights; `folder` holds its entries.
bool readPayloads(std::string_view json, const std::string& folder,
                  std::map<std::string, Payload>& payloads, std::string& error);
// Reads the program of a .pt2 archive with one model, and its tables.
bool readArchive(const Archive& archive, Program& program, std::string& error);

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_PROGRAM_H_
