// Compares convolutions on every device with plain loops.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Activation;
using device::ConvDesc;
using device::ConvDirection;

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

// A convolution from `channels` to `outputs` channels over the given sizes,
// with stride 1, no padding and no dilation.
ConvDesc Plain(int64_t batch, int64_t channels, int64_t outputs,
               std::vector<int64_t> sizes, std::vector<int64_t> kernel) {
  ConvDesc desc;
  desc.input_shape = {batch, channels};
  desc.input_shape.insert(desc.input_shape.end(), sizes.begin(), sizes.end());
  desc.weight_shape = {outputs, channels};
  desc.weight_shape.insert(desc.weight_shape.end(), kernel.begin(),
                           kernel.end());
  desc.strides = desc.dilations = std::vector<int64_t>(sizes.size(), 1);
  desc.low = desc.high = std::vector<int64_t>(sizes.size(), 0);
  return desc;
}

// Fills in the result's shape. Puts channels last if requested.
ConvDesc Finished(ConvDesc desc, bool channels_last) {
  desc.weight_shape[1] = desc.input_shape[1] / desc.groups;
  desc.out_shape = {desc.input_shape[0], desc.weight_shape[0]};
  for (size_t i = 0; i < desc.strides.size(); ++i) {
    const int64_t room = desc.low[i] + desc.input_shape[2 + i] + desc.high[i] -
                         desc.dilations[i] * (desc.weight_shape[2 + i] - 1) - 1;
    desc.out_shape.push_back(room / desc.strides[i] + 1);
  }
  desc.channels_last = channels_last;
  if (channels_last) {
    for (std::vector<int64_t>* shape : {&desc.input_shape, &desc.out_shape}) {
      shape->push_back((*shape)[1]);
      shape->erase(shape->begin() + 1);
    }
  }
  return desc;
}

class DeviceConvTest : public DeviceTest {
 protected:
  // Checks the convolution and its gradients.
  void Check(const ConvDesc& desc, double tolerance = 2e-5) {
    CheckDirection(desc, tolerance);
    ConvDesc gradient = desc;
    gradient.has_bias = gradient.has_residual = false;
    gradient.activation = Activation::kNone;
    gradient.activates_sum = false;
    for (const ConvDirection direction :
         {ConvDirection::kInputGrad, ConvDirection::kWeightGrad}) {
      SCOPED_TRACE(::testing::Message()
                   << "direction " << static_cast<int>(direction));
      gradient.direction = direction;
      CheckDirection(gradient, tolerance);
    }
  }

  // Checks both layouts, with a constant weight and without.
  void CheckDirection(const ConvDesc& desc, double tolerance) {
    for (const bool channels_last : {false, true}) {
      for (const bool constant : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << (channels_last ? "channels last" : "channels first")
                     << (constant ? ", constant weight" : ""));
        CheckOnce(Finished(desc, channels_last), constant, tolerance);
      }
    }
  }

 private:
  std::vector<float> Rounded(const ConvDesc& desc, int64_t count,
                             uint64_t seed) {
    return Decode(desc.dtype, Encode(desc.dtype, Values(count, seed)));
  }
  device::Allocation Put(const ConvDesc& desc,
                         const std::vector<float>& values) {
    const std::string bytes = Encode(desc.dtype, values);
    return Upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  }

  void CheckOnce(const ConvDesc& desc, bool constant, double tolerance) {
    std::vector<std::vector<int64_t>> shapes = {
        desc.input_shape, desc.weight_shape, desc.out_shape};
    if (desc.direction == ConvDirection::kInputGrad)
      shapes = {desc.out_shape, desc.weight_shape, desc.input_shape};
    if (desc.direction == ConvDirection::kWeightGrad)
      shapes = {desc.input_shape, desc.out_shape, desc.weight_shape};
    const std::vector<float> first = Rounded(desc, Product(shapes[0]), 1);
    const std::vector<float> second = Rounded(desc, Product(shapes[1]), 2);
    const std::vector<float> bias = desc.has_bias
                                        ? Rounded(desc, desc.weight_shape[0], 3)
                                        : std::vector<float>();
    const std::vector<float> residual =
        desc.has_residual ? Rounded(desc, Product(desc.out_shape), 4)
                          : std::vector<float>();
    std::vector<float> expected(static_cast<size_t>(Product(shapes[2])), 0);
    const device::Allocation out = Put(desc, expected);
    ReferenceConv(desc, first, second, bias, residual, expected);

    std::vector<device::Allocation> memory;
    memory.push_back(Put(desc, first));
    memory.push_back(Put(desc, second));
    if (desc.has_bias) memory.push_back(Put(desc, bias));
    if (desc.has_residual) memory.push_back(Put(desc, residual));
    std::vector<void*> buffers;
    for (const device::Allocation& allocation : memory)
      buffers.push_back(allocation.data());
    buffers.push_back(desc.residual_in_out ? buffers.back() : out.data());
    const device::Allocation& written =
        desc.residual_in_out ? memory.back() : out;
    std::vector<const void*> constants(buffers.size(), nullptr);
    if (constant) constants[1] = buffers[1];
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareConv(desc, constants);
    ASSERT_TRUE(op.ok()) << op.status();
    for (int repeat = 0; repeat < (desc.residual_in_out ? 1 : 2); ++repeat) {
      ASSERT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    }
    std::string found(static_cast<size_t>(out.bytes()), '\0');
    Download(written, found.data());
    if (Executes()) ExpectNear(expected, Decode(desc.dtype, found), tolerance);
  }
};

