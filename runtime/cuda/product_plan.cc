// Uses that a row-major matrix is a transposed column-major one, and that (L
// R)^T = R^T L^T.
#include "runtime/cuda/product_plan.h"

#include <algorithm>

namespace partita::cuda {
namespace {

constexpr int64_t kPreactivationAlignment = 8;  // elements
constexpr int64_t kFloat8Alignment = 16;        // elements

using device::Activation;
using device::GemmDesc;

// Plans M such that op(M) is rows x columns with these strides.
std::optional<MatrixPlan> PlanMatrix(int64_t rows, int64_t columns,
                                     int64_t row_stride, int64_t column_stride,
                                     int64_t batch_stride) {
  MatrixPlan plan;
  plan.batch_stride = batch_stride;
  if (rows == 1 || row_stride == 1) {
    plan.rows = rows;
    plan.columns = columns;
    plan.leading = columns == 1 ? std::max(rows, column_stride) : column_stride;
    if (plan.leading >= rows) return plan;
  }
  if (columns == 1 || column_stride == 1) {
    plan.transposed = true;
    plan.rows = columns;
    plan.columns = rows;
    plan.leading = rows == 1 ? std::max(columns, row_stride) : row_stride;
    if (plan.leading >= columns) return plan;
  }
  return std::nullopt;
}

// If the batch shares its right-hand side and its rows follow one another, the
// product is one matrix with more rows.
GemmDesc Flattened(GemmDesc desc) {
  if (desc.batch > 1 && desc.rhs_strides[0] == 0 &&
      desc.lhs_strides[0] == desc.m * desc.lhs_strides[1] &&
      desc.out_strides[0] == desc.m * desc.out_strides[1]) {
    desc.m *= desc.batch;
    desc.batch = 1;
  }
  return desc;
}

// True if the library can compute activation and residual. Its GELU uses the
// tanh approximation. It adds the residual before the activation, while we add
// it after.
bool LibraryFinishes(const GemmDesc& desc) {
  switch (desc.activation) {
    case Activation::kNone:
      return true;
    case Activation::kRelu:
    case Activation::kGeluTanh:
      return !desc.has_residual;
    default:
      return false;
  }
}

// True without a pre-activation, and if the library supports its layout: that
// of the result.
bool KeepsAligned(const GemmDesc& desc, const MatrixPlan& out) {
  return desc.preactivation == device::Preactivation::kNone ||
         (out.leading % kPreactivationAlignment == 0 &&
          (desc.batch == 1 || out.batch_stride % kPreactivationAlignment == 0));
}

// True if the library has this product of floats of 8 bits.
bool MultipliesFloat8(const GemmDesc& desc) {
  const auto fits = [](int64_t number) {
    return number % kFloat8Alignment == 0;
  };
  return desc.lhs_strides[2] == 1 && desc.rhs_strides[1] == 1 && fits(desc.m) &&
         fits(desc.n) && fits(desc.k) && fits(desc.lhs_strides[1]) &&
         fits(desc.rhs_strides[2]) &&
         (desc.batch == 1 ||
          (fits(desc.lhs_strides[0]) && fits(desc.rhs_strides[0])));
}

}  // namespace

base::DType LhsType(const GemmDesc& desc) {
  if (!desc.has_float8()) return desc.dtype;
  return desc.factors == device::Factors::kF8LhsE5M2 ? base::DType::kF8E5M2
                                                     : base::DType::kF8E4M3;
}

base::DType RhsType(const GemmDesc& desc) {
  if (!desc.has_float8()) return desc.dtype;
  return desc.factors == device::Factors::kF8RhsE5M2 ? base::DType::kF8E5M2
                                                     : base::DType::kF8E4M3;
}

std::optional<ProductPlan> PlanProduct(const GemmDesc& whole, bool finishes) {
  const GemmDesc desc = Flattened(whole);
  if (desc.has_float8() && !MultipliesFloat8(desc)) return std::nullopt;
  const auto& l = desc.lhs_strides;
  const auto& r = desc.rhs_strides;
  const auto& o = desc.out_strides;
  const auto left = PlanMatrix(desc.k, desc.m, l[2], l[1], l[0]);
  const auto right = PlanMatrix(desc.n, desc.k, r[2], r[1], r[0]);
  if (!left || !right) return std::nullopt;
  ProductPlan plan;
  plan.batch = desc.batch;
  plan.a = *right;
  plan.b = *left;
  const auto out = PlanMatrix(desc.n, desc.m, o[2], o[1], o[0]);
  // A product of floats of 8 bits adds a bias of 16 bits only.
  const bool has_wide_bias =
      desc.has_float8() && desc.has_bias && desc.dtype == base::DType::kF32;
  plan.whole = finishes && LibraryFinishes(desc) && out.has_value() &&
               KeepsAligned(desc, *out) && !has_wide_bias;
  if (plan.whole && out->transposed) {
    // The columns of out are contiguous. The library only supports a bias with
    // one value per row of its result D, so it cannot add the bias here.
    plan.whole = !desc.has_bias;
    plan.rhs_first = !plan.whole;
  }
  if (!plan.whole) {
    plan.d = {desc.n, desc.m, desc.n, desc.m * desc.n};
  } else if (plan.rhs_first) {
    plan.d = *out;
  } else {
    const auto a = PlanMatrix(desc.m, desc.k, l[1], l[2], l[0]);
    const auto b = PlanMatrix(desc.k, desc.n, r[1], r[2], r[0]);
    plan.a = *a;
    plan.b = *b;
    plan.d = *PlanMatrix(desc.m, desc.n, o[1], o[2], o[0]);
  }
  return plan;
}

}  // namespace partita::cuda
