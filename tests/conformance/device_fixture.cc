// Devices, memory and references of the conformance tests.
#include "tests/conformance/device_fixture.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/random_fill.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/device/null_device.h"

namespace partita::conformance {
namespace {

using device::Activation;

double Activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case Activation::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
  }
  return x;
}

// A convolution with its activations as [N, C, D, H, W], for any layout and
// rank.
class ConvView {
 public:
  explicit ConvView(const device::ConvDesc& desc)
      : desc_(desc),
        spatial_(desc.weight_shape.size() - 2),
        first_(desc.channels_last ? 1 : 2) {}

  int64_t Channels(const std::vector<int64_t>& shape) const {
    return desc_.channels_last ? shape.back() : shape[1];
  }

  // The position of element (n, c, at), or -1 if `at` is outside.
  int64_t Index(const std::vector<int64_t>& shape, int64_t n, int64_t c,
                const std::vector<int64_t>& at) const {
    int64_t spatial = 0;
    int64_t size = 1;
    for (size_t i = 0; i < spatial_; ++i) {
      if (at[i] < 0 || at[i] >= shape[first_ + i]) return -1;
      spatial = spatial * shape[first_ + i] + at[i];
      size *= shape[first_ + i];
    }
    const int64_t channels = Channels(shape);
    return desc_.channels_last ? (n * size + spatial) * channels + c
                               : (n * channels + c) * size + spatial;
  }

  // Advances a multi-index below `sizes`; false after the last.
  static bool Next(std::vector<int64_t>& at,
                   const std::vector<int64_t>& sizes) {
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < sizes[i]) return true;
      at[i] = 0;
    }
    return false;
  }

  std::vector<int64_t> SpatialSizes(const std::vector<int64_t>& shape) const {
    const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(first_);
    return std::vector<int64_t>(begin,
                                begin + static_cast<std::ptrdiff_t>(spatial_));
  }
  std::vector<int64_t> KernelSizes() const {
    return std::vector<int64_t>(desc_.weight_shape.begin() + 2,
                                desc_.weight_shape.end());
  }

  // Calls `visit` for each product summed in out's element (n, o, at), with the
  // positions of its factors in input and weight.
  template <typename Visit>
  void ForEachProduct(int64_t n, int64_t o, const std::vector<int64_t>& at,
                      Visit visit) const {
    const std::vector<int64_t> kernel = KernelSizes();
    const int64_t channels = desc_.weight_shape[1];
    const int64_t first_channel =
        o / (desc_.weight_shape[0] / desc_.groups) * channels;
    int64_t kernel_size = 1;
    for (const int64_t size : kernel) kernel_size *= size;
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<int64_t> k(spatial_, 0);
      int64_t flat = 0;
      do {
        std::vector<int64_t> from(spatial_);
        for (size_t i = 0; i < spatial_; ++i)
          from[i] = at[i] * desc_.strides[i] - desc_.low[i] +
                    k[i] * desc_.dilations[i];
        const int64_t index =
            Index(desc_.input_shape, n, first_channel + c, from);
        const int64_t weight = (o * channels + c) * kernel_size + flat++;
        if (index >= 0)
          visit(static_cast<size_t>(index), static_cast<size_t>(weight));
      } while (Next(k, kernel));
    }
  }

 private:
  const device::ConvDesc& desc_;
  const size_t spatial_;
  const size_t first_;
};

constexpr char kRecording[] = "runtime/cuda/recording/librecording.so";

// device_kernels.cu, executed on the CPU.
void RecordedAdd(void** parameters, const cuda::recording::Place& place) {
  const auto buffer = [&](int i) {
    return *static_cast<float**>(parameters[i]);
  };
  const size_t i = place.block_at[0] * place.block[0] + place.thread_at[0];
  buffer(2)[i] = buffer(0)[i] + buffer(1)[i];
}

