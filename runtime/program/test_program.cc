// Hand-built programs through the flatbuffer's object interface.
#include "runtime/program/test_program.h"

#include <utility>

#include "runtime/program/types.h"

namespace partita::program {
namespace {

std::unique_ptr<ParameterT> MakeParameter(const std::string& name, DType dtype,
                                          std::vector<int64_t> shape) {
  auto parameter = std::make_unique<ParameterT>();
  parameter->name = name;
  parameter->type = MakeType(dtype, std::move(shape));
  return parameter;
}

uint64_t StoredBytes(const std::vector<int64_t>& shape, DType stored) {
  return static_cast<uint64_t>(*base::ByteCount(ToBase(stored), shape));
}

template <typename T>
std::string BytesOfValues(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

}  // namespace

std::unique_ptr<TensorTypeT> MakeType(DType dtype, std::vector<int64_t> shape) {
  auto type = std::make_unique<TensorTypeT>();
  type->dtype = dtype;
  type->shape = std::move(shape);
  return type;
}

std::unique_ptr<PortT> MakePort(const std::string& name, DType dtype,
                                std::vector<int64_t> shape) {
  auto port = std::make_unique<PortT>();
  port->name = name;
  port->type = MakeType(dtype, std::move(shape));
  return port;
}

std::unique_ptr<ParameterT> MakeSeeded(const std::string& name, DType dtype,
                                       std::vector<int64_t> shape,
                                       const std::string& kind, uint64_t seed) {
  auto parameter = MakeParameter(name, dtype, std::move(shape));
  SeedSourceT source;
  source.kind = kind;
  source.scale = 1.0;
  source.seed = seed;
  parameter->source.Set(std::move(source));
  return parameter;
}

std::unique_ptr<ParameterT> MakeFromFile(const std::string& name, DType dtype,
                                         std::vector<int64_t> shape,
                                         const std::string& path,
                                         uint64_t offset, DType stored) {
  FileSourceT source;
  source.path = path;
  source.offset = offset;
  source.bytes = StoredBytes(shape, stored);
  source.stored = stored;
  auto parameter = MakeParameter(name, dtype, std::move(shape));
  parameter->source.Set(std::move(source));
  return parameter;
}

std::unique_ptr<ParameterT> MakeEmbedded(const std::string& name, DType dtype,
                                         std::vector<int64_t> shape,
                                         uint64_t offset, DType stored) {
  EmbeddedSourceT source;
  source.offset = offset;
  source.bytes = StoredBytes(shape, stored);
  source.stored = stored;
  auto parameter = MakeParameter(name, dtype, std::move(shape));
  parameter->source.Set(std::move(source));
  return parameter;
}

std::unique_ptr<InstructionT> MakeInstruction(OperationUnion operation,
                                              std::vector<Buffer> operands,
                                              int outputs,
                                              const std::string& name) {
  auto instruction = std::make_unique<InstructionT>();
  instruction->operation = std::move(operation);
  instruction->operands = std::move(operands);
  instruction->outputs = outputs;
  instruction->name = name;
  return instruction;
}

std::unique_ptr<InstructionT> MakeCopy(Buffer from, Buffer to) {
  OperationUnion operation;
  operation.Set(CopyT());
  return MakeInstruction(std::move(operation), {from, to}, 1, "copy");
}

std::unique_ptr<InstructionT> MakeCall(int function, int64_t frame_offset,
                                       std::vector<Buffer> operands,
                                       int outputs) {
  CallT call;
  call.function = function;
  call.frame_offset = frame_offset;
  OperationUnion operation;
  operation.Set(std::move(call));
  return MakeInstruction(std::move(operation), std::move(operands), outputs,
                         "call");
}

std::unique_ptr<InstructionT> MakeLaunch(const LaunchT& launch,
                                         std::vector<Buffer> operands,
                                         int outputs) {
  OperationUnion operation;
  operation.Set(LaunchT(launch));
  return MakeInstruction(std::move(operation), std::move(operands), outputs,
                         "launch");
}

std::unique_ptr<InstructionT> MakeLinear(int64_t m, int64_t n, int64_t k,
                                         std::vector<Buffer> operands) {
  GemmT gemm;
  gemm.batch = 1;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.lhs_strides = {m * k, k, 1};
  gemm.rhs_strides = {k * n, n, 1};
  gemm.out_strides = {m * n, n, 1};
  gemm.has_bias = true;
  gemm.activation = Activation::relu;
  OperationUnion operation;
  operation.Set(std::move(gemm));
  return MakeInstruction(std::move(operation), std::move(operands), 1,
                         "linear");
}

std::unique_ptr<InstructionT> MakeConv3x3(int64_t channels, int64_t size,
                                          std::vector<Buffer> operands) {
  ConvT conv;
  conv.input_shape = conv.out_shape = {1, channels, size, size};
  conv.weight_shape = {channels, channels, 3, 3};
  conv.strides = conv.dilations = conv.low = conv.high = {1, 1};
  conv.groups = 1;
  OperationUnion operation;
  operation.Set(std::move(conv));
  return MakeInstruction(std::move(operation), std::move(operands), 1,
                         "conv3x3");
}

std::unique_ptr<FunctionT> MakeFunction(const std::string& name, int arguments,
                                        int results, int64_t frame_bytes) {
  auto function = std::make_unique<FunctionT>();
  function->name = name;
  function->arguments = arguments;
  function->results = results;
  function->frame_bytes = frame_bytes;
  return function;
}

SampleProgram::SampleProgram() {
  constexpr int64_t kX = 4 * 8 * 4, kW = 8 * 8 * 4, kB = 8 * 4,
                    kImage = 4 * 8 * 8 * 4, kFilter = 4 * 4 * 9 * 4;
  const int64_t bias =
      data.Add(BytesOfValues<float>({0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5}));
  const int64_t count =
      data.Add(BytesOfValues<int64_t>({0, 1, 2, 3, 4, 5, 6, 7}));
  program.producer = "test";
  program.target = "cpu";
  program.inputs.push_back(MakePort("x", DType::f32, {4, 8}));
  program.inputs.push_back(MakePort("image", DType::f32, {1, 4, 8, 8}));
  program.outputs.push_back(MakePort("y", DType::f32, {4, 8}));
  program.outputs.push_back(MakePort("z", DType::f32, {1, 4, 8, 8}));
  program.outputs.push_back(MakePort("k", DType::i64, {8}));
  program.parameters.push_back(
      MakeSeeded("w0", DType::f32, {8, 8}, "uniform", 1));
  program.parameters.push_back(
      MakeSeeded("w1", DType::f32, {8, 8}, "uniform", 2));
  program.parameters.push_back(
      MakeSeeded("c", DType::f32, {4, 4, 3, 3}, "uniform", 3));
  program.parameters.push_back(MakeEmbedded(
      "b", DType::f32, {8}, static_cast<uint64_t>(bias), DType::f32));
  program.derived.push_back(MakeType(DType::f32, {8, 8}));

  // layer(x, w, b) -> y
  auto layer = MakeFunction("layer", 4, 1, 128);
  layer->body.push_back(MakeLinear(
      4, 8, 8,
      {Argument(0, kX), Argument(1, kW), Argument(2, kB), Frame(0, kX)}));
  layer->body.push_back(MakeCopy(Frame(0, kX), Argument(3, kX)));
  program.functions.push_back(std::move(layer));
  // init(w0, w1, b) -> d
  auto init = MakeFunction("init", 4, 1, 0);
  init->body.push_back(MakeLinear(
      8, 8, 8,
      {Argument(0, kW), Argument(1, kW), Argument(2, kB), Argument(3, kW)}));
  program.functions.push_back(std::move(init));
  // main(x, image, w0, c, b, d) -> y, z, k
  auto main = MakeFunction("main", 9, 3, 256);
  main->body.push_back(MakeCall(
      0, 128, {Argument(0, kX), Argument(2, kW), Argument(4, kB), Frame(0, kX)},
      1));
  main->body.push_back(MakeCall(
      0, 128, {Frame(0, kX), Argument(5, kW), Argument(4, kB), Argument(6, kX)},
      1));
  main->body.push_back(MakeConv3x3(
      4, 8, {Argument(1, kImage), Argument(3, kFilter), Argument(7, kImage)}));
  main->body.push_back(MakeCopy(Constant(count, 64), Argument(8, 64)));
  program.functions.push_back(std::move(main));
  program.init = 1;
  program.init_parameters = {0, 1, 3};
  program.main = 2;
  program.main_globals = {0, 2, 3, 4};
}

ArtifactParts SampleProgram::Parts(std::string code) const {
  return {SerializeProgram(program), std::move(code), data};
}

}  // namespace partita::program