TEST_P(DeviceConvTest, ChannelsAndKernels) {
  for (const int64_t channels : {1, 3, 16, 20}) {
    for (const int64_t outputs : {1, 8, 33}) {
      for (const int64_t kernel : {1, 2, 3}) {
        SCOPED_TRACE(::testing::Message()
                     << channels << " -> " << outputs << ", kernel " << kernel);
        Check(Plain(2, channels, outputs, {7, 9}, {kernel, kernel}));
      }
    }
  }
}

TEST_P(DeviceConvTest, OneAndThreeSpatialDimensions) {
  ConvDesc desc = Plain(2, 6, 10, {19}, {4});
  desc.strides = {3};
  desc.low = {2};
  Check(desc);
  desc = Plain(1, 4, 6, {5, 6, 7}, {3, 2, 3});
  desc.strides = {1, 2, 1};
  desc.high = {1, 0, 2};
  Check(desc);
}

TEST_P(DeviceConvTest, StridesDilationsAsymmetricPadding) {
  ConvDesc desc = Plain(1, 8, 16, {14, 15}, {3, 3});
  desc.strides = {2, 3};
  desc.low = {0, 1};
  desc.high = {1, 2};
  Check(desc);
  desc.dilations = {2, 4};
  Check(desc);
  desc.strides = {1, 1};
  desc.low = {3, 0};
  desc.high = {0, 5};
  Check(desc);
}

TEST_P(DeviceConvTest, WindowsThatSeeOnlyPadding) {
  ConvDesc desc = Plain(1, 3, 4, {4, 4}, {2, 2});
  desc.low = {5, 0};
  desc.high = {0, 6};
  Check(desc);
}

TEST_P(DeviceConvTest, GroupsAndDepthwise) {
  for (const int64_t groups : {2, 4, 24}) {
    SCOPED_TRACE(groups);
    ConvDesc desc = Plain(2, 24, 48, {8, 8}, {3, 3});
    desc.groups = groups;
    desc.low = desc.high = {1, 1};
    desc.has_bias = true;
    desc.activation = Activation::kGeluTanh;
    Check(desc);
    desc.weight_shape[0] = 24;
    desc.strides = {2, 2};
    desc.has_residual = true;
    Check(desc);
  }
}

// Channels that fill blocks of 32 and those that do not; windows of several
// widths; rows that only padding reaches.
TEST_P(DeviceConvTest, DepthwiseWeightGrad) {
  for (const int64_t channels : {32, 72}) {
    for (const int64_t width : {3, 5, 7}) {
      for (const int64_t stride : {1, 2, 8}) {
        SCOPED_TRACE(::testing::Message() << channels << " channels, window "
                                          << width << ", stride " << stride);
        ConvDesc desc =
            Plain(3, channels, channels, {9, 11}, {width - 1, width});
        desc.groups = channels;
        desc.strides = {stride, stride};
        desc.low = {width - 1, width / 2};
        desc.high = {width / 2, width};
        desc.direction = ConvDirection::kWeightGrad;
        CheckDirection(desc, 2e-5);
        desc.dtype = base::DType::kBF16;
        CheckDirection(desc, 8e-3);
      }
    }
  }
}

TEST_P(DeviceConvTest, Patches) {
  // A vision transformer's embedding: the kernel equals the stride.
  ConvDesc desc = Plain(1, 3, 32, {32, 32}, {8, 8});
  desc.strides = {8, 8};
  desc.has_bias = true;
  Check(desc);
}

TEST_P(DeviceConvTest, BiasActivationResidual) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGeluErf,
        Activation::kGeluTanh, Activation::kSilu, Activation::kTanh,
        Activation::kSigmoid, Activation::kRelu6, Activation::kHardSwish}) {
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << "activation " << static_cast<int>(activation) << bias
                     << residual);
        ConvDesc desc = Plain(1, 16, 16, {6, 6}, {3, 3});
        desc.low = desc.high = {1, 1};
        desc.activation = activation;
        desc.has_bias = bias;
        desc.has_residual = residual;
        CheckDirection(desc, 2e-5);
      }
    }
  }
}

