// An attention for tests on recorded GPUs: its description, the kernel that a
// launch of it runs, and its values.
#ifndef PARTITA_RUNTIME_CUDA_ATTENTION_TESTING_H_
#define PARTITA_RUNTIME_CUDA_ATTENTION_TESTING_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// Operands: q, k and v in one buffer, out, lse; then scratch.
constexpr char kAttendPtx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry attend(.param .u64 a, .param .u64 b, .param .u64 c, "
    ".param .u64 d) { ret; }\n";
constexpr int64_t kLaunchScratch = 512;
constexpr float kSlow = 100, kFast = 0.5f;  // milliseconds of the launch

// The compiler's kernel computes the same; here it leaves a mark instead.
constexpr uint16_t kMark = 0x4242;
inline void Attend(void** parameters, const recording::Place&) {
  **static_cast<uint16_t**>(parameters[1]) = kMark;
}

inline Floats ToFloats(DType dtype, const std::vector<uint16_t>& bits) {
  Floats values(bits.size());
  base::Convert(dtype, bits.data(), DType::kF32, values.data(),
                static_cast<int64_t>(bits.size()));
  return values;
}

inline std::vector<uint16_t> ToBits(DType dtype, const Floats& values) {
  std::vector<uint16_t> bits(values.size());
  base::Convert(DType::kF32, values.data(), dtype, bits.data(),
                static_cast<int64_t>(values.size()));
  return bits;
}

// Multiples of 1/64 in [-2, 2), which are exact in f16 and bf16.
inline Floats Numbers(size_t count) {
  Floats values(count);
  uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64;
  }
  return values;
}

// Grouped queries that read a joint buffer of q, k and v by tokens, as models
// do: [batch, keys, heads + 2 groups, size]. The queries are the last tokens.
inline device::AttentionDesc DescribeAttention(DType dtype, bool causal) {
  device::AttentionDesc desc;
  desc.dtype = dtype;
  desc.batch = 2;
  desc.heads = 4;
  desc.groups = 2;
  desc.queries = 5;
  desc.keys = 7;
  desc.size = desc.value_size = 8;
  desc.scale = 0.25;
  desc.causal = causal;
  desc.causal_offset = causal ? 2 : 0;
  const int64_t token = (desc.heads + 2 * desc.groups) * desc.size;
  const std::array<int64_t, 3> strides = {desc.keys * token, desc.size, token};
  desc.q = {0, 2 * token, strides};
  desc.k = {0, desc.heads * desc.size, strides};
  desc.v = {0, (desc.heads + desc.groups) * desc.size, strides};
  const int64_t row = desc.heads * desc.value_size;
  desc.out = {1, 0, {desc.queries * row, desc.value_size, row}};
  desc.lse = 2;
  return desc;
}

// Elements of the joint buffer.
inline int64_t JointSize(const device::AttentionDesc& desc) {
  return desc.batch * desc.keys * (desc.heads + 2 * desc.groups) * desc.size;
}

struct AttentionValues {
  Floats out, lse;
};

// In double precision.
inline AttentionValues AttentionReference(const device::AttentionDesc& d,
                                          const Floats& joint) {
  AttentionValues results;
  results.out.resize(
      static_cast<size_t>(d.batch * d.queries * d.heads * d.value_size));
  const auto at = [](const device::AttentionDesc::Tensor& t, int64_t b,
                     int64_t n, int64_t i) {
    return static_cast<size_t>(t.offset + b * t.strides[0] + n * t.strides[1] +
                               i * t.strides[2]);
  };
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t n = 0; n < d.heads; ++n)
      for (int64_t i = 0; i < d.queries; ++i) {
        const int64_t g = n / (d.heads / d.groups);
        const int64_t end =
            d.causal ? std::min(d.keys, i + d.causal_offset + 1) : d.keys;
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < end; ++j) {
          double score = 0;
          for (size_t c = 0; c < static_cast<size_t>(d.size); ++c)
            score += static_cast<double>(joint[at(d.q, b, n, i) + c]) *
                     static_cast<double>(joint[at(d.k, b, g, j) + c]);
          weights.push_back(std::exp(score * d.scale));
          sum += weights.back();
        }
        results.lse.push_back(static_cast<float>(std::log(sum)));
        for (size_t c = 0; c < static_cast<size_t>(d.value_size); ++c) {
          double value = 0;
          for (size_t j = 0; j < weights.size(); ++j)
            value += weights[j] / sum *
                     static_cast<double>(
                         joint[at(d.v, b, g, static_cast<int64_t>(j)) + c]);
          results.out[at(d.out, b, n, i) + c] = static_cast<float>(value);
        }
      }
  return results;
}

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_ATTENTION_TESTING_H_
