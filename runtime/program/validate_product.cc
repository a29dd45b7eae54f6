// Operands and forms of matrix products.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_operation.h"

namespace partita::program {
namespace {

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
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

}  // namespace

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

}  // namespace partita::program
