// Library operations as devices understand them; program.fbs defines what they
// compute.
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
  kSigmoid
};

// out[b,m,n] = activation(sum_k lhs[b,m,k] * rhs[b,k,n] + bias[n]) +
// residual[b,m,n]. Strides in elements. Operands: lhs, rhs, bias if has_bias,
// residual if has_residual, out. 16-bit floats are summed in f32. The residual
// may be the output, and must not lie partly in it.
struct GemmDesc {
  base::DType dtype = base::DType::kF32;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::array<int64_t, 3> lhs_strides = {};  // batch, m, k
  std::array<int64_t, 3> rhs_strides = {};  // batch, k, n
  std::array<int64_t, 3> out_strides = {};  // batch, m, n; the residual's too
  bool has_bias = false;
  bool has_residual = false;
  Activation activation = Activation::kNone;
};

enum class ConvDirection : int8_t { kForward = 0, kInputGrad, kWeightGrad };

// As nn.conv. Operands: input, weight [O, C / groups, kernel...], bias if
// has_bias, residual if has_residual (no part of it in out), out. Of the
// gradients, which have neither bias nor residual nor activation: out's
// gradient, weight, input's gradient; or input, out's gradient, weight's
// gradient. Shapes are always those of the convolution.
struct ConvDesc {
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> input_shape, weight_shape, out_shape;  // as stored
  std::vector<int64_t> strides, dilations, low,
      high;  // one per spatial dimension
  int64_t groups = 1;
  bool channels_last = false;  // input, residual and out are [N, spatial..., C]
  bool has_bias = false;
  bool has_residual = false;
  Activation activation = Activation::kNone;
  ConvDirection direction = ConvDirection::kForward;
};

// Boxes of a launch's operand, as its kernel copies them: TensorMap in
// program.fbs.
struct TensorMapDesc {
  int operand = 0;
  int64_t offset = 0;  // bytes
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> shape, strides, box;
  bool swizzled = false;  // by 128 bytes
};

inline int OperandCount(bool has_bias, bool has_residual) {
  return 3 + (has_bias ? 1 : 0) + (has_residual ? 1 : 0);
}

}  // namespace partita::device

#endif  // PARTITA_RUNTIME_DEVICE_OPERATIONS_H_
