// grouped_bench [THREADS]: times grouped products on the CPU next to one dense
// product with the same number of operations, in the same run. A figure is the
// time over the dense product's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/device.h"

namespace partita {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  base::DType dtype;
  int64_t rows, groups, n, k;
};

constexpr base::DType kF32 = base::DType::kF32, kBF16 = base::DType::kBF16;
constexpr Case kCases[] = {
    {kF32, 2, 8, 1024, 512},     {kF32, 64, 8, 1024, 512},
    {kF32, 512, 8, 1024, 512},   {kF32, 2048, 8, 1024, 512},
    {kF32, 2048, 64, 1024, 512}, {kBF16, 2, 8, 1024, 512},
    {kBF16, 64, 8, 1024, 512},   {kBF16, 512, 8, 1024, 512},
    {kBF16, 2048, 8, 1024, 512}, {kBF16, 2048, 64, 1024, 512}};

class Bench {
 public:
  explicit Bench(std::unique_ptr<device::Device> device)
      : device_(std::move(device)) {}

  absl::Status Run(const Case& c) {
    PARTITA_ASSIGN_OR_RETURN(stream_, device_->CreateStream());
    const int64_t size = base::SizeOf(c.dtype);
    PARTITA_ASSIGN_OR_RETURN(lhs_, Make(c.rows * c.k * size));
    PARTITA_ASSIGN_OR_RETURN(matrices_, Make(c.groups * c.n * c.k * size));
    PARTITA_ASSIGN_OR_RETURN(out_, Make(c.rows * c.n * size));
    PARTITA_ASSIGN_OR_RETURN(ids_, Make(c.rows * 8));
    // Groups of unequal sizes, in no order.
    uint64_t state = 1;
    for (int64_t row = 0; row < c.rows; ++row) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      reinterpret_cast<int64_t*>(ids_.data())[row] =
          static_cast<int64_t>(state >> 33) % c.groups;
    }
    PARTITA_ASSIGN_OR_RETURN(const auto dense, Dense(c, false));
    PARTITA_ASSIGN_OR_RETURN(const auto dense_packed, Dense(c, true));
    PARTITA_ASSIGN_OR_RETURN(const auto grad, DenseGrad(c));
    PARTITA_ASSIGN_OR_RETURN(const auto grouped, Grouped(c, false, false));
    PARTITA_ASSIGN_OR_RETURN(const auto packed, Grouped(c, true, false));
    PARTITA_ASSIGN_OR_RETURN(const auto grouped_grad, Grouped(c, false, true));
    const std::vector<void*> products = {lhs_.data(), matrices_.data(),
                                         out_.data()};
    const std::vector<void*> dense_grads = {out_.data(), lhs_.data(),
                                            matrices_.data()};
    const std::vector<void*> all = {lhs_.data(), matrices_.data(), ids_.data(),
                                    out_.data()};
    const std::vector<void*> grads = {lhs_.data(), out_.data(), ids_.data(),
                                      matrices_.data()};
    std::vector<double> best(6, 1e30);
    for (int round = 0; round < 5; ++round) {
      const std::pair<device::LibraryOp*, std::vector<void*>> ops[] = {
          {dense.get(), products},        {grouped.get(), all},
          {dense_packed.get(), products}, {packed.get(), all},
          {grad.get(), dense_grads},      {grouped_grad.get(), grads}};
      for (size_t i = 0; i < best.size(); ++i) {
        PARTITA_ASSIGN_OR_RETURN(const double ms,
                                 Measure(*ops[i].first, ops[i].second));
        best[i] = std::min(best[i], ms);
      }
    }
    std::printf(
        "%-4s %5lld rows of %2lld %lldx%lld: grouped %8.3f ms = %.2f dense, "
        "packed %8.3f ms = %.2f dense, weight grad %8.3f ms = %.2f dense (%s, "
        "%s, %s)\n",
        base::NameOf(c.dtype), static_cast<long long>(c.rows),
        static_cast<long long>(c.groups), static_cast<long long>(c.n),
        static_cast<long long>(c.k), best[1], best[1] / best[0], best[3],
        best[3] / best[2], best[5], best[5] / best[4],
        grouped->Description().c_str(), packed->Description().c_str(),
        grouped_grad->Description().c_str());
    return absl::OkStatus();
  }

 private:
  using Op = std::unique_ptr<device::LibraryOp>;

  absl::StatusOr<device::Allocation> Make(int64_t bytes) {
    PARTITA_ASSIGN_OR_RETURN(device::Allocation memory,
                             device::Allocation::Make(*device_, bytes));
    // 1.0 in f32, small numbers in bf16.
    std::fill_n(reinterpret_cast<uint32_t*>(memory.data()), bytes / 4,
                0x3f803f80);
    return memory;
  }

  // rows x n x k with one matrix [n, k].
  absl::StatusOr<Op> Dense(const Case& c, bool constant) {
    device::GemmDesc desc;
    desc.dtype = c.dtype;
    desc.m = c.rows, desc.n = c.n, desc.k = c.k;
    desc.lhs_strides = {0, c.k, 1};
    desc.rhs_strides = {0, 1, c.k};
    desc.out_strides = {0, c.n, 1};
    return device_->PrepareGemm(
        desc, {nullptr, constant ? matrices_.data() : nullptr, nullptr});
  }
  // The gradient [n, k] of that matrix.
  absl::StatusOr<Op> DenseGrad(const Case& c) {
    device::GemmDesc desc;
    desc.dtype = c.dtype;
    desc.m = c.n, desc.n = c.k, desc.k = c.rows;
    desc.lhs_strides = {0, 1, c.n};
    desc.rhs_strides = {0, c.k, 1};
    desc.out_strides = {0, c.k, 1};
    return device_->PrepareGemm(desc, {nullptr, nullptr, nullptr});
  }
  absl::StatusOr<Op> Grouped(const Case& c, bool constant, bool weight_grad) {
    device::GroupedGemmDesc desc;
    desc.dtype = c.dtype;
    desc.rows = desc.lhs_rows = c.rows;
    desc.groups = c.groups, desc.n = c.n, desc.k = c.k;
    desc.weight_grad = weight_grad;
    return device_->PrepareGroupedGemm(
        desc,
        {nullptr, constant ? matrices_.data() : nullptr, nullptr, nullptr});
  }

  // Milliseconds per run, over at least 30 ms.
  absl::StatusOr<double> Measure(device::LibraryOp& op,
                                 const std::vector<void*>& buffers) {
    const int count = static_cast<int>(buffers.size());
    for (int times = 1;; times *= 2) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < times; ++i)
        PARTITA_RETURN_IF_ERROR(
            device_->Execute(*stream_, op, buffers.data(), count));
      const double ms =
          std::chrono::duration<double, std::milli>(Clock::now() - begin)
              .count();
      if (ms > 30) return ms / times;
    }
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
  device::Allocation lhs_, matrices_, out_, ids_;
};

absl::Status Run(int threads) {
  for (const Case& c : kCases) {
    PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device,
                             cpu::MakeCpuDevice({threads}));
    PARTITA_RETURN_IF_ERROR(Bench(std::move(device)).Run(c));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  const absl::Status status = partita::Run(argc > 1 ? std::atoi(argv[1]) : 1);
  if (!status.ok())
    std::fprintf(stderr, "grouped_bench: %s\n",
                 std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
