// Chooses cuBLASLt's numbers for a product.
#include "runtime/cuda/lt_product.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace partita::cuda {

using device::GemmDesc;
using device::Preactivation;
using device::Sums;

LtDataType LtTypeOf(base::DType dtype) {
  switch (dtype) {
    case base::DType::kF32:
      return kLtF32;
    case base::DType::kF16:
      return kLtF16;
    case base::DType::kF8E4M3:
      return kLtF8E4M3;
    case base::DType::kF8E5M2:
      return kLtF8E5M2;
    default:
      return kLtBF16;
  }
}

int EpilogueOf(const GemmDesc& desc, const ProductPlan& plan) {
  const int bias = desc.has_bias ? kLtEpilogueBias : 0;
  if (desc.preactivation == Preactivation::kKept)
    return kLtEpilogueGelu | kLtEpilogueKept | bias;
  if (desc.preactivation == Preactivation::kGiven)
    return kLtEpilogueGeluGradient;
  if (desc.sums != Sums::kNone)
    return (desc.sums == Sums::kRhs) == plan.rhs_first ? kLtEpilogueSumsOfA
                                                       : kLtEpilogueSumsOfB;
  switch (desc.activation) {
    case device::Activation::kRelu:
      return kLtEpilogueRelu | bias;
    case device::Activation::kGeluTanh:
      return kLtEpilogueGelu | bias;
    default:
      return desc.has_bias ? kLtEpilogueBias : kLtEpilogueNone;
  }
}

std::string Describe(const GemmDesc& desc) {
  return absl::StrCat(
      "gemm ", base::NameOf(desc.dtype), " ", desc.batch, "x", desc.m, "x",
      desc.n, "x", desc.k, " ", absl::StrJoin(desc.lhs_strides, ","), " ",
      absl::StrJoin(desc.rhs_strides, ","), " ",
      absl::StrJoin(desc.out_strides, ","), desc.has_bias ? " bias" : "",
      desc.has_residual ? " residual" : "", " activation ",
      static_cast<int>(desc.activation),
      // Files that were kept before name products without these.
      desc.has_bytes()
          ? absl::StrCat(" factors ", static_cast<int>(desc.factors))
          : "",
      desc.is_for_training()
          ? absl::StrCat(" preactivation ",
                         static_cast<int>(desc.preactivation), " sums ",
                         static_cast<int>(desc.sums))
          : "");
}

}  // namespace partita::cuda
