// A frame has a region for inputs and one for outputs. Each has room at its end
// for operands that begin near the end.
#include "compiler/measure/probe_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"

namespace partita::measure {
namespace {

using planner::ConvKind;
using planner::ProductForm;
using program::AxisPart;
using program::Buffer;
using program::CollectiveKind;
using program::ConvDirection;
using program::DType;
using program::OperationUnion;
using program::Space;

constexpr int64_t kRegion = int64_t{32} << 20;  // bytes
// An operand may begin anywhere in a region. The largest operands have 3072 x
// 3072 elements.
constexpr int64_t kReserved = kRegion + (int64_t{40} << 20);

std::unique_ptr<program::InstructionT> MakeInstruction(
    OperationUnion operation, std::vector<Buffer> operands, int outputs,
    const std::string& name) {
  auto instruction = std::make_unique<program::InstructionT>();
  instruction->operation = std::move(operation);
  instruction->operands = std::move(operands);
  instruction->outputs = outputs;
  instruction->name = name;
  return instruction;
}

template <typename T>
OperationUnion Union(T operation) {
  OperationUnion result;
  result.Set(std::move(operation));
  return result;
}

void AddAxis(program::ProgramT& program, const std::string& name,
             int64_t size) {
  if (program.mesh == nullptr)
    program.mesh = std::make_unique<program::MeshT>();
  auto axis = std::make_unique<program::MeshAxisT>();
  axis->name = name;
  axis->size = size;
  program.mesh->axes.push_back(std::move(axis));
}

// Adds values that are neither zero nor so small that operations take longer.
void AddValues(program::ProgramT& program, DType dtype, int64_t elements) {
  auto parameter = std::make_unique<program::ParameterT>();
  parameter->name = "values";
  parameter->type = std::make_unique<program::TensorTypeT>();
  parameter->type->dtype = dtype;
  parameter->type->shape = {elements};
  program::SeedSourceT source;
  source.kind = "uniform";
  source.scale = 1;
  source.seed = 1;
  parameter->source.Set(std::move(source));
  program.parameters.push_back(std::move(parameter));
}

program::FunctionT* AddMain(program::ProgramT& program, int arguments,
                            int64_t frame_bytes) {
  auto function = std::make_unique<program::FunctionT>();
  function->name = absl::StrCat("main", program.functions.size());
  function->arguments = arguments;
  function->frame_bytes = frame_bytes;
  auto entry = std::make_unique<program::EntryT>();
  entry->main = static_cast<int>(program.functions.size());
  for (int i = 0; i < arguments; ++i) entry->main_globals.push_back(i);
  program.entries.push_back(std::move(entry));
  program.functions.push_back(std::move(function));
  return program.functions.back().get();
}

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string TypeName(DType dtype, const std::vector<int64_t>& shape) {
  return base::TypeName(program::ToBase(dtype), shape);
}

absl::Status WriteProgram(const program::ProgramT& program,
                          const std::string& path) {
  return program::WriteArtifact(path,
                                {program::SerializeProgram(program), "", {}});
}

}  // namespace

ProbeProgram::ProbeProgram(DType dtype, int devices, int group)
    : dtype_(dtype),
      element_bytes_(base::SizeOf(program::ToBase(dtype))),
      group_(group) {
  program_.producer = "partita measure";
  program_.target = "cpu";
  AddAxis(program_, "others", devices / group);
  AddAxis(program_, "group", group);
  AddValues(program_, dtype, kReserved / element_bytes_);
  main_ = AddMain(program_, 1, 2 * kReserved);
  for (const int64_t begin : {int64_t{0}, kReserved})
    main_->body.push_back(
        MakeInstruction(Union(program::CopyT()),
                        {Buffer(Space::argument, 0, kReserved),
                         Buffer(Space::frame, begin, kReserved)},
                        1, "values"));
}

Buffer ProbeProgram::Next(int64_t elements, int64_t& position, int64_t begin) {
  const int64_t bytes = elements * element_bytes_;
  const Buffer buffer(Space::frame, begin + position, bytes);
  position = (position + bytes + 63) / 64 * 64 % kRegion;
  return buffer;
}

Buffer ProbeProgram::Input(int64_t elements) {
  return Next(elements, inputs_, 0);
}

Buffer ProbeProgram::Output(int64_t elements) {
  return Next(elements, outputs_, kReserved);
}

std::string ProbeProgram::Append(OperationUnion operation,
                                 std::vector<Buffer> operands,
                                 const std::string& label) {
  main_->body.push_back(
      MakeInstruction(std::move(operation), std::move(operands), 1, label));
  return label;
}

std::string ProbeProgram::AddProduct(ProductForm form, int64_t m, int64_t n,
                                     int64_t k) {
  program::GemmT gemm;
  gemm.dtype = dtype_;
  gemm.batch = 1;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.lhs_strides = {m * k, k, 1};
  gemm.rhs_strides = {k * n, n, 1};
  gemm.out_strides = {m * n, n, 1};
  if (form == ProductForm::kLhsTransposed) gemm.lhs_strides = {m * k, 1, m};
  if (form == ProductForm::kRhsTransposed) gemm.rhs_strides = {k * n, 1, k};
  // Operands that outlive the run are packed.
  const Buffer rhs = form == ProductForm::kPacked
                         ? Buffer(Space::argument, 0, kReserved)
                         : Input(k * n);
  return Append(Union(std::move(gemm)), {Input(m * k), rhs, Output(m * n)},
                absl::StrCat("gemm 1x", m, "x", n, "x", k, " ",
                             base::NameOf(program::ToBase(dtype_))));
}

std::string ProbeProgram::AddConvolution(ConvDirection direction, ConvKind kind,
                                         int64_t in, int64_t out,
                                         int64_t side) {
  const int64_t window = kind == ConvKind::kPointwise ? 1 : 3;
  const int64_t groups = kind == ConvKind::kDepthwise ? in : 1;
  program::ConvT conv;
  conv.dtype = dtype_;
  conv.direction = direction;
  conv.channels_last = true;
  conv.input_shape = {1, side, side, in};
  conv.out_shape = {1, side, side, out};
  conv.weight_shape = {out, in / groups, window, window};
  conv.strides = conv.dilations = {1, 1};
  conv.low = conv.high = {window / 2, window / 2};
  conv.groups = groups;
  const char* name = direction == ConvDirection::forward ? "conv "
                     : direction == ConvDirection::input_grad
                         ? "conv input grad "
                         : "conv weight grad ";
  const std::string label =
      absl::StrCat(name, absl::StrJoin(conv.input_shape, "x"), " nhwc * ",
                   absl::StrJoin(conv.weight_shape, "x"), " / 1x1",
                   groups > 1 ? absl::StrCat(" groups ", groups) : "", " ",
                   base::NameOf(program::ToBase(dtype_)));
  const int64_t image = ElementsOf(conv.input_shape),
                result = ElementsOf(conv.out_shape),
                weight = ElementsOf(conv.weight_shape);
  std::vector<Buffer> operands;
  switch (direction) {
    case ConvDirection::forward:
      operands = {Input(image), Input(weight), Output(result)};
      break;
    case ConvDirection::input_grad:
      operands = {Input(result), Input(weight), Output(image)};
      break;
    case ConvDirection::weight_grad:
      operands = {Input(image), Input(result), Output(weight)};
      break;
  }
  return Append(Union(std::move(conv)), std::move(operands), label);
}

std::string ProbeProgram::AddCollective(CollectiveKind kind,
                                        int64_t& elements) {
  constexpr int64_t kColumns = 64;
  const int64_t rows =
      std::max<int64_t>(2, elements / kColumns / group_ / group_);
  const int64_t whole = rows * group_;  // divided: `rows`
  program::CollectiveT collective;
  collective.kind = kind;
  collective.dtype = dtype_;
  collective.axes = {AxisPart(1, 1, group_)};
  std::vector<int64_t> in = {whole, kColumns * group_}, out = in;
  if (kind != CollectiveKind::all_reduce) collective.dim = 0;
  if (kind == CollectiveKind::all_gather) in[0] = rows;
  if (kind == CollectiveKind::reduce_scatter) out[0] = rows;
  if (kind == CollectiveKind::all_to_all) {
    collective.other_dim = 1;
    in[1] = kColumns;
    out[0] = rows;
  }
  if (kind == CollectiveKind::exchange) {
    // Half a block of halo on each side.
    in[0] = rows;
    out[0] = 2 * rows;
    collective.size = whole;
    collective.step = rows;
    collective.offset = -rows / 2;
  }
  elements = std::max(ElementsOf(in), ElementsOf(out));
  Meet();
  collective.input_shape = in;
  collective.output_shape = out;
  // Must match the names in runtime/executor/collective_desc.cc.
  const bool reduces = kind == CollectiveKind::all_reduce ||
                       kind == CollectiveKind::reduce_scatter;
  const std::string label = absl::StrCat(
      program::EnumNameCollectiveKind(kind), reduces ? " sum " : " ",
      TypeName(dtype_, in),
      in == out ? "" : absl::StrCat(" to ", TypeName(dtype_, out)));
  return Append(Union(std::move(collective)),
                {Input(ElementsOf(in)), Output(ElementsOf(out))}, label);
}

void ProbeProgram::Meet() {
  program::CollectiveT collective;
  collective.kind = CollectiveKind::all_reduce;
  collective.dtype = dtype_;
  collective.axes = {AxisPart(1, 1, group_)};
  collective.input_shape = collective.output_shape = {1};
  Append(Union(std::move(collective)), {Input(1), Output(1)}, "meet");
}

absl::Status ProbeProgram::Write(const std::string& path) const {
  return WriteProgram(program_, path);
}

absl::Status EvictCaches(const std::string& path) {
  PARTITA_ASSIGN_OR_RETURN(const program::Artifact artifact,
                           program::Artifact::Open(path));
  const std::unique_ptr<program::ProgramT> program(artifact.program().UnPack());
  for (const auto& entry : program->entries) {
    program::FunctionT& main =
        *program->functions[static_cast<size_t>(entry->main)];
    const int64_t begin = main.frame_bytes, middle = begin + kReserved;
    main.frame_bytes = middle + kReserved;
    std::vector<std::unique_ptr<program::InstructionT>> body;
    for (auto& instruction : main.body) {
      // Copy there and back: memory that was never written is not allocated
      // yet.
      if (instruction->operation.type == program::Operation::Launch)
        for (const auto& [from, to] :
             {std::pair(begin, middle), std::pair(middle, begin)})
          body.push_back(MakeInstruction(Union(program::CopyT()),
                                         {Buffer(Space::frame, from, kReserved),
                                          Buffer(Space::frame, to, kReserved)},
                                         1, "caches"));
      body.push_back(std::move(instruction));
    }
    main.body = std::move(body);
  }
  program::ArtifactParts parts;
  parts.program = program::SerializeProgram(*program);
  parts.code = std::string(artifact.code());
  parts.data.Add(std::string(artifact.data()));
  return program::WriteArtifact(path, parts);
}

PingPong::PingPong(const std::vector<int64_t>& elements) {
  program_.producer = "partita measure";
  program_.target = "cpu";
  AddAxis(program_, "pipe", 2);
  program_.pipeline = {AxisPart(0, 1, 2)};
  const int64_t most =
      *std::max_element(elements.begin(), elements.end()) * int64_t{4};
  program::FunctionT* const mains[] = {AddMain(program_, 0, 2 * most),
                                       AddMain(program_, 0, 2 * most)};
  const auto add = [&](int entry, auto transfer, int64_t count, int64_t begin,
                       int outputs) {
    transfer.axes = program_.pipeline;
    transfer.peer = 1 - entry;
    transfer.shape = {count};
    mains[entry]->body.push_back(MakeInstruction(
        Union(std::move(transfer)), {Buffer(Space::frame, begin, count * 4)},
        outputs, "ball"));
  };
  for (const int64_t count : elements) {
    add(0, program::SendT(), count, 0, 0);
    add(1, program::ReceiveT(), count, most, 1);
    add(1, program::SendT(), count, most, 0);
    add(0, program::ReceiveT(), count, most, 1);
    sends.push_back(
        absl::StrCat("send ", TypeName(DType::f32, {count}), " to entry 1"));
    receives.push_back(absl::StrCat("receive ", TypeName(DType::f32, {count}),
                                    " from entry 1"));
  }
}

absl::Status PingPong::Write(const std::string& path) const {
  return WriteProgram(program_, path);
}

}  // namespace partita::measure
