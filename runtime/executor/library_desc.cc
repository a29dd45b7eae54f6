// Translates gemm, grouped gemm, conv and tensor maps, and names them for
// profiles.
#include "runtime/executor/library_desc.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

std::array<int64_t, 3> ToArray(const flatbuffers::Vector<int64_t>* values) {
  return {values->Get(0), values->Get(1), values->Get(2)};
}

const char* DirectionName(device::ConvDirection direction) {
  switch (direction) {
    case device::ConvDirection::kForward:
      return "conv ";
    case device::ConvDirection::kInputGrad:
      return "conv input grad ";
    case device::ConvDirection::kWeightGrad:
      return "conv weight grad ";
  }
  return "conv ";
}

const char* FactorsName(device::Factors factors) {
  switch (factors) {
    case device::Factors::kSame:
      return "";
    case device::Factors::kRhsI8:
      return " of f32 x i8";
    case device::Factors::kI8:
      return " of i8 x i8";
    case device::Factors::kU8I8:
      return " of u8 x i8";
    case device::Factors::kRhsI4:
      return " of f32 x i4";
    case device::Factors::kF8:
      return " of f8e4m3 x f8e4m3";
    case device::Factors::kF8LhsE5M2:
      return " of f8e5m2 x f8e4m3";
    case device::Factors::kF8RhsE5M2:
      return " of f8e4m3 x f8e5m2";
  }
  return "";
}

// In the order of computation.
std::string Suffix(bool has_bias, bool has_residual,
                   device::Activation activation, bool activates_sum = false) {
  std::string suffix = has_bias ? " bias" : "";
  if (activates_sum) suffix += " residual";
  for (const program::Activation named : program::EnumValuesActivation())
    if (named != program::Activation::none && ToDevice(named) == activation)
      absl::StrAppend(&suffix, " ", program::EnumNameActivation(named));
  if (has_residual && !activates_sum) suffix += " residual";
  return suffix;
}

// Names the other results of a product of training, for its key.
std::string TrainingSuffix(const device::GemmDesc& desc) {
  std::string suffix;
  if (desc.preactivation == device::Preactivation::kKept) suffix = " kept";
  if (desc.preactivation == device::Preactivation::kGiven) suffix = " gradient";
  if (desc.sums == device::Sums::kLhs) suffix += " and sums of lhs";
  if (desc.sums == device::Sums::kRhs) suffix += " and sums of rhs";
  return suffix;
}

device::AttentionDesc::Tensor ToDevice(const program::AttentionTensor& tensor) {
  return {tensor.operand(),
          tensor.offset(),
          {tensor.batch(), tensor.head(), tensor.position()}};
}

std::string KeyOf(const device::AttentionDesc::Tensor& tensor) {
  return absl::StrCat(tensor.operand, "+", tensor.offset, ":",
                      absl::StrJoin(tensor.strides, ","));
}

}  // namespace

device::Activation ToDevice(program::Activation activation) {
  switch (activation) {
    case program::Activation::none:
      break;
    case program::Activation::relu:
      return device::Activation::kRelu;
    case program::Activation::gelu_erf:
      return device::Activation::kGeluErf;
    case program::Activation::gelu_tanh:
      return device::Activation::kGeluTanh;
    case program::Activation::silu:
      return device::Activation::kSilu;
    case program::Activation::tanh:
      return device::Activation::kTanh;
    case program::Activation::sigmoid:
      return device::Activation::kSigmoid;
    case program::Activation::relu6:
      return device::Activation::kRelu6;
    case program::Activation::hard_swish:
      return device::Activation::kHardSwish;
  }
  return device::Activation::kNone;
}

device::Factors ToDevice(program::GemmFactors factors) {
  switch (factors) {
    case program::GemmFactors::same:
      break;
    case program::GemmFactors::rhs_i8:
      return device::Factors::kRhsI8;
    case program::GemmFactors::i8:
      return device::Factors::kI8;
    case program::GemmFactors::u8_i8:
      return device::Factors::kU8I8;
    case program::GemmFactors::rhs_i4:
      return device::Factors::kRhsI4;
    case program::GemmFactors::f8:
      return device::Factors::kF8;
    case program::GemmFactors::f8_lhs_e5m2:
      return device::Factors::kF8LhsE5M2;
    case program::GemmFactors::f8_rhs_e5m2:
      return device::Factors::kF8RhsE5M2;
  }
  return device::Factors::kSame;
}