void RecordedAddPieces(void** parameters, const cuda::recording::Place& place) {
  struct Table {
    int64_t ends[128];
    float* buffers[128][3];
  };
  const Table& table = *static_cast<const Table*>(parameters[0]);
  const int64_t item =
      int64_t{1} * place.block_at[0] * place.block[0] + place.thread_at[0];
  if (item >= table.ends[127]) return;
  int piece = 0;
  while (table.ends[piece] <= item) ++piece;
  const int64_t i = piece == 0 ? item : item - table.ends[piece - 1];
  float* const* buffers = table.buffers[piece];
  buffers[2][i] = buffers[0][i] + buffers[1][i];
}

void RecordedMark(void** parameters, const cuda::recording::Place& place) {
  float* const out = *static_cast<float**>(parameters[0]);
  int* const counts = static_cast<int*>(place.shared);
  counts[place.thread_at[0]] += 1;
  out[place.block_at[0] * place.block[0] + place.thread_at[0]] +=
      static_cast<float>(counts[place.thread_at[0]]);
}

}  // namespace

std::vector<DeviceUnderTest> AllDevices() {
  std::vector<DeviceUnderTest> devices = {
      {"cpu", 1},
      {"cpu", 3},
      {"null", 1, false},
      {"recorded_cuda", 1, true, "cuda:sm_80", kRecording, kRecording},
      {"recorded_cuda_alone", 1, true, "cuda:sm_80", kRecording, "none"}};
  if (cuda::MakeCudaDevice().ok()) {
    devices.push_back({"cuda", 1, true, "cuda:sm_80"});
    devices.push_back({"cuda_alone", 1, true, "cuda:sm_80", "", "none"});
  }
  return devices;
}

std::string DeviceName(const ::testing::TestParamInfo<DeviceUnderTest>& info) {
  return absl::StrCat(info.param.name, info.param.threads);
}

std::unique_ptr<device::Device> MakeDevice(const DeviceUnderTest& device) {
  if (device.name == "null") return std::make_unique<device::NullDevice>();
  if (device.driver == kRecording) {
    const cuda::recording::Recording recording(device.driver);
    recording.Register("add", &RecordedAdd);
    recording.Register("add_pieces", &RecordedAddPieces);
    recording.Register("mark", &RecordedMark);
  }
  if (device.IsGpu())
    return std::move(cuda::MakeCudaDevice(
                         {0, device.driver, device.blas, device.blas}))
        .value();
  return std::move(cpu::MakeCpuDevice({device.threads})).value();
}

DeviceTest::DeviceTest()
    : device_(MakeDevice(GetParam())),
      stream_(std::move(device_->CreateStream()).value()) {}

std::string DeviceTest::KernelCode() {
  std::ifstream file(GetParam().IsGpu() ? "tests/conformance/device_kernels.ptx"
                                        : "tests/conformance/device_kernels.so",
                     std::ios::binary);
  std::string code{std::istreambuf_iterator<char>(file),
                   std::istreambuf_iterator<char>()};
  EXPECT_FALSE(code.empty());
  return code;
}

device::LaunchShape DeviceTest::Shape(int64_t range, int64_t grain,
                                      int64_t scratch_bytes) {
  device::LaunchShape shape;
  if (GetParam().IsGpu()) {
    shape.grid = {static_cast<int>(range), 1, 1};
    shape.block = {1, 1, 1};
    shape.shared_bytes = scratch_bytes > 0 ? sizeof(int) : 0;
    return shape;
  }
  EXPECT_TRUE(device_->ReserveLaunchScratch(scratch_bytes).ok());
  shape.range = range;
  shape.grain = grain;
  shape.scratch_bytes = scratch_bytes;
  return shape;
}

device::Allocation DeviceTest::Allocate(int64_t bytes) {
  return std::move(device::Allocation::Make(*device_, bytes)).value();
}

device::Allocation DeviceTest::Upload(const void* data, int64_t bytes) {
  device::Allocation allocation = Allocate(bytes);
  EXPECT_TRUE(
      device_->CopyToDevice(*stream_, allocation.data(), data, bytes).ok());
  EXPECT_TRUE(device_->Synchronize(*stream_).ok());
  return allocation;
}

void DeviceTest::Download(const device::Allocation& allocation, void* data) {
  EXPECT_TRUE(
      device_->CopyToHost(*stream_, data, allocation.data(), allocation.bytes())
          .ok());
  EXPECT_TRUE(device_->Synchronize(*stream_).ok());
}