TEST_P(DeviceConvTest, ActivatesSum) {
  for (const Activation activation :
       {Activation::kRelu, Activation::kSilu, Activation::kRelu6,
        Activation::kHardSwish}) {
    for (const int64_t groups : {1, 4, 16}) {
      SCOPED_TRACE(::testing::Message()
                   << "activation " << static_cast<int>(activation)
                   << " groups " << groups);
      ConvDesc desc = Plain(2, 16, 16, {6, 6}, {3, 3});
      desc.groups = groups;
      desc.low = desc.high = {1, 1};
      desc.activation = activation;
      desc.has_bias = true;
      desc.has_residual = true;
      desc.activates_sum = true;
      CheckDirection(desc, 2e-5);
    }
  }
}

// The CPU joins pointwise convolutions of small images.
TEST_P(DeviceConvTest, PointwiseOfSmallImages) {
  struct Case {
    int64_t batch, channels, outputs;
    std::vector<int64_t> sizes;
  };
  for (const Case& c :
       {Case{8, 24, 40, {1, 1}}, Case{3, 17, 5, {2, 3}}, Case{2, 8, 8, {4, 4}},
        Case{5, 12, 20, {3}}, Case{2, 512, 512, {17}}}) {
    SCOPED_TRACE(::testing::Message() << c.channels << " to " << c.outputs);
    ConvDesc desc = Plain(c.batch, c.channels, c.outputs, c.sizes,
                          std::vector<int64_t>(c.sizes.size(), 1));
    desc.has_bias = true;
    desc.has_residual = true;
    desc.activation = Activation::kRelu;
    desc.activates_sum = true;
    CheckDirection(desc, 2e-5);
  }
}

// CPUs with AMX compute these as products of bf16.
TEST_P(DeviceConvTest, PointwiseOfLargeImages) {
  if (!Executes() || GetParam().IsGpu()) return;
  struct Case {
    Activation activation;
    bool residual, in_out;
  };
  for (const Case& c : {Case{Activation::kNone, false, false},
                        Case{Activation::kSilu, false, false},
                        Case{Activation::kHardSwish, true, false},
                        Case{Activation::kRelu, true, true}}) {
    SCOPED_TRACE(static_cast<int>(c.activation));
    ConvDesc desc = Plain(2, 70, 140, {13, 11}, {1, 1});
    desc.has_bias = true;
    desc.activation = c.activation;
    desc.has_residual = desc.activates_sum = c.residual;
    desc.residual_in_out = c.in_out;
    CheckDirection(desc, 2e-5);
    desc.residual_in_out = desc.activates_sum = false;
    CheckDirection(desc, 2e-5);
  }
}

// The memory plan lets f32 results of CPUs take the residual's place.
TEST_P(DeviceConvTest, AddsInPlace) {
  if (GetParam().IsGpu()) GTEST_SKIP() << "only CPUs add in place";
  struct Case {
    int64_t channels, outputs, pixels, kernel, stride, groups;
  };
  for (const Case& c : {Case{16, 32, 14, 1, 1, 1}, Case{64, 256, 7, 1, 1, 1},
                        Case{20, 12, 6, 1, 1, 1}, Case{16, 16, 9, 3, 1, 1},
                        Case{32, 64, 8, 3, 2, 1}, Case{16, 24, 8, 1, 2, 1},
                        Case{16, 16, 6, 3, 1, 4}}) {
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kHardSwish}) {
      SCOPED_TRACE(::testing::Message()
                   << c.channels << " to " << c.outputs << ", kernel "
                   << c.kernel << ", groups " << c.groups << ", activation "
                   << static_cast<int>(activation));
      ConvDesc desc = Plain(2, c.channels, c.outputs, {c.pixels, c.pixels},
                            {c.kernel, c.kernel});
      desc.groups = c.groups;
      desc.strides = {c.stride, c.stride};
      desc.low = desc.high = {c.kernel / 2, c.kernel / 2};
      desc.has_bias = true;
      desc.has_residual = true;
      desc.activation = activation;
      desc.activates_sum = activation != Activation::kNone;
      desc.residual_in_out = true;
      CheckDirection(desc, 2e-5);
    }
  }
}

TEST_P(DeviceConvTest, HalfPrecision) {
  for (const base::DType dtype : {base::DType::kBF16, base::DType::kF16}) {
    SCOPED_TRACE(base::NameOf(dtype));
    ConvDesc desc = Plain(1, 16, 24, {6, 7}, {3, 3});
    desc.dtype = dtype;
    desc.low = desc.high = {1, 1};
    desc.has_bias = true;
    desc.has_residual = true;
    desc.activation = Activation::kSilu;
    Check(desc, dtype == base::DType::kBF16 ? 8e-3 : 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConvTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
