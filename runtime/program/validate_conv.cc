// Operands and forms of convolutions.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

}  // namespace

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

}  // namespace partita::program