device::Preactivation ToDevice(program::Preactivation preactivation) {
  switch (preactivation) {
    case program::Preactivation::none:
      break;
    case program::Preactivation::kept:
      return device::Preactivation::kKept;
    case program::Preactivation::given:
      return device::Preactivation::kGiven;
  }
  return device::Preactivation::kNone;
}

device::Sums ToDevice(program::GemmSums sums) {
  switch (sums) {
    case program::GemmSums::none:
      break;
    case program::GemmSums::lhs:
      return device::Sums::kLhs;
    case program::GemmSums::rhs:
      return device::Sums::kRhs;
  }
  return device::Sums::kNone;
}

device::ConvDirection ToDevice(program::ConvDirection direction) {
  switch (direction) {
    case program::ConvDirection::forward:
      break;
    case program::ConvDirection::input_grad:
      return device::ConvDirection::kInputGrad;
    case program::ConvDirection::weight_grad:
      return device::ConvDirection::kWeightGrad;
  }
  return device::ConvDirection::kForward;
}

device::GemmDesc ToDesc(const program::Gemm& gemm) {
  device::GemmDesc desc;
  desc.dtype = program::ToBase(gemm.dtype());
  desc.batch = gemm.batch();
  desc.m = gemm.m();
  desc.n = gemm.n();
  desc.k = gemm.k();
  desc.lhs_strides = ToArray(gemm.lhs_strides());
  desc.rhs_strides = ToArray(gemm.rhs_strides());
  desc.out_strides = ToArray(gemm.out_strides());
  desc.has_bias = gemm.has_bias();
  desc.has_residual = gemm.has_residual();
  desc.activation = ToDevice(gemm.activation());
  desc.factors = ToDevice(gemm.factors());
  desc.group = gemm.group();
  desc.has_zero = gemm.has_zero();
  desc.preactivation = ToDevice(gemm.preactivation());
  desc.sums = ToDevice(gemm.sums());
  return desc;
}

device::GroupedGemmDesc ToDesc(const program::GroupedGemm& gemm) {
  device::GroupedGemmDesc desc;
  desc.dtype = program::ToBase(gemm.dtype());
  desc.ids = program::ToBase(gemm.ids());
  desc.rows = gemm.rows();
  desc.lhs_rows = gemm.lhs_rows();
  desc.groups = gemm.groups();
  desc.n = gemm.n();
  desc.k = gemm.k();
  desc.transposed = gemm.transposed();
  desc.weight_grad = gemm.weight_grad();
  return desc;
}

device::ConvDesc ToDesc(const program::Conv& conv) {
  device::ConvDesc desc;
  desc.dtype = program::ToBase(conv.dtype());
  desc.input_shape = program::ToVector(conv.input_shape());
  desc.weight_shape = program::ToVector(conv.weight_shape());
  desc.out_shape = program::ToVector(conv.out_shape());
  desc.strides = program::ToVector(conv.strides());
  desc.dilations = program::ToVector(conv.dilations());
  desc.low = program::ToVector(conv.low());
  desc.high = program::ToVector(conv.high());
  desc.groups = conv.groups();
  desc.channels_last = conv.channels_last();
  desc.has_bias = conv.has_bias();
  desc.has_residual = conv.has_residual();
  desc.activation = ToDevice(conv.activation());
  desc.activates_sum = conv.activates_sum();
  desc.direction = ToDevice(conv.direction());
  desc.factors = ToDevice(conv.factors());
  desc.has_zero = conv.has_zero();
  return desc;
}

device::AttentionDesc ToDesc(const program::Attention& attention) {
  device::AttentionDesc desc;
  desc.dtype = program::ToBase(attention.dtype());
  desc.batch = attention.batch();
  desc.heads = attention.heads();
  desc.groups = attention.groups();
  desc.queries = attention.queries();
  desc.keys = attention.keys();
  desc.size = attention.size();
  desc.value_size = attention.value_size();
  desc.scale = attention.scale();
  desc.causal = attention.causal();
  desc.causal_offset = attention.causal_offset();
  desc.q = ToDevice(*attention.q());
  desc.k = ToDevice(*attention.k());
  desc.v = ToDevice(*attention.v());
  desc.out = ToDevice(*attention.out());
  desc.lse = attention.lse();
  return desc;
}

