// Descriptions of the library operations that devices prepare. program.fbs
// defines what they compute.
#ifndef PARTITA_RUNTIME_DEVICE_OPERATIONS_H_
#define PARTITA_RUNTIME_DEVICE_OPERATIONS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"

namespace partita::device {

enum class Activation : int8_t {
  kNone = 0,
  kRelu,
  kGeluErf,
  kGeluTanh,
  kSilu,
  kTanh,
  kSigmoid,
  kRelu6,
  kHardSwish
};

// Element types of a product's lhs and rhs: those of its result, or lhs of the
// result's and rhs of i8, or i8 and i8, or u8 and i8, or lhs of the result's
// and rhs of unsigned integers of 4 bits. The others are floats of 8 bits: e4m3
// both, or one of e5m2.
enum class Factors : int8_t {
  kSame = 0,
  kRhsI8,
  kI8,
  kU8I8,
  kRhsI4,
  kF8,
  kF8LhsE5M2,
  kF8RhsE5M2
};

// The input of the activation as another result, or as an operand: then out is
// the gradient with respect to it.
enum class Preactivation : int8_t { kNone = 0, kKept, kGiven };

// Sums over k of a factor of a product: [m] of lhs, or [n] of rhs.
enum class Sums : int8_t { kNone = 0, kLhs, kRhs };

// out[b,m,n] = activation(sum_k lhs[b,m,k] * rhs[b,k,n] + bias[n]) +
// residual[b,m,n]. Strides are in elements. Operands: lhs, rhs, bias if
// has_bias, residual if has_residual, out. 16-bit floats are summed in f32. The
// residual may be the same memory as out but must not overlap it in part.
// With factors other than kSame, out[b,m,n] = scale[n] * sum + bias[n], all of
// f32; operands: lhs, rhs, scale, bias if has_bias, out. With dtype kI32 the
// result is the sum; operands: lhs, rhs, out. With kRhsI4, element e of rhs
// stands for scale[e / group] * (rhs[e] - zero[e / group]), with zero of i8, or
// 8; out is sum + bias; operands: lhs, rhs, scale, zero if has_zero, bias if
// has_bias, out.
// With floats of 8 bits, scale is one number of f32, out = activation(scale *
// sum + bias), and operands are lhs, rhs, scale, bias if has_bias, out.
// With kKept, the pre-activation, rounded to the type, follows out. With
// kGiven, it follows rhs, and out = sum * activation'(pre-activation). It is
// laid out as out and overlaps no other operand. Sums are the last result.
struct GemmDesc {
  base::DType dtype = base::DType::kF32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::array<int64_t, 3> lhs_strides = {};  // batch, m, k
  std::array<int64_t, 3> rhs_strides = {};  // batch, k, n
  std::array<int64_t, 3> out_strides = {};  // batch, m, n; the residual's too
  bool has_bias = false;
  bool has_residual = false;
  Activation activation = Activation::kNone;
  Factors factors = Factors::kSame;
  int64_t group = 0;  // of kRhsI4, an even number
  bool has_zero = false;
  Preactivation preactivation = Preactivation::kNone;  // not kNone: kGeluTanh
  Sums sums = Sums::kNone;

