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

std::unique_ptr<KernelT> MakeKernel(const std::string& name, double cycles) {
  auto kernel = std::make_unique<KernelT>();
  kernel->name = name;
  kernel->cycles = cycles;
  return kernel;
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

void DescribeOutputs(ProgramT& program) {
  for (auto& function : program.functions) {
    for (auto& instruction : function->body) {
      if (instruction->outputs == 0 ||
          instruction->operation.type == Operation::Call)
        continue;
      const int64_t bytes = instruction->operands.back().bytes();
      instruction->output_types.push_back(
          bytes == 8 ? MakeType(DType::i64, {1})
                     : MakeType(DType::f32, {bytes / 4}));
    }
  }
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

std::unique_ptr<InstructionT> MakeProduct(const Product& product,
                                          std::vector<Buffer> operands,
                                          const std::string& name) {
  const auto [m, n, k, lhs_transposed, has_residual, rhs_transposed] = product;
  GemmT gemm;
  gemm.batch = 1;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.lhs_strides = {m * k, lhs_transposed ? 1 : k, lhs_transposed ? m : 1};
  gemm.rhs_strides = {k * n, rhs_transposed ? 1 : n, rhs_transposed ? k : 1};
  gemm.out_strides = {m * n, n, 1};
  gemm.has_residual = has_residual;
  OperationUnion operation;
  operation.Set(std::move(gemm));
  return MakeInstruction(std::move(operation), std::move(operands), 1, name);
}

std::unique_ptr<MeshT> MakeMesh(
    const std::vector<std::pair<std::string, int64_t>>& axes) {
  auto mesh = std::make_unique<MeshT>();
  for (const auto& [name, size] : axes) {
    auto axis = std::make_unique<MeshAxisT>();
    axis->name = name;
    axis->size = size;
    mesh->axes.push_back(std::move(axis));
  }
  return mesh;
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

AxisPart WholeAxis(int64_t axis, int64_t size) {
  return AxisPart(axis, 1, size);
}

std::unique_ptr<ShardT> MakeShard(
    std::vector<int64_t> shape,
    const std::vector<std::vector<AxisPart>>& axes) {
  auto shard = std::make_unique<ShardT>();
  for (size_t i = 0; i < shape.size(); ++i) {
    auto dim = std::make_unique<DimShardT>();
    int64_t shards = 1;
    for (const AxisPart& part : axes[i]) shards *= part.size();
    dim->axes = axes[i];
    dim->block = (shape[i] + shards - 1) / shards;
    shard->dims.push_back(std::move(dim));
  }
  shard->shape = std::move(shape);
  return shard;
}

std::unique_ptr<InstructionT> MakeCollective(const CollectiveT& collective,
                                             Buffer in, Buffer out,
                                             const std::string& name) {
  OperationUnion operation;
  operation.Set(CollectiveT(collective));
  return MakeInstruction(std::move(operation), {in, out}, 1, name);
}

std::unique_ptr<InstructionT> MakeAwait(int token) {
  AwaitT await;
  await.token = token;
  OperationUnion operation;
  operation.Set(std::move(await));
  return MakeInstruction(std::move(operation), {}, 0, "await");
}

std::unique_ptr<InstructionT> MakeSum(const std::vector<AxisPart>& axes,
                                      std::vector<int64_t> shape, Buffer in,
                                      Buffer out, const std::string& name) {
  CollectiveT sum;
  sum.kind = CollectiveKind::all_reduce;
  sum.axes = axes;
  sum.input_shape = sum.output_shape = std::move(shape);
  return MakeCollective(sum, in, out, name);
}

EntryT& AddEntry(ProgramT& program, int main, std::vector<int> globals) {
  auto entry = std::make_unique<EntryT>();
  for (size_t i = 0; i < program.inputs.size(); ++i)
    entry->inputs.push_back(static_cast<int>(i));
  for (size_t i = 0; i < program.outputs.size(); ++i)
    entry->outputs.push_back(static_cast<int>(i));
  entry->main = main;
  entry->main_globals = std::move(globals);
  program.entries.push_back(std::move(entry));
  return *program.entries.back();
}

DividedProgram::DividedProgram(int64_t batch, int64_t data_axis,
                               int64_t tensor_axis) {
  constexpr int64_t kWidth = 8, kHidden = 7;
  const AxisPart over_data = WholeAxis(0, data_axis);
  const AxisPart over_tensor = WholeAxis(1, tensor_axis);
  const int64_t rows = (batch + data_axis - 1) / data_axis;
  const int64_t hidden = (kHidden + tensor_axis - 1) / tensor_axis;
  const int64_t x_bytes = rows * kWidth * 4, w_bytes = kWidth * hidden * 4;
  const int64_t all_bytes = batch * kWidth * 4;

  program.mesh = MakeMesh({{"data", data_axis}, {"tensor", tensor_axis}});
  program.target = "cpu";
  program.inputs.push_back(MakePort("x", DType::f32, {rows, kWidth}));
  program.inputs[0]->shard = MakeShard({batch, kWidth}, {{over_data}, {}});
  program.outputs.push_back(MakePort("y", DType::f32, {rows, kWidth}));
  program.outputs[0]->shard = MakeShard({batch, kWidth}, {{over_data}, {}});
  program.outputs.push_back(MakePort("all", DType::f32, {batch, kWidth}));
  program.outputs.push_back(MakePort("where", DType::i64, {1}));
  program.outputs[2]->shard =
      MakeShard({data_axis * tensor_axis}, {{over_data, over_tensor}});

  program.parameters.push_back(
      MakeSeeded("w0", DType::f32, {kWidth, hidden}, "uniform", 1));
  program.parameters[0]->shard =
      MakeShard({kWidth, kHidden}, {{}, {over_tensor}});
  program.parameters.push_back(
      MakeSeeded("b0", DType::f32, {hidden}, "uniform", 2));
  program.parameters[1]->shard = MakeShard({kHidden}, {{over_tensor}});
  std::vector<float> w1;
  for (int i = 0; i < kHidden * kWidth; ++i)
    w1.push_back(static_cast<float>(i % 5 - 2));
  const int64_t offset = data.Add(BytesOfValues(w1));
  program.parameters.push_back(MakeEmbedded("w1", DType::f32, {kHidden, kWidth},
                                            static_cast<uint64_t>(offset),
                                            DType::f32));
  program.parameters[2]->type->shape = {hidden, kWidth};
  program.parameters[2]->shard =
      MakeShard({kHidden, kWidth}, {{over_tensor}, {}});
  auto place = std::make_unique<ParameterT>();
  place->name = "place";
  place->type = MakeType(DType::i64, {1});
  CoordinateSourceT coordinate;
  coordinate.axes = {over_data, over_tensor};
  place->source.Set(std::move(coordinate));
  program.parameters.push_back(std::move(place));

  // main(x, w0, b0, w1, place) -> y, all, where. The hidden rows are at byte 0
  // of the frame, followed by the partial sums.
  const int64_t hidden_bytes = (rows * hidden * 4 + 63) / 64 * 64;
  const int64_t y_bytes = (x_bytes + 63) / 64 * 64;
  auto main = MakeFunction("main", 8, 3, hidden_bytes + y_bytes);
  main->body.push_back(
      MakeLinear(rows, hidden, kWidth,
                 {Argument(0, x_bytes), Argument(1, w_bytes),
                  Argument(2, hidden * 4), Frame(0, rows * hidden * 4)}));
  auto second = MakeLinear(rows, kWidth, hidden,
                           {Frame(0, rows * hidden * 4), Argument(3, w_bytes),
                            Frame(hidden_bytes, x_bytes)});
  second->operation.AsGemm()->has_bias = false;
  second->operation.AsGemm()->activation = Activation::none;
  main->body.push_back(std::move(second));
  CollectiveT sum;
  sum.kind = CollectiveKind::all_reduce;
  sum.axes = {over_tensor};
  sum.input_shape = sum.output_shape = {rows, kWidth};
  main->body.push_back(MakeCollective(sum, Frame(hidden_bytes, x_bytes),
                                      Argument(5, x_bytes), "mlp.down"));
  CollectiveT gather;
  gather.kind = CollectiveKind::all_gather;
  gather.axes = {over_data};
  gather.dim = 0;
  gather.input_shape = {rows, kWidth};
  gather.output_shape = {batch, kWidth};
  main->body.push_back(MakeCollective(gather, Argument(5, x_bytes),
                                      Argument(6, all_bytes), "gather"));
  main->body.push_back(MakeCopy(Argument(4, 8), Argument(7, 8)));
  program.functions.push_back(std::move(main));
  AddEntry(program, 0, {0, 1, 2, 3});
}

void DividedProgram::StartCollectives() {
  auto& body = program.functions[0]->body;
  auto copy = std::move(body.back());
  body.pop_back();
  for (size_t i = 0; i < 2; ++i)
    body[2 + i]->operation.AsCollective()->token = static_cast<int>(1 + i);
  body.insert(body.begin() + 3, std::move(copy));
  body.insert(body.begin() + 4, MakeAwait(1));
  body.push_back(MakeAwait(2));
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
  EntryT& entry = AddEntry(program, 2, {0, 2, 3, 4});
  entry.derived.push_back(MakeType(DType::f32, {8, 8}));
  entry.init = 1;
  entry.init_parameters = {0, 1, 3};
}

ArtifactParts SampleProgram::Parts(std::string code) const {
  return {SerializeProgram(program), std::move(code), data};
}

}  // namespace partita::program