std::vector<device::TensorMapDesc> MapsOf(const program::Launch& launch) {
  std::vector<device::TensorMapDesc> maps;
  for (unsigned i = 0; i < program::SizeOrZero(launch.maps()); ++i) {
    const program::TensorMap& map = *launch.maps()->Get(i);
    maps.push_back({map.operand(), map.offset(), program::ToBase(map.dtype()),
                    program::ToVector(map.shape()),
                    program::ToVector(map.strides()),
                    program::ToVector(map.box()),
                    map.swizzle() == program::Swizzle::bytes128});
  }
  return maps;
}

std::string KeyOf(const device::GemmDesc& desc) {
  return absl::StrCat(LabelOf(desc).name, " lhs ",
                      absl::StrJoin(desc.lhs_strides, ","), " rhs ",
                      absl::StrJoin(desc.rhs_strides, ","), " out ",
                      absl::StrJoin(desc.out_strides, ","), " group ",
                      desc.group, desc.has_zero ? " zero" : "");
}

std::string KeyOf(const device::GroupedGemmDesc& desc) {
  return absl::StrCat(LabelOf(desc).name, " lhs ", desc.lhs_rows,
                      desc.transposed ? " transposed" : "", " ids ",
                      base::NameOf(desc.ids));
}

std::string KeyOf(const device::ConvDesc& desc) {
  return absl::StrCat(
      LabelOf(desc).name, " out ", absl::StrJoin(desc.out_shape, ","),
      " dilations ", absl::StrJoin(desc.dilations, ","), " low ",
      absl::StrJoin(desc.low, ","), " high ", absl::StrJoin(desc.high, ","),
      desc.residual_in_out ? " in place" : "");
}

std::string KeyOf(const device::AttentionDesc& desc) {
  return absl::StrCat(
      "attention ", base::NameOf(desc.dtype), " ", desc.batch, "x", desc.heads,
      "/", desc.groups, "x", desc.queries, "x", desc.keys, "x", desc.size, "/",
      desc.value_size, " scale ", desc.scale,
      desc.causal ? absl::StrCat(" causal ", desc.causal_offset) : "", " q ",
      KeyOf(desc.q), " k ", KeyOf(desc.k), " v ", KeyOf(desc.v), " out ",
      KeyOf(desc.out), " lse ", desc.lse);
}

StepLabel LabelOf(const device::GemmDesc& desc) {
  StepLabel label;
  label.name =
      absl::StrCat("gemm ", desc.batch, "x", desc.m, "x", desc.n, "x", desc.k,
                   " ", base::NameOf(desc.dtype), FactorsName(desc.factors),
                   Suffix(desc.has_bias, desc.has_residual, desc.activation),
                   TrainingSuffix(desc));
  label.flops = 2.0 * static_cast<double>(desc.batch) *
                static_cast<double>(desc.m) * static_cast<double>(desc.n) *
                static_cast<double>(desc.k);
  label.precision = base::NameOf(desc.dtype);
  return label;
}

StepLabel LabelOf(const device::GroupedGemmDesc& desc) {
  StepLabel label;
  label.name = absl::StrCat(
      "grouped gemm ", desc.weight_grad ? "weight grad " : "", desc.rows, "x",
      desc.n, "x", desc.k, " of ", desc.groups, " ", base::NameOf(desc.dtype));
  label.flops = 2.0 * static_cast<double>(desc.rows) *
                static_cast<double>(desc.n) * static_cast<double>(desc.k);
  label.precision = base::NameOf(desc.dtype);
  return label;
}

StepLabel LabelOf(const device::ConvDesc& desc) {
  StepLabel label;
  label.name = absl::StrCat(
      DirectionName(desc.direction), absl::StrJoin(desc.input_shape, "x"),
      desc.channels_last ? " nhwc" : " nchw", " * ",
      absl::StrJoin(desc.weight_shape, "x"), " / ",
      absl::StrJoin(desc.strides, "x"),
      desc.groups > 1 ? absl::StrCat(" groups ", desc.groups) : "", " ",
      base::NameOf(desc.dtype), FactorsName(desc.factors),
      desc.has_zero ? " zero" : "",
      Suffix(desc.has_bias, desc.has_residual, desc.activation,
             desc.activates_sum));
  label.precision = base::NameOf(desc.dtype);
  label.flops = 2;
  for (const int64_t size : desc.out_shape)
    label.flops *= static_cast<double>(size);
  for (size_t i = 1; i < desc.weight_shape.size(); ++i)
    label.flops *= static_cast<double>(desc.weight_shape[i]);
  return label;
}

}  // namespace partita::executor
