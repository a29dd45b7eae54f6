// The runtime's own kernels, for operations that the libraries lack and for
// machines without the libraries. They favour simplicity over speed: one thread
// per element of the result. The same code is compiled for GPUs
// (own_kernels.cu) and, for tests without a GPU, for the CPU.
#ifndef PARTITA_RUNTIME_CUDA_OWN_KERNELS_H_
#define PARTITA_RUNTIME_CUDA_OWN_KERNELS_H_

#include "runtime/cuda/box_kernels.h"
#include "runtime/cuda/kernel_code.h"

namespace partita::cuda {

// The values of device::Activation, which this header cannot include.
enum class KernelActivation : int {
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

// Arguments of a product, like device::GemmDesc. Thread i computes element i of
// the dense result [batch, m, n].
struct ProductArgs {
  const void* lhs;
  const void* rhs;
  const float* scale;    // of the sums, or null
  const void* bias;      // or null
  const void* residual;  // or null
  const void* given;     // a pre-activation, or null
  void* out;
  void* kept;  // the pre-activation, or null
  Int count, m, n, k;
  Int lhs_strides[3], rhs_strides[3], out_strides[3];
  KernelType lhs_type, rhs_type;
  KernelType type;  // of all others
  KernelActivation activation;
};

// Arguments of bias, activation and residual of a product whose f32 sums are at
// `sums`, dense [batch, m, n].
struct FinishArgs {
  const float* sums;
  ProductArgs product;
};

// Arguments of the sums of a factor of one matrix over k. Elements are at
// i * stride + k * k_stride, for i below `count`. Each of `parts` parts sums
// `part` consecutive k to f32 sums [parts, count].
struct FactorSumsArgs {
  const void* factor;
  float* part_sums;
  void* out;
  Int count, k, stride, k_stride, part, parts;
  KernelType type;
};

// Arguments of a convolution, like device::ConvDesc with three spatial
// dimensions; leading ones have size 1 if there are fewer. Thread i computes
// element i of the result.
struct ConvArgs {
  const void* first;
  const void* second;
  const void* bias;      // or null
  const void* residual;  // or null
  void* out;
  Int count, batch, channels, features, groups;
  Int input[3], kernel[3], output[3];
  Int strides[3], dilations[3], low[3];
  KernelType type;
  KernelActivation activation;
  bool channels_last, activates_sum;
};

PARTITA_KERNEL_CODE float Exp(float x) {
#ifdef __CUDA_ARCH__
  return __nvvm_ex2_approx_f(x * 1.44269504088896341f);
#else
  return std::exp2(x * 1.44269504088896341f);
#endif
}

PARTITA_KERNEL_CODE float Tanh(float x) { return 1 - 2 / (Exp(2 * x) + 1); }

// Abramowitz and Stegun, 7.1.26. Error at most 1.5e-7.
PARTITA_KERNEL_CODE float Erf(float x) {
  const float z = x < 0 ? -x : x;
  const float t = 1 / (1 + 0.3275911f * z);
  const float sum =
      t * (0.254829592f +
           t * (-0.284496736f +
                t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float y = 1 - sum * Exp(-z * z);
  return x < 0 ? -y : y;
}

PARTITA_KERNEL_CODE float Relu6(float x) { return x > 6 ? 6 : x > 0 ? x : 0; }

PARTITA_KERNEL_CODE float Activate(KernelActivation activation, float x) {
  switch (activation) {
    case KernelActivation::kNone:
      return x;
    case KernelActivation::kRelu:
      return x > 0 ? x : 0;
    case KernelActivation::kGeluErf:
      return 0.5f * x * (1 + Erf(x * 0.70710678118654752f));
    case KernelActivation::kGeluTanh:
      return 0.5f * x *
             (1 + Tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case KernelActivation::kSilu:
      return x / (1 + Exp(-x));
    case KernelActivation::kTanh:
      return Tanh(x);
    case KernelActivation::kSigmoid:
      return 1 / (1 + Exp(-x));
    case KernelActivation::kRelu6:
      return Relu6(x);
    case KernelActivation::kHardSwish:
      return x * Relu6(x + 3) * (1 / 6.0f);
  }
  return x;
}

PARTITA_KERNEL_CODE float GeluTanhGradient(float x) {
  const float t = Tanh(0.79788456080286536f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456080286536f *
                              (1 + 0.134145f * x * x);
}

// Adds bias, activation and residual to the sum of element (b, r, c), and
// stores it. A given pre-activation has the gradient of GELU instead.
PARTITA_KERNEL_CODE void FinishElement(const ProductArgs& a, Int b, Int r,
                                       Int c, float sum) {
  const Int out =
      b * a.out_strides[0] + r * a.out_strides[1] + c * a.out_strides[2];
  if (a.bias) sum += Load(a.type, a.bias, c);
  if (a.kept) Store(a.type, a.kept, out, sum);
  if (a.given)
    sum *= GeluTanhGradient(Load(a.type, a.given, out));
  else
    sum = Activate(a.activation, sum);
  if (a.residual) sum += Load(a.type, a.residual, out);
  Store(a.type, a.out, out, sum);
}

PARTITA_KERNEL_CODE void ProductElement(const ProductArgs& a, Int i) {
  if (i >= a.count) return;
  const Int b = i / (a.m * a.n), r = i / a.n % a.m, c = i % a.n;
  const Int lhs = b * a.lhs_strides[0] + r * a.lhs_strides[1];
  const Int rhs = b * a.rhs_strides[0] + c * a.rhs_strides[2];
  float sum = 0;
  for (Int k = 0; k < a.k; ++k)
    sum += LoadFactor(a.lhs_type, a.lhs, lhs + k * a.lhs_strides[2]) *
           LoadFactor(a.rhs_type, a.rhs, rhs + k * a.rhs_strides[1]);
  if (a.scale) sum *= Load(KernelType::kF32, a.scale, 0);
  FinishElement(a, b, r, c, sum);
}

PARTITA_KERNEL_CODE void FinishProductElement(const FinishArgs& a, Int i) {
  if (i >= a.product.count) return;
  const ProductArgs& p = a.product;
  FinishElement(p, i / (p.m * p.n), i / p.n % p.m, i % p.n,
                Load(KernelType::kF32, a.sums, i));
}

// Thread i computes part i / count of sum i % count.
PARTITA_KERNEL_CODE void FactorPartElement(const FactorSumsArgs& a, Int i) {
  if (i >= a.parts * a.count) return;
  const Int begin = i / a.count * a.part;
  const Int end = begin + a.part < a.k ? begin + a.part : a.k;
  float sum = 0;
  for (Int k = begin; k < end; ++k)
    sum += Load(a.type, a.factor, i % a.count * a.stride + k * a.k_stride);
  Store(KernelType::kF32, a.part_sums, i, sum);
}

PARTITA_KERNEL_CODE void FactorSumElement(const FactorSumsArgs& a, Int i) {
  if (i >= a.count) return;
  float sum = 0;
  for (Int part = 0; part < a.parts; ++part)
    sum += Load(KernelType::kF32, a.part_sums, part * a.count + i);
  Store(a.type, a.out, i, sum);
}

// Index of element (n, c, at) of an activation of these sizes.
PARTITA_KERNEL_CODE Int ActivationIndex(bool channels_last, Int channels,
                                        const Int (&sizes)[3], Int n, Int c,
                                        const Int (&at)[3]) {
  const Int space = (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
  const Int size = sizes[0] * sizes[1] * sizes[2];
  return channels_last ? (n * size + space) * channels + c
                       : (n * channels + c) * size + space;
}

// Splits index i in memory order into (n, c, at) of an activation.
PARTITA_KERNEL_CODE void SplitActivation(bool channels_last, Int channels,
                                         const Int (&sizes)[3], Int i, Int& n,
                                         Int& c, Int (&at)[3]) {
  if (channels_last) c = i % channels, i /= channels;
  for (int d = 2; d >= 0; --d) at[d] = i % sizes[d], i /= sizes[d];
  if (!channels_last) c = i % channels, i /= channels;
  n = i;
}

PARTITA_KERNEL_CODE Int WeightIndex(const ConvArgs& a, Int o, Int c,
                                    const Int (&k)[3]) {
  const Int channels = a.channels / a.groups;
  return (((o * channels + c) * a.kernel[0] + k[0]) * a.kernel[1] + k[1]) *
             a.kernel[2] +
         k[2];
}

// Adds bias, activation and residual to the sum of element i, which belongs to
// feature o, and stores it.
PARTITA_KERNEL_CODE void FinishConv(const ConvArgs& a, Int i, Int o,
                                    float sum) {
  if (a.bias) sum += Load(a.type, a.bias, o);
  const float addend = a.residual ? Load(a.type, a.residual, i) : 0;
  if (a.activates_sum)
    sum = Activate(a.activation, sum + addend);
  else
    sum = Activate(a.activation, sum) + addend;
  Store(a.type, a.out, i, sum);
}

PARTITA_KERNEL_CODE void ConvForwardElement(const ConvArgs& a, Int i) {
  if (i >= a.count) return;
  Int n, o, at[3], k[3], from[3];
  SplitActivation(a.channels_last, a.features, a.output, i, n, o, at);
  const Int channels = a.channels / a.groups;
  const Int first = o / (a.features / a.groups) * channels;
  float sum = 0;
  for (k[0] = 0; k[0] < a.kernel[0]; ++k[0])
    for (k[1] = 0; k[1] < a.kernel[1]; ++k[1])
      for (k[2] = 0; k[2] < a.kernel[2]; ++k[2]) {
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          from[d] = at[d] * a.strides[d] - a.low[d] + k[d] * a.dilations[d];
          inside = inside && from[d] >= 0 && from[d] < a.input[d];
        }
        for (Int c = 0; inside && c < channels; ++c)
          sum += Load(a.type, a.first,
                      ActivationIndex(a.channels_last, a.channels, a.input, n,
                                      first + c, from)) *
                 Load(a.type, a.second, WeightIndex(a, o, c, k));
      }
  FinishConv(a, i, o, sum);
}

// Finishes a convolution whose sums are already in its result.
PARTITA_KERNEL_CODE void FinishConvElement(const ConvArgs& a, Int i) {
  if (i >= a.count) return;
  Int n, o, at[3];
  SplitActivation(a.channels_last, a.features, a.output, i, n, o, at);
  FinishConv(a, i, o, Load(a.type, a.out, i));
}

// first: the gradient of out, second: the weight.
PARTITA_KERNEL_CODE void ConvInputGradElement(const ConvArgs& a, Int i) {
  if (i >= a.count) return;
  Int n, c, at[3], k[3], to[3];
  SplitActivation(a.channels_last, a.channels, a.input, i, n, c, at);
  const Int channels = a.channels / a.groups, features = a.features / a.groups;
  const Int group = c / channels;
  float sum = 0;
  for (k[0] = 0; k[0] < a.kernel[0]; ++k[0])
    for (k[1] = 0; k[1] < a.kernel[1]; ++k[1])
      for (k[2] = 0; k[2] < a.kernel[2]; ++k[2]) {
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          const Int place = at[d] + a.low[d] - k[d] * a.dilations[d];
          to[d] = place / a.strides[d];
          inside = inside && place >= 0 && place % a.strides[d] == 0 &&
                   to[d] < a.output[d];
        }
        for (Int f = 0; inside && f < features; ++f) {
          const Int o = group * features + f;
          sum += Load(a.type, a.first,
                      ActivationIndex(a.channels_last, a.features, a.output, n,
                                      o, to)) *
                 Load(a.type, a.second, WeightIndex(a, o, c % channels, k));
        }
      }
  Store(a.type, a.out, i, sum);
}

// first: the input, second: the gradient of out.
PARTITA_KERNEL_CODE void ConvWeightGradElement(const ConvArgs& a, Int i) {
  if (i >= a.count) return;
  const Int channels = a.channels / a.groups;
  Int k[3], to[3], from[3], rest = i;
  for (int d = 2; d >= 0; --d) k[d] = rest % a.kernel[d], rest /= a.kernel[d];
  const Int o = rest / channels;
  const Int c = o / (a.features / a.groups) * channels + rest % channels;
  float sum = 0;
  for (Int n = 0; n < a.batch; ++n)
    for (to[0] = 0; to[0] < a.output[0]; ++to[0])
      for (to[1] = 0; to[1] < a.output[1]; ++to[1])
        for (to[2] = 0; to[2] < a.output[2]; ++to[2]) {
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            from[d] = to[d] * a.strides[d] - a.low[d] + k[d] * a.dilations[d];
            inside = inside && from[d] >= 0 && from[d] < a.input[d];
          }
          if (!inside) continue;
          sum += Load(a.type, a.first,
                      ActivationIndex(a.channels_last, a.channels, a.input, n,
                                      c, from)) *
                 Load(a.type, a.second,
                      ActivationIndex(a.channels_last, a.features, a.output, n,
                                      o, to));
        }
  Store(a.type, a.out, i, sum);
}

// X(symbol, arguments, body): the symbol's only parameter is its arguments.
#define PARTITA_OWN_KERNELS(X)                                 \
  X(partita_product, ProductArgs, ProductElement)              \
  X(partita_finish_product, FinishArgs, FinishProductElement)  \
  X(partita_factor_parts, FactorSumsArgs, FactorPartElement)   \
  X(partita_factor_sums, FactorSumsArgs, FactorSumElement)     \
  X(partita_conv_forward, ConvArgs, ConvForwardElement)        \
  X(partita_finish_conv, ConvArgs, FinishConvElement)          \
  X(partita_conv_input_grad, ConvArgs, ConvInputGradElement)   \
  X(partita_conv_weight_grad, ConvArgs, ConvWeightGradElement) \
  X(partita_copy_box, CopyBoxArgs, CopyBoxUnit)                \
  X(partita_gather_rows, GatherRowsArgs, GatherRowsUnit)       \
  X(partita_fill_box, FillBoxArgs, FillBoxElement)             \
  X(partita_reduce_box, ReduceBoxArgs, ReduceBoxElement)

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_OWN_KERNELS_H_
