// Translates instructions into arguments of the planner's cost model.
#include "compiler/simulator/cluster_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "compiler/core/precision.h"
#include "compiler/core/traffic.h"
#include "compiler/format/format.h"
#include "compiler/planner/cost/cost.h"
#include "runtime/base/dtype.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"

namespace partita::simulator {
namespace {

using core::Precision;
using planner::ProductForm;
using program::DType;
using program::Instruction;

// compiler/kernels/estimate_work.cc: one cycle of fused products on full
// registers is 64 floating-point operations.
constexpr double kOperationsOfCycle = 64;

Precision PrecisionOf(DType dtype) {
  return dtype == DType::bf16  ? Precision::kBF16
         : dtype == DType::f16 ? Precision::kF16
                               : Precision::kF32;
}

Precision PrecisionOf(const planner::Device& device, DType dtype) {
  return planner::ComputedIn(device, PrecisionOf(dtype));
}

// The precision of a product's factors.
Precision PrecisionOf(const program::Gemm& gemm) {
  switch (gemm.factors()) {
    case program::GemmFactors::f8:
    case program::GemmFactors::f8_lhs_e5m2:
    case program::GemmFactors::f8_rhs_e5m2:
      return Precision::kF8;
    default:
      return PrecisionOf(gemm.dtype());
  }
}

DType DTypeOf(const Instruction& instruction) {
  if (const program::Gemm* gemm = instruction.operation_as_Gemm())
    return gemm->dtype();
  if (const auto* grouped = instruction.operation_as_GroupedGemm())
    return grouped->dtype();
  if (const program::Conv* conv = instruction.operation_as_Conv())
    return conv->dtype();
  // Kernels compute products of 16 bits if a result has 16; attention has its
  // log-sum-exp in f32 beside it.
  const auto* types = instruction.output_types();
  if (program::SizeOrZero(types) == 0) return DType::f32;
  for (const program::TensorType* type : *types)
    if (type->dtype() == DType::bf16 || type->dtype() == DType::f16)
      return type->dtype();
  return types->Get(0)->dtype();
}

double BytesTouched(const Instruction& instruction) {
  double bytes = 0;
  if (instruction.operands() != nullptr)
    for (const program::Buffer* buffer : *instruction.operands())
      bytes += static_cast<double>(buffer->bytes());
  return bytes;
}

int64_t ProductOf(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

// Number of positions in a convolution window, i.e. elements per input channel.
int64_t WindowArea(const std::vector<int64_t>& weight) {
  return ProductOf({weight.begin() + 2, weight.end()});
}

bool Trains(const program::Program& program) {
  if (program.entries() == nullptr) return false;
  for (const program::Entry* entry : *program.entries())
    if (program::SizeOrZero(entry->main_updates()) > 0) return true;
  return false;
}

// Weights that are never updated are arguments and are packed once.
ProductForm FormOf(const program::Program& program, const program::Gemm& gemm,
                   const Instruction& instruction) {
  const program::Buffer& rhs = *instruction.operands()->Get(1);
  if (rhs.space() != program::Space::frame && !Trains(program))
    return ProductForm::kPacked;
  if (gemm.rhs_strides()->Get(2) != 1 && gemm.n() > 1)
    return ProductForm::kRhsTransposed;
  return gemm.lhs_strides()->Get(2) != 1 && gemm.k() > 1
             ? ProductForm::kLhsTransposed
             : ProductForm::kPlain;
}

// The parameter behind an operand of a main: one of its globals, or the new
// value of one, which are its last arguments. -1: none.
struct ParameterOperand {
  int parameter = -1;
  bool is_new = false;
};
ParameterOperand ParameterOf(const program::Entry& entry,
                             const program::Function& main,
                             const program::Buffer& buffer) {
  if (buffer.space() != program::Space::argument) return {};
  const int64_t updates = program::SizeOrZero(entry.main_updates());
  const int64_t update = buffer.value() - (main.arguments() - updates);
  if (update >= 0 && update < updates)
    return {entry.main_updates()->Get(static_cast<unsigned>(update)), true};
  const int64_t global = buffer.value() - program::SizeOrZero(entry.inputs());
  if (global < 0 || global >= program::SizeOrZero(entry.main_globals()))
    return {};
  return {entry.main_globals()->Get(static_cast<unsigned>(global)), false};
}

ParameterUse UseOf(const program::Program& program, const program::Entry& entry,
                   const program::Function& main,
                   const Instruction& instruction) {
  const auto& operands = *instruction.operands();
  const unsigned inputs =
      operands.size() - static_cast<unsigned>(instruction.outputs());
  ParameterUse use;
  use.overwrites = instruction.outputs() > 0;
  std::set<int> read;
  for (unsigned i = 0; i < operands.size(); ++i) {
    const program::Buffer& buffer = *operands.Get(i);
    const ParameterOperand found = ParameterOf(entry, main, buffer);
    const bool is_output = i >= inputs;
    if (is_output && (!found.is_new || read.count(found.parameter) == 0))
      use.overwrites = false;
    // The indices of derived globals follow the parameters'.
    if (found.parameter < 0 ||
        found.parameter >= program::SizeOrZero(program.parameters()))
      continue;
    if (!is_output) read.insert(found.parameter);
    if (program.parameters()
            ->Get(static_cast<unsigned>(found.parameter))
            ->host())
      (is_output ? use.host_written : use.host_read) +=
          static_cast<double>(buffer.bytes());
  }
  return use;
}

int64_t BytesOf(DType dtype, const std::vector<int64_t>& shape) {
  return *base::ByteCount(program::ToBase(dtype), shape);
}

int64_t ExchangedBytes(const program::Collective& collective, int64_t group) {
  const auto input = program::ToVector(collective.input_shape()),
             output = program::ToVector(collective.output_shape());
  const size_t dim = static_cast<size_t>(collective.dim());
  core::CollectiveWork work;
  work.kind = core::CollectiveKind::kExchange;
  work.group = group;
  work.input_bytes = BytesOf(collective.dtype(), input);
  work.rows = input[dim];
  work.output_rows = output[dim];
  work.size = collective.size();
  work.step = collective.step();
  work.offset = collective.offset();
  return core::BytesMoved(work);
}

// A broadcast is priced as an all-gather of as many bytes: both leave all of
// them on every device.
core::CollectiveKind PricedKind(program::CollectiveKind kind) {
  return kind == program::CollectiveKind::broadcast
             ? core::CollectiveKind::kAllGather
             : format::FromFormat(kind);
}

// Elements of 16 bits in 16 bytes: products on GPUs are fast if rows begin at
// multiples of them (those of 8 bits always do). For other rows, libraries load
// fewer bytes at a time, and the product takes this many times as long: an
// estimate from reports of GPT-2 with vocabularies of 50,257 and 50,304, not
// measured here.
constexpr int64_t kAlignedElements = 8;
constexpr double kOddRowsSlowness = 2.5;

// True if a product of 16-bit floats reads or writes rows that do not begin at
// multiples of 16 bytes, on a GPU.
bool HasOddRows(const program::Program& program, const program::Gemm& gemm) {
  const Precision precision = PrecisionOf(gemm);
  if (!program::IsForGpus(program) || precision == Precision::kF32 ||
      precision == Precision::kF8)
    return false;
  const int64_t batch = gemm.batch(), m = gemm.m(), n = gemm.n(), k = gemm.k();
  const auto odd = [](const flatbuffers::Vector<int64_t>& strides,
                      std::array<int64_t, 3> sizes) {
    for (unsigned i = 0; i < 3; ++i)
      if (sizes[i] > 1 && strides.Get(i) != 1 &&
          strides.Get(i) % kAlignedElements != 0)
        return true;
    return false;
  };
  return odd(*gemm.lhs_strides(), {batch, m, k}) ||
         odd(*gemm.rhs_strides(), {batch, k, n}) ||
         odd(*gemm.out_strides(), {batch, m, n});
}

}  // namespace

int64_t CostBytes(const program::Collective& collective) {
  if (collective.kind() == program::CollectiveKind::exchange)
    return ExchangedBytes(collective, program::GroupSize(collective.axes()));
  if (collective.kind() == program::CollectiveKind::send_rows ||
      collective.kind() == program::CollectiveKind::return_rows)
    return BytesOf(collective.dtype(),
                   {collective.size(), collective.input_shape()->Get(1)});
  return std::max(
      BytesOf(collective.dtype(), program::ToVector(collective.input_shape())),
      BytesOf(collective.dtype(),
              program::ToVector(collective.output_shape())));
}

std::vector<double> KernelCyclesOf(const program::Program& program) {
  std::vector<double> cycles;
  for (unsigned i = 0; i < program::SizeOrZero(program.kernels()); ++i)
    cycles.push_back(program.kernels()->Get(i)->cycles());
  return cycles;
}

ParameterUses ParameterUsesOf(const program::Program& program) {
  ParameterUses uses;
  for (const program::Entry* entry : *program.entries()) {
    const program::Function& main =
        *program.functions()->Get(static_cast<unsigned>(entry->main()));
    for (unsigned i = 0; i < program::SizeOrZero(main.body()); ++i) {
      const Instruction* instruction = main.body()->Get(i);
      if (instruction->operation_as_Launch() == nullptr) continue;
      const ParameterUse use = UseOf(program, *entry, main, *instruction);
      if (use.overwrites || use.host_read > 0 || use.host_written > 0)
        uses.emplace(instruction, use);
    }
  }
  return uses;
}

ClusterCosts::ClusterCosts(planner::Cluster cluster, Faults faults,
                           std::vector<double> kernel_cycles,
                           ParameterUses parameter_uses)
    : cluster_(std::move(cluster)),
      faults_(std::move(faults)),
      kernel_cycles_(std::move(kernel_cycles)),
      parameter_uses_(std::move(parameter_uses)) {}

double ClusterCosts::Kernel(const program::Launch& launch,
                            const Instruction& instruction) const {
  const planner::Device& device = cluster_.device;
  double bytes =
      BytesTouched(instruction) - static_cast<double>(launch.unread_bytes());
  double host = 0;  // seconds
  const auto found = parameter_uses_.find(&instruction);
  const ParameterUse use =
      found == parameter_uses_.end() ? ParameterUse() : found->second;
  if (device.host_bandwidth > 0) {
    bytes -= use.host_read + use.host_written;
    host = std::max(use.host_read, use.host_written) / device.host_bandwidth;
  }
  const double memory =
      std::max(host, use.overwrites ? planner::UpdateTime(device, bytes)
                                    : planner::MemoryBoundTime(device, bytes));
  const Precision precision = PrecisionOf(device, DTypeOf(instruction));
  // Attention has one result forward and several backward. GPU kernels have no
  // cycle estimate.
  const bool backward = instruction.outputs() > 1;
  if (launch.operations() > 0 &&
      (launch.grid() != nullptr ||
       planner::FindTable(device.tables, planner::AttentionName(backward)) !=
           nullptr))
    return planner::KernelTime(device, precision, bytes,
                               static_cast<double>(launch.operations()),
                               backward);
  const size_t kernel = static_cast<size_t>(launch.kernel());
  if (kernel >= kernel_cycles_.size()) return memory;
  const double cycles =
      kernel_cycles_[kernel] * static_cast<double>(launch.range());
  if (device.cycle > 0)
    return std::max(memory, device.kernel + device.cycle * cycles);
  const double rate =
      device.peak[static_cast<size_t>(precision)] * device.matmul;
  return std::max(memory, device.kernel + cycles * kOperationsOfCycle / rate);
}

double ClusterCosts::Product(Precision precision, int64_t batch, int64_t m,
                             int64_t n, int64_t k, ProductForm form) const {
  return planner::MatmulTime(cluster_.device,
                             planner::ComputedIn(cluster_.device, precision),
                             batch, m, n, k, form);
}

double ClusterCosts::Gemm(const program::Program& program,
                          const program::Gemm& gemm,
                          const Instruction& instruction) const {
  int64_t batch = gemm.batch(), m = gemm.m();
  // If all batch entries share one matrix and their rows are contiguous, the
  // batch is one product (runtime/cpu/gemm.cc).
  const auto& lhs = *gemm.lhs_strides();
  if (gemm.rhs_strides()->Get(0) == 0 && lhs.Get(0) == m * lhs.Get(1)) {
    m *= batch;
    batch = 1;
  }
  double seconds = Product(PrecisionOf(gemm), batch, m, gemm.n(), gemm.k(),
                           FormOf(program, gemm, instruction));
  if (gemm.dtype() == DType::f64) seconds *= 2;
  if (HasOddRows(program, gemm)) seconds *= kOddRowsSlowness;
  // A pre-activation is another matrix like the result.
  if (gemm.preactivation() != program::Preactivation::none)
    seconds += planner::MemoryBoundTime(
        cluster_.device,
        static_cast<double>(batch * m * gemm.n() *
                            base::SizeOf(program::ToBase(gemm.dtype()))));
  return seconds;
}

double ClusterCosts::GroupedGemm(const program::Program& program,
                                 const program::GroupedGemm& gemm,
                                 const Instruction& instruction) const {
  // The rows are shared evenly by all matrices, or one row each if there are
  // fewer rows than matrices.
  const int64_t used =
      std::max<int64_t>(1, std::min(gemm.groups(), gemm.rows()));
  const int64_t rows = (gemm.rows() + used - 1) / used;
  // The program does not name the matrices' layout; oneDNN reads them as
  // gemm's.
  const program::Buffer& matrices = *instruction.operands()->Get(1);
  const bool is_packed = !gemm.weight_grad() &&
                         matrices.space() != program::Space::frame &&
                         !Trains(program);
  const Precision precision = PrecisionOf(gemm.dtype());
  double products =
      gemm.weight_grad()
          ? Product(precision, used, gemm.n(), gemm.k(), rows,
                    ProductForm::kLhsTransposed)
          : Product(precision, used, rows, gemm.n(), gemm.k(),
                    is_packed           ? ProductForm::kPacked
                    : gemm.transposed() ? ProductForm::kPlain
                                        : ProductForm::kRhsTransposed);
  if (gemm.dtype() == DType::f64) products *= 2;
  // Rows are copied into blocks and back, read and written once each.
  const double row_bytes =
      static_cast<double>(gemm.rows()) *
      static_cast<double>(gemm.n() + gemm.k()) *
      static_cast<double>(base::SizeOf(program::ToBase(gemm.dtype())));
  return products + planner::MemoryBoundTime(cluster_.device, 2 * row_bytes);
}

double ClusterCosts::Convolution(const program::Conv& conv,
                                 const Instruction& instruction) const {
  const auto out = program::ToVector(conv.out_shape()),
             weight = program::ToVector(conv.weight_shape());
  planner::Convolution sizes;
  sizes.bytes = BytesTouched(instruction);
  if (out.empty() || weight.empty() || conv.groups() < 1)
    return planner::MemoryBoundTime(cluster_.device, sizes.bytes);
  sizes.direction = format::FromFormat(conv.direction());
  sizes.groups = conv.groups();
  sizes.channels = weight[0] / conv.groups();
  sizes.window = ProductOf({weight.begin() + 1, weight.end()});
  sizes.window_area = WindowArea(weight);
  sizes.output_positions = weight[0] > 0 ? ProductOf(out) / weight[0] : 0;
  return planner::ConvolutionTime(
      cluster_.device, PrecisionOf(cluster_.device, conv.dtype()), sizes);
}

double ClusterCosts::Compute(const program::Program& program,
                             const Instruction& instruction) const {
  double seconds = 0;
  if (const program::Launch* launch = instruction.operation_as_Launch())
    // GPU launches have a grid instead of a range.
    seconds = launch->range() == 0 && launch->grid() == nullptr
                  ? 0
                  : Kernel(*launch, instruction);
  else if (const program::Gemm* gemm = instruction.operation_as_Gemm())
    seconds = Gemm(program, *gemm, instruction);
  else if (const auto* grouped = instruction.operation_as_GroupedGemm())
    seconds = GroupedGemm(program, *grouped, instruction);
  else if (const program::Conv* conv = instruction.operation_as_Conv())
    seconds = Convolution(*conv, instruction);
  else if (instruction.operation_as_Copy() != nullptr)
    seconds =
        planner::MemoryBoundTime(cluster_.device, BytesTouched(instruction));
  return seconds > 0 ? std::max(seconds, cluster_.device.launch) : 0;
}

absl::Status CheckPeaks(const program::Program& program,
                        const ClusterCosts& costs) {
  const planner::Device& device = costs.cluster().device;
  // CPU kernels compute in f32, whatever the model's storage type.
  const Instruction* product = nullptr;
  const Instruction* kernel = nullptr;
  for (const program::Function* function : *program.functions())
    for (unsigned i = 0; i < program::SizeOrZero(function->body()); ++i) {
      const Instruction& instruction = *function->body()->Get(i);
      if (std::isfinite(costs.Compute(program, instruction))) continue;
      (instruction.operation_as_Launch() == nullptr ? product : kernel) =
          &instruction;
    }
  if (product == nullptr && kernel == nullptr) return absl::OkStatus();
  const program::Gemm* gemm =
      product != nullptr ? product->operation_as_Gemm() : nullptr;
  const std::string precision = core::ToString(
      gemm != nullptr
          ? PrecisionOf(*gemm)
          : PrecisionOf(DTypeOf(product != nullptr ? *product : *kernel)));
  return absl::InvalidArgumentError(
      (product != nullptr ? "the program computes in "
                          : "kernels of the program compute in ") +
      precision + ", found a peak of " + planner::PeaksOf(device) + " of " +
      planner::NameOf(device) + ": " +
      (product != nullptr
           ? "compile the model for such a precision (--precision), or "
           : "") +
      "add one of " + precision + " to the device's peak in a cluster file");
}

double ClusterCosts::Slowness(int64_t rank) const {
  return faults_.Slowness(rank);
}

double ClusterCosts::Collective(const program::Collective& collective,
                                const std::vector<int64_t>& ranks) const {
  const double bytes = static_cast<double>(CostBytes(collective));
  // Nothing leaves the device, but the bytes are copied.
  if (collective.kind() == program::CollectiveKind::all_slice ||
      ranks.size() < 2)
    return planner::MemoryBoundTime(cluster_.device, bytes);
  // A link with 1/s of the bandwidth takes as long as a healthy link with s
  // times the bytes. Scaling the bytes leaves the latency unchanged.
  return planner::CollectiveTime(cluster_, PricedKind(collective.kind()),
                                 faults_.GroupSlowness(ranks) * bytes,
                                 std::vector<int>(ranks.begin(), ranks.end()));
}

double ClusterCosts::Transfer(int64_t from, int64_t to, int64_t bytes) const {
  return planner::TransferTime(
      cluster_, static_cast<int>(from), static_cast<int>(to),
      faults_.LinkSlowness(from, to) * static_cast<double>(bytes));
}

}  // namespace partita::simulator
