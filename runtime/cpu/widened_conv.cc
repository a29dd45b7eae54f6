// The scratch block has the inner convolution's scratch, then the widened
// input, the widened weight unless it is packed, and the sums.
#include "runtime/cpu/widened_conv.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/byte_conv_operands.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/dnnl_library.h"

namespace partita::cpu {
namespace {

using device::Activation;

template <typename Integer>
void WidenAs(const void* source, int64_t count, int32_t zero, float* target) {
  const auto* values = static_cast<const Integer*>(source);
  for (int64_t i = 0; i < count; ++i)
    target[i] = static_cast<float>(static_cast<int32_t>(values[i]) - zero);
}

float Activated(Activation activation, float x) {
  switch (activation) {
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kRelu6:
      return x > 0 ? std::fmin(x, 6.0f) : 0;
    case Activation::kHardSwish:
      return x * std::fmin(std::fmax(x + 3, 0.0f), 6.0f) / 6;
    default:
      return x;
  }
}

// The nearest of the integers from `least` to `least` + 255.
int32_t Rounded(float x, int32_t least) {
  const float nearest = std::nearbyint(x);
  if (!(nearest > static_cast<float>(least))) return least;
  return nearest >= static_cast<float>(least + 255)
             ? least + 255
             : static_cast<int32_t>(nearest);
}

class WidenedConv : public CpuOp {
 public:
  WidenedConv(const device::ConvDesc& desc, std::unique_ptr<CpuOp> inner)
      : desc_(desc),
        operands_(desc),
        inner_(std::move(inner)),
        inputs_(*base::ElementCount(desc.input_shape)),
        weights_(*base::ElementCount(desc.weight_shape)),
        outputs_(*base::ElementCount(desc.out_shape)) {}

  bool Packed(int index) const override {
    return index == 1 && inner_->Packed(1);
  }
  std::string Description() const override {
    return inner_->Description() + "+widen";
  }
  int64_t scratch_bytes() const override { return SumsAt() + 4 * outputs_; }

  absl::Status Run(void* const* buffers, char* scratch) override {
    auto* input = reinterpret_cast<float*>(scratch + InputAt());
    auto* weight = reinterpret_cast<float*>(scratch + WeightAt());
    auto* sums = reinterpret_cast<float*>(scratch + SumsAt());
    int32_t zero = 0;
    if (operands_.zero >= 0) std::memcpy(&zero, buffers[operands_.zero], 4);
    if (desc_.factors == device::Factors::kU8I8)
      WidenAs<uint8_t>(buffers[0], inputs_, zero, input);
    else
      WidenAs<int8_t>(buffers[0], inputs_, zero, input);
    if (!Packed(1)) WidenAs<int8_t>(buffers[1], weights_, 0, weight);
    void* inner[] = {input, weight, sums};
    PARTITA_RETURN_IF_ERROR(inner_->Run(inner, scratch));
    Finish(buffers, sums);
    return absl::OkStatus();
  }

 private:
  int64_t InputAt() const { return AlignUp(inner_->scratch_bytes()); }
  int64_t WeightAt() const { return AlignUp(InputAt() + 4 * inputs_); }
  int64_t SumsAt() const {
    return AlignUp(WeightAt() + (Packed(1) ? 0 : 4 * weights_));
  }

  // Scales the sums, and writes the result in its type.
  void Finish(void* const* buffers, const float* sums) const {
    const auto floats = [&](int place) {
      return place < 0 ? nullptr : static_cast<const float*>(buffers[place]);
    };
    const float *scale = floats(operands_.scale),
                *bias = floats(operands_.bias),
                *residual = floats(operands_.residual);
    int32_t result_zero = 0;
    if (desc_.rounds())
      std::memcpy(&result_zero, buffers[operands_.result_zero], 4);
    const float result_scale =
        desc_.rounds() ? *floats(operands_.result_scale) : 1;
    void* const out = buffers[operands_.out];
    const int64_t channels = desc_.weight_shape[0];
    const int64_t pixels =
        desc_.channels_last || desc_.out_shape[0] * channels == 0
            ? 1
            : outputs_ / (desc_.out_shape[0] * channels);
    for (int64_t i = 0; i < outputs_; ++i) {
      const int64_t channel = i / pixels % channels;
      float x = sums[i] * scale[channel];
      if (bias != nullptr) x += bias[channel];
      if (!desc_.activates_sum) x = Activated(desc_.activation, x);
      if (residual != nullptr) x += residual[i];
      if (desc_.activates_sum) x = Activated(desc_.activation, x);
      if (!desc_.rounds()) {
        static_cast<float*>(out)[i] = x;
        continue;
      }
      x = x / result_scale + static_cast<float>(result_zero);
      if (desc_.dtype == base::DType::kU8)
        static_cast<uint8_t*>(out)[i] = static_cast<uint8_t>(Rounded(x, 0));
      else
        static_cast<int8_t*>(out)[i] = static_cast<int8_t>(Rounded(x, -128));
    }
  }

  const device::ConvDesc desc_;
  const ByteConvOperands operands_;
  const std::unique_ptr<CpuOp> inner_;
  const int64_t inputs_, weights_, outputs_;
};

}  // namespace

bool MultipliesBytesExactly() {
  constexpr int kVnni =
      (dnnl_cpu_isa_avx512_core_vnni &
       ~static_cast<int>(dnnl_cpu_isa_avx512_core)) |
      (dnnl_cpu_isa_avx2_vnni & ~static_cast<int>(dnnl_cpu_isa_avx2));
  return (static_cast<int>(Dnnl().get_effective_cpu_isa()) & kVnni) != 0;
}

absl::StatusOr<std::unique_ptr<CpuOp>> MakeWidenedConv(
    DnnlContext& context, const device::ConvDesc& desc,
    const std::vector<const void*>& constants) {
  device::ConvDesc sums = desc;
  sums.dtype = base::DType::kF32;
  sums.factors = device::Factors::kSame;
  sums.has_zero = sums.has_bias = sums.has_residual = false;
  sums.activation = Activation::kNone;
  sums.activates_sum = sums.residual_in_out = false;
  // Packed when the convolution is made, and not read later.
  std::vector<float> weight;
  Constant constant;
  if (constants[1] != nullptr) {
    const int64_t count = *base::ElementCount(desc.weight_shape);
    weight.resize(static_cast<size_t>(count));
    WidenAs<int8_t>(constants[1], count, 0, weight.data());
    constant = {constants[1], weight.data()};
  }
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<CpuOp> inner,
                           MakeConv(context, sums, constant));
  return std::unique_ptr<CpuOp>(
      std::make_unique<WidenedConv>(desc, std::move(inner)));
}

}  // namespace partita::cpu
