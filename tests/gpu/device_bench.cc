// device_bench [--device cpu|cuda] [--shrink N] [--driver LIBRARY --blas
// LIBRARY]: times copies on the device, and matrix products next to direct
// cuBLASLt calls. Prints a line each: name|milliseconds|text.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/blas_api.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/device.h"

namespace partita::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "cuda";
  int64_t shrink = 1;  // divides all sizes
  std::string driver, blas;
};

// Milliseconds per call of `work`: the minimum of six rounds of at least 20 ms.
absl::StatusOr<double> Measure(device::Device& device, device::Stream& stream,
                               const std::function<absl::Status()>& work) {
  double best = 1e30;
  int times = 1;
  PARTITA_RETURN_IF_ERROR(work());
  for (int round = 0; round < 6;) {
    PARTITA_RETURN_IF_ERROR(device.Synchronize(stream));
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < times; ++i) PARTITA_RETURN_IF_ERROR(work());
    PARTITA_RETURN_IF_ERROR(device.Synchronize(stream));
    const double ms =
        std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (ms < 20 && times < 4096) {
      times *= 2;
      continue;
    }
    best = std::min(best, ms / times);
    ++round;
  }
  return best;
}

struct Bench {
  const Options& options;
  device::Device& device;
  device::Stream& stream;
};

absl::Status BenchCopy(const Bench& bench) {
  const int64_t bytes = (int64_t{1} << 30) / bench.options.shrink;
  PARTITA_ASSIGN_OR_RETURN(const device::Allocation from,
                           device::Allocation::Make(bench.device, bytes));
  PARTITA_ASSIGN_OR_RETURN(const device::Allocation to,
                           device::Allocation::Make(bench.device, bytes));
  PARTITA_ASSIGN_OR_RETURN(
      const double ms, Measure(bench.device, bench.stream, [&] {
        return bench.device.Copy(bench.stream, to.data(), from.data(), bytes);
      }));
  std::printf("copy|%.4f|%.0f GB/s read and written\n", ms,
              2e-6 * static_cast<double>(bytes) / ms);
  return absl::OkStatus();
}

struct Product {
  const char* name;
  int64_t m, n, k;
  bool bias;
};
constexpr Product kProducts[] = {{"4096", 4096, 4096, 4096, false},
                                 {"8192", 8192, 8192, 8192, false},
                                 {"gpt2 up", 8192, 3072, 768, true},
                                 {"gpt2 down", 8192, 768, 3072, true},
                                 {"gpt2 logits", 8192, 50304, 768, false}};