  // True for products of training that only GPUs compute.
  bool is_for_training() const {
    return preactivation != Preactivation::kNone || sums != Sums::kNone;
  }
  bool has_bytes() const { return factors != Factors::kSame; }
  // True for factors that are floats of 8 bits.
  bool has_float8() const {
    return factors == Factors::kF8 || factors == Factors::kF8LhsE5M2 ||
           factors == Factors::kF8RhsE5M2;
  }
  bool has_scale() const { return has_bytes() && dtype != base::DType::kI32; }
};

// nn.grouped_dot, or its weight gradient; all operands are dense. `rows` /
// `lhs_rows` consecutive rows share one row of lhs [lhs_rows, k]. Operands:
// lhs, matrices [groups, n, k] ([groups, k, n] if transposed), ids [rows], out
// [rows, n]. Operands of the gradient: lhs, out's gradient, ids, the matrices'
// gradient [groups, n, k]. An id outside [0, groups) gives 0. 16-bit floats are
// summed in f32.
struct GroupedGemmDesc {
  base::DType dtype = base::DType::kF32;
  base::DType ids = base::DType::kI64;  // or kI32
  int64_t rows = 1, lhs_rows = 1, groups = 1, n = 1, k = 1;
  bool transposed = false;
  bool weight_grad = false;
};

enum class ConvDirection : int8_t { kForward = 0, kInputGrad, kWeightGrad };

// The convolution nn.conv or one of its gradients. Shapes are always the shapes
// of the forward convolution. out = activation(conv + bias) + residual, or
// activation(conv + bias + residual) if activates_sum. Relu and relu6 may turn
// NaN into 0.
// Operands of kForward: input, weight [O, C / groups, kernel...], bias if
// has_bias, residual if has_residual (the same memory as out if
// residual_in_out, else it must not overlap out), out.
// With factors kI8 or kU8I8, the convolution is of input - zero and weight,
// with exact sums, and scale[o] * conv + bias replaces conv + bias. With dtype
// kI8 or kU8, out is that / result_scale + result_zero, rounded and saturated,
// without residual; else dtype is kF32. Operands: input, weight, scale [O],
// zero (one i32) if has_zero, bias if has_bias, residual if has_residual,
// result_scale (one f32) and result_zero (one i32) if rounds(), out; floats are
// f32. Operands of kInputGrad: out's gradient, weight, input's gradient.
// Operands of kWeightGrad: input, out's gradient, weight's gradient. Gradients
// have no bias, residual or activation.
struct ConvDesc {
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> input_shape, weight_shape, out_shape;  // in memory order
  std::vector<int64_t> strides, dilations, low,
      high;  // one per spatial dimension
  int64_t groups = 1;
  bool channels_last = false;  // input, residual and out are [N, spatial..., C]
  bool has_bias = false;
  bool has_residual = false;
  Activation activation = Activation::kNone;
  bool activates_sum = false;  // requires a residual and an activation
  // Requires a residual, and activates_sum if there is an activation.
  bool residual_in_out = false;
  ConvDirection direction = ConvDirection::kForward;
  Factors factors = Factors::kSame;  // or kI8 or kU8I8
  bool has_zero = false;             // not with kSame

  bool has_bytes() const { return factors != Factors::kSame; }
  bool rounds() const {
    return dtype == base::DType::kI8 || dtype == base::DType::kU8;
  }
};

// A tensor map: boxes of a launch's operand that the kernel copies. See
// TensorMap in program.fbs.
struct TensorMapDesc {
  int operand = 0;
  int64_t offset = 0;  // bytes
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> shape, strides, box;
  bool swizzled = false;  // in 128-byte rows
};

inline int OperandCount(bool has_bias, bool has_residual) {
  return 3 + (has_bias ? 1 : 0) + (has_residual ? 1 : 0);
}

inline int OperandCount(const GemmDesc& desc) {
  return OperandCount(desc.has_bias, desc.has_residual) +
         (desc.has_scale() ? 1 : 0) + (desc.has_zero ? 1 : 0) +
         (desc.preactivation != Preactivation::kNone ? 1 : 0) +
         (desc.sums != Sums::kNone ? 1 : 0);
}

inline int OperandCount(const ConvDesc& desc) {
  return OperandCount(desc.has_bias, desc.has_residual) +
         (desc.has_bytes() ? 1 : 0) + (desc.has_zero ? 1 : 0) +
         (desc.rounds() ? 2 : 0);
}

// An attention that a launch computes; program.fbs defines it. Offsets and
// strides are in elements.
struct AttentionDesc {
  // A tensor [batch, heads, positions, size] inside operand `operand` of the
  // launch, with a contiguous last dimension.
  struct Tensor {
    int operand = 0;
    int64_t offset = 0;
    std::array<int64_t, 3> strides = {};  // of the other dimensions
  };
  base::DType dtype = base::DType::kBF16;
  int64_t batch = 1, heads = 1, groups = 1, queries = 1, keys = 1, size = 1,
          value_size = 1;
  double scale = 1;
  bool causal = false;
  int64_t causal_offset = 0;
  Tensor q, k, v, out;
  int lse = -1;  // operand; -1: none
};

}  // namespace partita::device

#endif  // PARTITA_RUNTIME_DEVICE_OPERATIONS_H_
