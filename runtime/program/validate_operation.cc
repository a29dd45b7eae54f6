// Checks that single operations stay inside their operands.
#include "runtime/program/validate_operation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/piece_table.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_attention.h"

namespace partita::program {
namespace {

// Larger strides and extents are refused; products of two of them still fit 64
// bits.
constexpr int64_t kMaxExtent = int64_t{1} << 31;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

bool KnownDType(DType dtype) {
  return dtype >= DType::MIN && dtype <= DType::MAX;
}

absl::Status CheckLibraryDType(const char* what, DType dtype) {
  if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16)
    return absl::OkStatus();
  return Bad(absl::StrCat(
      what, ": element type must be f32, f16 or bf16, found ",
      KnownDType(dtype) ? base::NameOf(ToBase(dtype)) : "an unknown one"));
}

absl::Status CheckActivation(const char* what, Activation activation) {
  if (activation >= Activation::MIN && activation <= Activation::MAX)
    return absl::OkStatus();
  return Bad(absl::StrCat(what, ": unknown activation ",
                          static_cast<int>(activation)));
}

struct Dim {
  int64_t extent;
  int64_t stride;
};

// Number of elements from the first to the last one used.
absl::StatusOr<int64_t> Span(const char* what, const std::array<Dim, 3>& dims) {
  int64_t last = 0;
  for (const Dim& dim : dims) {
    if (dim.stride < 0 || dim.stride > kMaxExtent * 64)
      return Bad(
          absl::StrCat(what, ": stride ", dim.stride, " is out of range"));
    int64_t reach;
    if (__builtin_mul_overflow(dim.extent - 1, dim.stride, &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return Bad(absl::StrCat(what, ": strides overflow"));
    }
  }
  if (last > (int64_t{1} << 56))
    return Bad(absl::StrCat(what, ": strides overflow"));
  return last + 1;
}

// True if two indices may address the same element, so that threads would race.
bool Overlaps(std::array<Dim, 3> dims) {
  std::sort(dims.begin(), dims.end(),
            [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  for (const Dim& dim : dims) {
    if (dim.extent == 1) continue;
    if (dim.stride <= reach) return true;
    reach += (dim.extent - 1) * dim.stride;
  }
  return false;
}

absl::StatusOr<std::array<Dim, 3>> MakeDims(
    const char* what, const flatbuffers::Vector<int64_t>* strides, int64_t a,
    int64_t b, int64_t c) {
  if (!IsAligned(strides)) {
    return Bad(absl::StrCat(what, ": strides are not aligned"));
  }
  if (SizeOrZero(strides) != 3)
    return Bad(absl::StrCat(what, ": expected 3 strides, found ",
                            SizeOrZero(strides)));
  return std::array<Dim, 3>{Dim{a, strides->Get(0)}, Dim{b, strides->Get(1)},
                            Dim{c, strides->Get(2)}};
}

absl::StatusOr<int64_t> BytesOfShape(const char* what, DType dtype,
                                     const std::vector<int64_t>& shape) {
  for (const int64_t size : shape) {
    if (size < 1 || size > kMaxExtent)
      return Bad(absl::StrCat(what, ": size ", size, " is out of range"));
  }
  const std::optional<int64_t> bytes = base::ByteCount(ToBase(dtype), shape);
  if (!bytes)
    return Bad(
        absl::StrCat(what, ": [", absl::StrJoin(shape, ","), "] is too big"));
  return *bytes;
}

// Limits that all GPUs share.
absl::Status CheckGrid(const Launch& launch) {
  if (SizeOrZero(launch.grid()) != 3 || SizeOrZero(launch.block()) != 3)
    return Bad(absl::StrCat(
        "launch on a GPU: expected a grid and a block of 3 sizes each, found ",
        SizeOrZero(launch.grid()), " and ", SizeOrZero(launch.block())));
  constexpr int kMostBlocks[] = {0x7fffffff, 65535, 65535};
  constexpr int kMostThreads[] = {1024, 1024, 64};
  int64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    const int blocks = launch.grid()->Get(i);
    const int size = launch.block()->Get(i);
    if (blocks < 1 || blocks > kMostBlocks[i] || size < 1 ||
        size > kMostThreads[i])
      return Bad(absl::StrCat("launch on a GPU: ", blocks, " blocks of ", size,
                              " threads along ", std::string(1, "xyz"[i]),
                              " is out of range"));
    threads *= size;
  }
  if (threads > 1024 || launch.shared_bytes() < 0 ||
      launch.shared_bytes() > (1 << 20))
    return Bad(absl::StrCat("launch on a GPU: a block of ", threads,
                            " threads with ", launch.shared_bytes(),
                            " bytes of shared memory is out of range"));
  return absl::OkStatus();
}

// Checks a list with one number per dimension of a tensor map, or per dimension
// but the last.
absl::Status CheckMapSizes(const char* what,
                           const flatbuffers::Vector<int64_t>* sizes,
                           int64_t expected, int64_t most, int64_t unit) {
  if (!IsAligned(sizes)) return Bad(absl::StrCat(what, " is not aligned"));
  if (SizeOrZero(sizes) != expected)
    return Bad(absl::StrCat("expected ", expected, " sizes in its ", what,
                            ", found ", SizeOrZero(sizes)));
  for (int64_t i = 0; i < expected; ++i) {
    const int64_t size = sizes->Get(static_cast<unsigned>(i));
    if (size < 1 || size > most || size % unit != 0)
      return Bad(absl::StrCat(
          "its ", what, " has ", size, ", expected ",
          unit > 1 ? absl::StrCat("multiples of ", unit) : "numbers", " from ",
          unit, " to ", most));
  }
  return absl::OkStatus();
}

// The limits of cuTensorMapEncodeTiled, from the documentation of the CUDA
// driver API.
absl::Status CheckMap(const TensorMap& map, const Instruction& instruction) {
  const int64_t rank = SizeOrZero(map.shape()),
                inputs =
                    SizeOrZero(instruction.operands()) - instruction.outputs();
  if (map.operand() < 0 || map.operand() >= inputs)
    return Bad(absl::StrCat("operand ", map.operand(), " of ", inputs));
  if (!KnownDType(map.dtype()) || map.swizzle() < Swizzle::MIN ||
      map.swizzle() > Swizzle::MAX)
    return Bad("an unknown element type or swizzle");
  if (rank < 1 || rank > 5)
    return Bad(absl::StrCat("expected 1 to 5 dimensions, found ", rank));
  PARTITA_RETURN_IF_ERROR(
      CheckMapSizes("shape", map.shape(), rank, int64_t{1} << 32, 1));
  PARTITA_RETURN_IF_ERROR(CheckMapSizes("strides", map.strides(), rank - 1,
                                        (int64_t{1} << 40) - 16, 16));
  PARTITA_RETURN_IF_ERROR(CheckMapSizes("box", map.box(), rank, 256, 1));
  const unsigned last = static_cast<unsigned>(rank - 1);
  const int64_t size = base::SizeOf(ToBase(map.dtype())),
                row = map.box()->Get(last) * size;
  if (row % 16 != 0 || (map.swizzle() == Swizzle::bytes128 && row > 128))
    return Bad(absl::StrCat("rows of its box have ", row, " bytes, expected ",
                            "a multiple of 16, at most 128 if swizzled"));
  int64_t end = map.shape()->Get(last) * size;
  bool wraps = map.offset() < 0 || map.offset() % 16 != 0 ||
               __builtin_add_overflow(end, map.offset(), &end);
  for (unsigned i = 0; i < last; ++i) {
    int64_t reach = 0;
    wraps |= __builtin_mul_overflow(map.shape()->Get(i) - 1,
                                    map.strides()->Get(i), &reach) ||
             __builtin_add_overflow(end, reach, &end);
  }
  const int64_t bytes = instruction.operands()
                            ->Get(static_cast<unsigned>(map.operand()))
                            ->bytes();
  if (wraps || end > bytes)
    return Bad(
        absl::StrCat("expected it from a multiple of 16 on inside its "
                     "operand, of ",
                     bytes, " bytes; found offset ", map.offset(),
                     wraps ? "" : absl::StrCat(" and end ", end)));
  return absl::OkStatus();
}

absl::Status CheckMaps(const Launch& launch, const Instruction& instruction) {
  // This many fit into a kernel's parameters, beside its operands.
  constexpr int64_t kMostMaps = 16;
  if (SizeOrZero(launch.maps()) > kMostMaps)
    return Bad(absl::StrCat("launch: expected at most ", kMostMaps,
                            " tensor maps, found ", SizeOrZero(launch.maps())));
  for (int64_t i = 0; i < SizeOrZero(launch.maps()); ++i) {
    const absl::Status status =
        CheckMap(*launch.maps()->Get(static_cast<unsigned>(i)), instruction);
    if (!status.ok())
      return Bad(
          absl::StrCat("launch: tensor map ", i, ": ", status.message()));
  }
  return absl::OkStatus();
}

struct ConvShapes {
  std::vector<int64_t> input, weight, out, strides, dilations, low, high;
};

// The constraints of nn.conv: sizes of `out` follow from the window.
absl::Status CheckWindow(const Conv& conv, const ConvShapes& s) {
  const size_t spatial = s.weight.size() - 2;
  const size_t first = conv.channels_last() ? 1 : 2;
  const size_t channel = conv.channels_last() ? s.input.size() - 1 : 1;
  const int64_t groups = conv.groups();
  if (groups < 1 || groups > kMaxExtent ||
      s.input[channel] != s.weight[1] * groups || s.weight[0] % groups != 0 ||
      s.out[channel] != s.weight[0] || s.out[0] != s.input[0]) {
    return Bad(absl::StrCat("conv: input [", absl::StrJoin(s.input, ","),
                            "], weight [", absl::StrJoin(s.weight, ","),
                            "], out [", absl::StrJoin(s.out, ","), "] and ",
                            groups, " groups do not fit"));
  }
  for (size_t i = 0; i < spatial; ++i) {
    if (s.strides[i] < 1 || s.dilations[i] < 1 || s.low[i] < 0 ||
        s.high[i] < 0 || s.strides[i] > kMaxExtent ||
        s.dilations[i] > kMaxExtent || s.low[i] > kMaxExtent ||
        s.high[i] > kMaxExtent) {
      return Bad("conv: a stride, dilation or padding is out of range");
    }
    const int64_t room = s.low[i] + s.input[first + i] + s.high[i] -
                         s.dilations[i] * (s.weight[2 + i] - 1) - 1;
    if (room < 0 || room / s.strides[i] + 1 != s.out[first + i]) {
      return Bad(absl::StrCat("conv: size ", s.out[first + i],
                              " of the result's spatial dimension ", i,
                              " does not follow from its window"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPieces(const Launch& launch, const Instruction& instruction) {
  const int64_t pieces = SizeOrZero(launch.ranges());
  const int64_t operands = SizeOrZero(instruction.operands());
  if (!IsAligned(launch.ranges()))
    return Bad("launch: its ranges are not aligned");
  const bool on_gpu = launch.grid() != nullptr;
  if (pieces < (on_gpu ? 1 : 2) || operands % pieces != 0 ||
      instruction.outputs() % pieces != 0 ||
      operands / pieces > kMaxPieceOperands) {
    return Bad(absl::StrCat("launch: ", pieces, " pieces with ", operands,
                            " operands, ", instruction.outputs(),
                            " of them written"));
  }
  if (on_gpu && (pieces > PiecesOfTable(operands / pieces) ||
                 launch.scratch_bytes() != 0 || launch.maps() != nullptr)) {
    return Bad(absl::StrCat("launch on a GPU: ", pieces, " pieces of ",
                            operands / pieces, " operands, ",
                            launch.scratch_bytes(),
                            " bytes of scratch or a tensor map do not fit a "
                            "table of ",
                            kPieceTableBytes, " bytes"));
  }
  int64_t left = launch.range();
  for (const int64_t range : *launch.ranges()) {
    if (range < 0 || range > left)
      return Bad("launch: pieces are more than the range");
    left -= range;
  }
  return left > 0 ? Bad("launch: pieces are less than the range")
                  : absl::OkStatus();
}

}  // namespace

absl::Status ValidateLaunch(const Program& program, const Launch& launch,
                            const Instruction& instruction) {
  if (launch.ranges() != nullptr)
    PARTITA_RETURN_IF_ERROR(CheckPieces(launch, instruction));
  if (launch.kernel() < 0 || launch.kernel() >= SizeOrZero(program.kernels()))
    return Bad(absl::StrCat("kernel ", launch.kernel(), " of ",
                            SizeOrZero(program.kernels())));
  const bool for_gpus = IsForGpus(program);
  if (for_gpus) PARTITA_RETURN_IF_ERROR(CheckGrid(launch));
  if (!for_gpus && (launch.grid() != nullptr || launch.block() != nullptr ||
                    launch.maps() != nullptr))
    return Bad("launch: a grid, block or tensor map in a program for no GPU");
  PARTITA_RETURN_IF_ERROR(CheckMaps(launch, instruction));
  if (launch.attention() != nullptr) {
    if (!for_gpus || launch.ranges() != nullptr)
      return Bad("launch: an attention of several pieces or not on a GPU");
    PARTITA_RETURN_IF_ERROR(
        ValidateAttention(*launch.attention(), instruction));
  }
  if (launch.range() < 0 || (launch.grain() < 1 && !for_gpus) ||
      launch.scratch_bytes() < 0 || launch.scratch_bytes() > kMaxBytes) {
    return Bad(absl::StrCat("launch: range ", launch.range(), ", grain ",
                            launch.grain(), " or scratch of ",
                            launch.scratch_bytes(), " bytes is out of range"));
  }
  return absl::OkStatus();
}

absl::Status ValidateOperands(const char* what, const Instruction& instruction,
                              const std::vector<int64_t>& bytes, int outputs) {
  const auto* operands = instruction.operands();
  if (SizeOrZero(operands) != static_cast<int64_t>(bytes.size()) ||
      instruction.outputs() != outputs) {
    return Bad(absl::StrCat(what, ": expected ", bytes.size(), " operands, ",
                            outputs, " of them written, found ",
                            SizeOrZero(operands), ", ", instruction.outputs(),
                            " of them written"));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Buffer& buffer =
        *operands->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (buffer.bytes() < bytes[i]) {
      return Bad(absl::StrCat(what, ": operand ", i, " needs ", bytes[i],
                              " bytes, found ", buffer.bytes()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ValidateType(const TensorType& type) {
  if (!KnownDType(type.dtype()))
    return Bad(
        absl::StrCat("unknown element type ", static_cast<int>(type.dtype())));
  if (!IsAligned(type.shape())) return Bad("a shape is not aligned");
  if (SizeOrZero(type.shape()) > kMaxRank) {
    return Bad(absl::StrCat("a shape of ", SizeOrZero(type.shape()),
                            " dimensions; at most ", kMaxRank));
  }
  const std::optional<int64_t> bytes =
      base::ByteCount(ToBase(type.dtype()), ShapeOf(type));
  if (!bytes)
    return Bad(absl::StrCat("shape [", absl::StrJoin(ShapeOf(type), ","),
                            "] is negative or too big"));
  return *bytes;
}

bool HasFloat8(const Gemm& gemm) {
  return gemm.factors() == GemmFactors::f8 ||
         gemm.factors() == GemmFactors::f8_lhs_e5m2 ||
         gemm.factors() == GemmFactors::f8_rhs_e5m2;
}

absl::Status CheckFactors(const Gemm& gemm) {
  if (gemm.factors() < GemmFactors::MIN || gemm.factors() > GemmFactors::MAX)
    return Bad(absl::StrCat("gemm: unknown factors ",
                            static_cast<int>(gemm.factors())));
  if (gemm.factors() == GemmFactors::rhs_i4
          ? gemm.group() < 2 || gemm.group() > kMaxExtent ||
                gemm.group() % 2 != 0
          : gemm.group() != 0 || gemm.has_zero())
    return Bad(absl::StrCat("gemm: group ", gemm.group(),
                            ", which must be even and positive for factors of "
                            "4 bits, and 0 without a zero for others"));
  if (gemm.factors() == GemmFactors::same)
    return CheckLibraryDType("gemm", gemm.dtype());
  if (HasFloat8(gemm)) {
    if (gemm.has_residual() || gemm.preactivation() != Preactivation::none)
      return Bad("gemm: factors of f8 with a residual or a pre-activation");
    return CheckLibraryDType("gemm", gemm.dtype());
  }
  const bool is_lhs_float = gemm.factors() == GemmFactors::rhs_i8 ||
                            gemm.factors() == GemmFactors::rhs_i4;
  const bool is_sum = gemm.dtype() == DType::i32 && !is_lhs_float;
  if ((gemm.dtype() != DType::f32 && !is_sum) || gemm.has_residual() ||
      gemm.activation() != Activation::none || (is_sum && gemm.has_bias()))
    return Bad(
        "gemm: factors of 8 bits with a result other than f32 or i32, a "
        "residual, an activation, or a bias of i32");
  return absl::OkStatus();
}

// Results and operands of training.
absl::Status CheckTraining(const Gemm& gemm) {
  if (gemm.preactivation() < Preactivation::MIN ||
      gemm.preactivation() > Preactivation::MAX)
    return Bad(absl::StrCat("gemm: unknown pre-activation ",
                            static_cast<int>(gemm.preactivation())));
  if (gemm.sums() < GemmSums::MIN || gemm.sums() > GemmSums::MAX)
    return Bad(
        absl::StrCat("gemm: unknown sums ", static_cast<int>(gemm.sums())));
  const bool is_given = gemm.preactivation() == Preactivation::given;
  if (gemm.preactivation() != Preactivation::none &&
      (gemm.activation() != Activation::gelu_tanh || gemm.has_residual() ||
       (is_given && gemm.has_bias())))
    return Bad(
        "gemm: a pre-activation with another activation than gelu_tanh, a "
        "residual, or a bias beside a given one");
  if (gemm.sums() != GemmSums::none &&
      (gemm.batch() != 1 || gemm.factors() != GemmFactors::same ||
       gemm.has_bias() || gemm.has_residual() ||
       gemm.activation() != Activation::none))
    return Bad(
        "gemm: sums beside a batch, factors of 8 bits, a bias, a residual or "
        "an activation");
  return absl::OkStatus();
}

absl::Status ValidateGemm(const Gemm& gemm, const Instruction& instruction) {
  PARTITA_RETURN_IF_ERROR(CheckFactors(gemm));
  PARTITA_RETURN_IF_ERROR(CheckActivation("gemm", gemm.activation()));
  PARTITA_RETURN_IF_ERROR(CheckTraining(gemm));
  for (const int64_t extent : {gemm.batch(), gemm.m(), gemm.n(), gemm.k()}) {
    if (extent < 1 || extent > kMaxExtent)
      return Bad(absl::StrCat("gemm: size ", extent, " is out of range"));
  }
  const int64_t size = base::SizeOf(ToBase(gemm.dtype()));
  PARTITA_ASSIGN_OR_RETURN(
      const auto lhs, MakeDims("gemm lhs", gemm.lhs_strides(), gemm.batch(),
                               gemm.m(), gemm.k()));
  PARTITA_ASSIGN_OR_RETURN(
      const auto rhs, MakeDims("gemm rhs", gemm.rhs_strides(), gemm.batch(),
                               gemm.k(), gemm.n()));
  PARTITA_ASSIGN_OR_RETURN(
      const auto out, MakeDims("gemm out", gemm.out_strides(), gemm.batch(),
                               gemm.m(), gemm.n()));
  PARTITA_ASSIGN_OR_RETURN(const int64_t lhs_span, Span("gemm lhs", lhs));
  PARTITA_ASSIGN_OR_RETURN(const int64_t rhs_span, Span("gemm rhs", rhs));
  PARTITA_ASSIGN_OR_RETURN(const int64_t out_span, Span("gemm out", out));
  if (Overlaps(out)) return Bad("gemm: elements of out overlap");
  if (gemm.batch() > 1 && lhs[0].stride == 0 && rhs[0].stride == 0) {
    return Bad("gemm: a batch of which neither lhs nor rhs depends");
  }
  const bool has_bytes = gemm.factors() != GemmFactors::same;
  const bool has_groups = gemm.factors() == GemmFactors::rhs_i4;
  const bool is_lhs_float =
      !has_bytes || has_groups || gemm.factors() == GemmFactors::rhs_i8;
  std::vector<int64_t> bytes = {
      lhs_span * (is_lhs_float ? size : 1),
      has_groups ? (rhs_span + 1) / 2 : rhs_span * (has_bytes ? 1 : size)};
  if (has_groups) {
    const int64_t groups = (rhs_span - 1) / gemm.group() + 1;
    bytes.push_back(groups * size);
    if (gemm.has_zero()) bytes.push_back(groups);
  } else if (HasFloat8(gemm)) {
    bytes.push_back(sizeof(float));
  } else if (has_bytes && gemm.dtype() != DType::i32) {
    bytes.push_back(gemm.n() * size);
  }
  if (gemm.has_bias()) bytes.push_back(gemm.n() * size);
  if (gemm.has_residual()) bytes.push_back(out_span * size);
  // A pre-activation is beside out, in front of it or behind it.
  if (gemm.preactivation() != Preactivation::none)
    bytes.push_back(out_span * size);
  bytes.push_back(out_span * size);
  int outputs = gemm.preactivation() == Preactivation::kept ? 2 : 1;
  if (gemm.sums() != GemmSums::none) {
    bytes.push_back((gemm.sums() == GemmSums::lhs ? gemm.m() : gemm.n()) *
                    size);
    ++outputs;
  }
  return ValidateOperands("gemm", instruction, bytes, outputs);
}

absl::Status ValidateGroupedGemm(const GroupedGemm& gemm,
                                 const Instruction& instruction) {
  PARTITA_RETURN_IF_ERROR(CheckLibraryDType("grouped gemm", gemm.dtype()));
  if (gemm.ids() != DType::i32 && gemm.ids() != DType::i64)
    return Bad(absl::StrCat("grouped gemm: indices must be i32 or i64, found ",
                            KnownDType(gemm.ids())
                                ? base::NameOf(ToBase(gemm.ids()))
                                : "an unknown type"));
  if (gemm.weight_grad() && gemm.transposed())
    return Bad("grouped gemm: a weight gradient that is transposed");
  const auto bytes = [](DType dtype, const std::vector<int64_t>& shape) {
    return BytesOfShape("grouped gemm", dtype, shape);
  };
  PARTITA_ASSIGN_OR_RETURN(const int64_t lhs,
                           bytes(gemm.dtype(), {gemm.lhs_rows(), gemm.k()}));
  PARTITA_ASSIGN_OR_RETURN(const int64_t rows,
                           bytes(gemm.dtype(), {gemm.rows(), gemm.n()}));
  PARTITA_ASSIGN_OR_RETURN(
      const int64_t matrices,
      bytes(gemm.dtype(), {gemm.groups(), gemm.n(), gemm.k()}));
  PARTITA_ASSIGN_OR_RETURN(const int64_t ids, bytes(gemm.ids(), {gemm.rows()}));
  if (gemm.rows() % gemm.lhs_rows() != 0)
    return Bad(absl::StrCat("grouped gemm: ", gemm.rows(),
                            " rows are no multiple of lhs's ",
                            gemm.lhs_rows()));
  return ValidateOperands("grouped gemm", instruction,
                          {lhs, gemm.weight_grad() ? rows : matrices, ids,
                           gemm.weight_grad() ? matrices : rows});
}

bool Rounds(const Conv& conv) {
  return conv.dtype() == DType::i8 || conv.dtype() == DType::u8;
}

absl::Status CheckFactors(const Conv& conv) {
  if (conv.factors() == GemmFactors::same) {
    if (conv.has_zero()) return Bad("conv: a zero without factors of 8 bits");
    return CheckLibraryDType("conv", conv.dtype());
  }
  if (conv.factors() != GemmFactors::i8 && conv.factors() != GemmFactors::u8_i8)
    return Bad(absl::StrCat("conv: factors must be same, i8 or u8_i8, found ",
                            static_cast<int>(conv.factors())));
  if (conv.direction() != ConvDirection::forward ||
      (conv.dtype() != DType::f32 && !Rounds(conv)) ||
      (Rounds(conv) && conv.has_residual()))
    return Bad(
        "conv: factors of 8 bits in a gradient, with a result other than f32, "
        "i8 or u8, or with a residual of 8 bits");
  return absl::OkStatus();
}

absl::Status ValidateConv(const Conv& conv, const Instruction& instruction) {
  PARTITA_RETURN_IF_ERROR(CheckFactors(conv));
  PARTITA_RETURN_IF_ERROR(CheckActivation("conv", conv.activation()));
  for (const auto* list :
       {conv.input_shape(), conv.weight_shape(), conv.out_shape(),
        conv.strides(), conv.dilations(), conv.low(), conv.high()}) {
    if (!IsAligned(list)) return Bad("conv: a shape is not aligned");
    if (SizeOrZero(list) > kMaxRank) return Bad("conv: too many dimensions");
  }
  const ConvShapes shapes = {
      ToVector(conv.input_shape()), ToVector(conv.weight_shape()),
      ToVector(conv.out_shape()),   ToVector(conv.strides()),
      ToVector(conv.dilations()),   ToVector(conv.low()),
      ToVector(conv.high())};
  const size_t rank = shapes.input.size();
  if (rank < 3 || rank > 5 || shapes.weight.size() != rank ||
      shapes.out.size() != rank) {
    return Bad("conv: input, weight and out must have the same rank, 3 to 5");
  }
  for (const auto* list :
       {&shapes.strides, &shapes.dilations, &shapes.low, &shapes.high}) {
    if (list->size() != rank - 2)
      return Bad(
          "conv: expected one stride, dilation and padding per spatial "
          "dimension");
  }
  const bool has_bytes = conv.factors() != GemmFactors::same;
  PARTITA_ASSIGN_OR_RETURN(
      const int64_t input,
      BytesOfShape("conv input", has_bytes ? DType::i8 : conv.dtype(),
                   shapes.input));
  PARTITA_ASSIGN_OR_RETURN(
      const int64_t weight,
      BytesOfShape("conv weight", has_bytes ? DType::i8 : conv.dtype(),
                   shapes.weight));
  PARTITA_ASSIGN_OR_RETURN(const int64_t out,
                           BytesOfShape("conv out", conv.dtype(), shapes.out));
  PARTITA_RETURN_IF_ERROR(CheckWindow(conv, shapes));
  if (conv.activates_sum() &&
      (!conv.has_residual() || conv.activation() == Activation::none))
    return Bad("conv: activates_sum without residual or activation");
  const bool is_plain = !conv.has_bias() && !conv.has_residual() &&
                        conv.activation() == Activation::none;
  switch (conv.direction()) {
    case ConvDirection::forward:
      break;
    case ConvDirection::input_grad:
      if (is_plain)
        return ValidateOperands("conv", instruction, {out, weight, input});
      return Bad("conv: a gradient with bias, residual or activation");
    case ConvDirection::weight_grad:
      if (is_plain)
        return ValidateOperands("conv", instruction, {input, out, weight});
      return Bad("conv: a gradient with bias, residual or activation");
    default:
      return Bad(absl::StrCat("conv: unknown direction ",
                              static_cast<int>(conv.direction())));
  }
  std::vector<int64_t> bytes = {input, weight};
  const int64_t channels =
      shapes.weight[0] *
      base::SizeOf(ToBase(has_bytes ? DType::f32 : conv.dtype()));
  if (has_bytes) bytes.push_back(channels);
  if (conv.has_zero()) bytes.push_back(base::SizeOf(base::DType::kI32));
  if (conv.has_bias()) bytes.push_back(channels);
  if (conv.has_residual()) bytes.push_back(out);
  if (Rounds(conv)) {
    bytes.push_back(base::SizeOf(base::DType::kF32));
    bytes.push_back(base::SizeOf(base::DType::kI32));
  }
  bytes.push_back(out);
  return ValidateOperands("conv", instruction, bytes);
}

absl::Status ValidateCopy(const Instruction& instruction) {
  PARTITA_RETURN_IF_ERROR(ValidateOperands("copy", instruction, {0, 0}));
  const int64_t from = instruction.operands()->Get(0)->bytes();
  const int64_t to = instruction.operands()->Get(1)->bytes();
  if (from != to)
    return Bad(absl::StrCat("copy: operands of equal size expected, found ",
                            from, " and ", to, " bytes"));
  return absl::OkStatus();
}

}  // namespace partita::program