// Direct cuBLASLt calls: a product of dense bf16 matrices by the fastest of the
// first eight algorithms that the library proposes.
class Bare {
 public:
  static absl::StatusOr<Bare> Open(const std::string& path) {
    Bare bare;
    for (const char* name : {path.c_str(), "libcublasLt.so.13",
                             "libcublasLt.so.12", "libcublasLt.so"})
      if (bare.library_ == nullptr && *name != '\0')
        bare.library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (bare.library_ == nullptr)
      return absl::FailedPreconditionError("cuBLASLt is not installed");
#define PARTITA_LOAD(member, symbol, parameters)                              \
  bare.member =                                                               \
      reinterpret_cast<decltype(bare.member)>(dlsym(bare.library_, #symbol)); \
  if (bare.member == nullptr)                                                 \
    return absl::FailedPreconditionError("cuBLASLt has no " #symbol);
    PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_LOAD)
#undef PARTITA_LOAD
    if (bare.Create(&bare.handle_) != kLtSuccess)
      return absl::InternalError("cuBLASLt does not start");
    return bare;
  }

  // Milliseconds of C = A B, row-major, without bias.
  absl::StatusOr<double> Run(const Bench& bench, const Product& p,
                             const void* a, const void* b, void* c) const {
    constexpr uint64_t kWorkspace = 32 << 20;
    PARTITA_ASSIGN_OR_RETURN(
        const device::Allocation workspace,
        device::Allocation::Make(bench.device, kWorkspace));
    LtMatmul matmul = nullptr;
    LtLayout la = nullptr, lb = nullptr, lc = nullptr;
    LtPreference preference = nullptr;
    const auto u = [](int64_t n) { return static_cast<uint64_t>(n); };
    LtHeuristic found[8];
    int count = 0;
    const bool ready = CreateMatmul(&matmul, kLtComputeF32, kLtF32) == 0 &&
                       CreateLayout(&lb, kLtBF16, u(p.n), u(p.k), p.n) == 0 &&
                       CreateLayout(&la, kLtBF16, u(p.k), u(p.m), p.k) == 0 &&
                       CreateLayout(&lc, kLtBF16, u(p.n), u(p.m), p.n) == 0 &&
                       CreatePreference(&preference) == 0 &&
                       SetPreference(preference, kLtMaxWorkspaceBytes,
                                     &kWorkspace, sizeof(kWorkspace)) == 0 &&
                       Heuristics(handle_, matmul, lb, la, lc, lc, preference,
                                  8, found, &count) == 0;
    double best = 1e30;
    const float one = 1, zero = 0;
    for (int i = 0; ready && i < count; ++i) {
      const absl::StatusOr<double> ms =
          Measure(bench.device, bench.stream, [&] {
            return Multiply(handle_, matmul, &one, b, lb, a, la, &zero, c, lc,
                            c, lc, &found[i].algorithm, workspace.data(),
                            kWorkspace, bench.stream.native_handle()) == 0
                       ? absl::OkStatus()
                       : absl::InternalError("cuBLASLt's product failed");
          });
      if (ms.ok()) best = std::min(best, *ms);
    }
    if (preference != nullptr) DestroyPreference(preference);
    for (LtLayout layout : {la, lb, lc})
      if (layout != nullptr) DestroyLayout(layout);
    if (matmul != nullptr) DestroyMatmul(matmul);
    if (best == 1e30) return absl::InternalError("cuBLASLt has no algorithm");
    return best;
  }

 private:
  void* library_ = nullptr;  // stays open
  LtHandle handle_ = nullptr;
#define PARTITA_MEMBER(member, symbol, parameters) \
  LtStatus(*member) parameters = nullptr;
  PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_MEMBER)
#undef PARTITA_MEMBER
};

// Returns `count` bf16 numbers. They are not zero: zeros need less power and
// multiply faster.
absl::StatusOr<device::Allocation> MakeNumbers(const Bench& bench,
                                               int64_t count) {
  PARTITA_ASSIGN_OR_RETURN(device::Allocation memory,
                           device::Allocation::Make(bench.device, count * 2));
  std::vector<uint16_t> numbers(static_cast<size_t>(count));
  uint32_t state = 1;
  for (uint16_t& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = static_cast<uint16_t>(0x3f00 | (state >> 24 & 0x7f) |
                                   (state >> 16 & 0x8000));
  }
  PARTITA_RETURN_IF_ERROR(bench.device.CopyToDevice(bench.stream, memory.data(),
                                                    numbers.data(), count * 2));
  PARTITA_RETURN_IF_ERROR(bench.device.Synchronize(bench.stream));
  return memory;
}

absl::Status BenchProduct(const Bench& bench, Product p,
                          const absl::StatusOr<Bare>& bare) {
  for (int64_t* size : {&p.m, &p.n, &p.k})
    *size = std::max<int64_t>(*size / bench.options.shrink, 16);
  device::GemmDesc desc;
  desc.dtype = base::DType::kBF16;
  desc.m = p.m;
  desc.n = p.n;
  desc.k = p.k;
  desc.lhs_strides = {0, p.k, 1};
  desc.rhs_strides = {0, p.n, 1};
  desc.out_strides = {0, p.n, 1};
  desc.has_bias = p.bias;
  std::vector<int64_t> counts = {p.m * p.k, p.k * p.n};
  if (p.bias) counts.push_back(p.n);
  counts.push_back(p.m * p.n);
  std::vector<device::Allocation> memory;
  std::vector<void*> buffers;
  for (const int64_t count : counts) {
    PARTITA_ASSIGN_OR_RETURN(device::Allocation part,
                             MakeNumbers(bench, count));
    buffers.push_back(part.data());
    memory.push_back(std::move(part));
  }
  PARTITA_ASSIGN_OR_RETURN(
      const std::unique_ptr<device::LibraryOp> op,
      bench.device.PrepareGemm(
          desc, std::vector<const void*>(buffers.size(), nullptr)));
  PARTITA_ASSIGN_OR_RETURN(
      const double ms, Measure(bench.device, bench.stream, [&] {
        return bench.device.Execute(bench.stream, *op, buffers.data(),
                                    static_cast<int>(buffers.size()));
      }));
  const double flops = 2.0 * static_cast<double>(p.m) *
                       static_cast<double>(p.n) * static_cast<double>(p.k);
  std::string text = absl::StrFormat("%.3f ms, %.1f TFLOP/s by %s", ms,
                                     flops / ms / 1e9, op->Description());
  const absl::StatusOr<double> other =
      bare.ok() ? bare->Run(bench, p, buffers[0], buffers[1], buffers.back())
                : absl::StatusOr<double>(bare.status());
  if (other.ok()) {
    absl::StrAppendFormat(&text, "; cuBLASLt bare %.3f ms, %.1f %% of its rate",
                          *other, 100 * *other / ms);
  } else {
    absl::StrAppend(&text, "; nothing to compare with: ",
                    std::string(other.status().message()));
  }
  std::printf("product %s|%.4f|%s\n", p.name, ms, text.c_str());
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  std::unique_ptr<device::Device> device;
  if (options.device == "cpu") {
    PARTITA_ASSIGN_OR_RETURN(device, cpu::MakeCpuDevice({1}));
  } else {
    CudaOptions gpu;
    gpu.driver = options.driver;
    gpu.blas = options.blas;
    PARTITA_ASSIGN_OR_RETURN(device, MakeCudaDevice(gpu));
  }
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<device::Stream> stream,
                           device->CreateStream());
  const Bench bench = {options, *device, *stream};
  PARTITA_RETURN_IF_ERROR(BenchCopy(bench));
  absl::StatusOr<Bare> bare =
      absl::FailedPreconditionError("the device is no GPU");
  if (options.device != "cpu") bare = Bare::Open(options.blas);
  for (const Product& product : kProducts)
    PARTITA_RETURN_IF_ERROR(BenchProduct(bench, product, bare));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--device") {
      options.device = value;
    } else if (flag == "--shrink" && std::atoi(value) > 0) {
      options.shrink = std::atoi(value);
    } else if (flag == "--driver") {
      options.driver = value;
    } else if (flag == "--blas") {
      options.blas = value;
    } else {
      std::fprintf(stderr,
                   "device_bench: expected --device, --shrink, --driver or "
                   "--blas with a value, found '%s'\n",
                   flag.c_str());
      return 2;
    }
  }
  const absl::Status status = Run(options);
  if (!status.ok())
    std::fprintf(stderr, "device_bench: %s\n",
                 std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace partita::cuda

int main(int argc, char** argv) { return partita::cuda::Main(argc, argv); }