std::vector<float> Values(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  const absl::Status status = base::FillElements(
      {"uniform", 1.0, seed}, base::DType::kF32, 0, count, values.data());
  EXPECT_TRUE(status.ok());
  return values;
}

std::string Encode(base::DType dtype, const std::vector<float>& values) {
  std::string bytes(values.size() * static_cast<size_t>(base::SizeOf(dtype)),
                    '\0');
  base::Convert(base::DType::kF32, values.data(), dtype, bytes.data(),
                static_cast<int64_t>(values.size()));
  return bytes;
}

std::vector<float> Decode(base::DType dtype, const std::string& bytes) {
  std::vector<float> values(bytes.size() /
                            static_cast<size_t>(base::SizeOf(dtype)));
  base::Convert(dtype, bytes.data(), base::DType::kF32, values.data(),
                static_cast<int64_t>(values.size()));
  return values;
}

void ReferenceGemm(const device::GemmDesc& desc, const std::vector<float>& lhs,
                   const std::vector<float>& rhs,
                   const std::vector<float>& bias,
                   const std::vector<float>& residual,
                   std::vector<float>& out) {
  const auto at = [](const std::array<int64_t, 3>& strides, int64_t b,
                     int64_t i, int64_t j) {
    return static_cast<size_t>(b * strides[0] + i * strides[1] +
                               j * strides[2]);
  };
  for (int64_t b = 0; b < desc.batch; ++b) {
    for (int64_t m = 0; m < desc.m; ++m) {
      for (int64_t n = 0; n < desc.n; ++n) {
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(n)];
        for (int64_t k = 0; k < desc.k; ++k) {
          sum += static_cast<double>(lhs[at(desc.lhs_strides, b, m, k)]) *
                 rhs[at(desc.rhs_strides, b, k, n)];
        }
        const size_t index = at(desc.out_strides, b, m, n);
        out[index] =
            static_cast<float>(Activate(desc.activation, sum) +
                               (residual.empty() ? 0 : residual[index]));
      }
    }
  }
}

void ReferenceConv(const device::ConvDesc& desc,
                   const std::vector<float>& first,
                   const std::vector<float>& second,
                   const std::vector<float>& bias,
                   const std::vector<float>& residual,
                   std::vector<float>& out) {
  const ConvView view(desc);
  const std::vector<int64_t> sizes = view.SpatialSizes(desc.out_shape);
  std::vector<double> sums(out.size(), 0);
  for (int64_t n = 0; n < desc.out_shape[0]; ++n) {
    for (int64_t o = 0; o < desc.weight_shape[0]; ++o) {
      std::vector<int64_t> at(sizes.size(), 0);
      do {
        const size_t index =
            static_cast<size_t>(view.Index(desc.out_shape, n, o, at));
        view.ForEachProduct(n, o, at, [&](size_t in, size_t weight) {
          switch (desc.direction) {
            case device::ConvDirection::kForward:
              sums[index] += static_cast<double>(first[in]) * second[weight];
              break;
            case device::ConvDirection::kInputGrad:
              sums[in] += static_cast<double>(first[index]) * second[weight];
              break;
            case device::ConvDirection::kWeightGrad:
              sums[weight] += static_cast<double>(first[in]) * second[index];
              break;
          }
        });
        if (desc.direction != device::ConvDirection::kForward) continue;
        if (!bias.empty()) sums[index] += bias[static_cast<size_t>(o)];
        const double addend = residual.empty() ? 0 : residual[index];
        sums[index] = desc.activates_sum
                          ? Activate(desc.activation, sums[index] + addend)
                          : Activate(desc.activation, sums[index]) + addend;
      } while (ConvView::Next(at, sizes));
    }
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(sums[i]);
}

void ExpectNear(const std::vector<float>& expected,
                const std::vector<float>& found, double tolerance) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(expected[i]) - found[i]);
    // Written so that NaN fails.
    ASSERT_TRUE(error <= tolerance * (1 + std::abs(expected[i])))
        << "element " << i << ": expected " << expected[i] << ", found "
        << found[i];
  }
}

}  // namespace partita::conformance
