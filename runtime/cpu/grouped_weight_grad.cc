// A task computes a panel of rows of one group's gradient: it sums, in f32, the
// products of blocks of the group's rows. Blocks have few sizes, each with a
// primitive; a smaller block is filled up with rows of 0.
#include "runtime/cpu/grouped_weight_grad.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/block_product.h"
#include "runtime/cpu/grouped_op.h"

namespace partita::cpu {
namespace {

constexpr int64_t kBlockRows[] = {4, 16, 32, 64, 128, 256};
constexpr int64_t kMostBlockRows = 256;
constexpr int64_t kMostPanelBytes = int64_t{1} << 20;
constexpr int kLhs = 0, kGrad = 1, kOut = 3;

class GroupedWeightGrad : public GroupedOp {
 public:
  GroupedWeightGrad(const device::GroupedGemmDesc& desc, base::DType dtype,
                    int threads)
      : GroupedOp(desc, dtype, threads) {
    // All threads have work even if all rows are of one group.
    const int64_t wanted =
        std::max<int64_t>(threads, desc.n * desc.k * 4 / kMostPanelBytes);
    panels_ = PanelsOf(desc.n, wanted, /*least=*/64);
    width_ = desc.n / panels_;
  }

  absl::Status Prepare(const DnnlContext& context) {
    int64_t scratch = 0;
    for (const int64_t size : kBlockRows) {
      for (const bool adds : {false, true}) {
        PARTITA_ASSIGN_OR_RETURN(
            BlockProduct product,
            BlockProduct::Create(context, Describe(size, adds),
                                 /*packed=*/nullptr, threads()));
        scratch = std::max(scratch, product.scratch_bytes());
        (adds ? more_ : first_).push_back(std::move(product));
      }
      sizes_.push_back(size);
      if (size >= desc().rows) break;
    }
    const int64_t size = sizes_.back();
    lhs_offset_ = ReservePerThread(size * desc().k * factor_bytes());
    grad_offset_ = ReservePerThread(size * width_ * factor_bytes());
    if (desc().dtype != base::DType::kF32)
      sum_offset_ = ReservePerThread(width_ * desc().k * 4);
    scratch_offset_ = ReservePerThread(scratch);
    return absl::OkStatus();
  }

  bool Packed(int index) const override { return false; }
  std::string Description() const override {
    return first_.back().description() + (converts() ? "+convert" : "");
  }

 protected:
  int64_t PlanTasks(const Job& job) override { return desc().groups * panels_; }

  absl::Status RunTask(const Job& job, int64_t task, int thread,
                       char* scratch) override {
    const int64_t group = task / panels_, column = task % panels_ * width_;
    const int64_t elements = width_ * desc().k;
    char* const out = At(job, kOut, (group * desc().n + column) * desc().k);
    const int64_t count = groups().Count(group);
    if (count == 0) {
      std::memset(out, 0, static_cast<size_t>(elements * element_bytes()));
      return absl::OkStatus();
    }
    const bool is_wide = desc().dtype == base::DType::kF32;
    char* const sum = is_wide ? out : scratch + sum_offset_;
    const int64_t p = desc().rows / desc().lhs_rows;
    for (int64_t first = 0; first < count; first += kMostBlockRows) {
      const int64_t* rows = groups().RowsOf(group) + first;
      const int64_t block = std::min(kMostBlockRows, count - first);
      const size_t index = static_cast<size_t>(
          std::lower_bound(sizes_.begin(), sizes_.end(), block) -
          sizes_.begin());
      Gather(job, kLhs, rows, block, sizes_[index], p, desc().k, 0, desc().k,
             scratch + lhs_offset_);
      Gather(job, kGrad, rows, block, sizes_[index], 1, desc().n, column,
             width_, scratch + grad_offset_);
      PARTITA_RETURN_IF_ERROR((first == 0 ? first_ : more_)[index].Run(
          thread, scratch + grad_offset_, scratch + lhs_offset_, sum,
          scratch + scratch_offset_));
    }
    if (!is_wide)
      CopyElements(base::DType::kF32, sum, desc().dtype, out, elements);
    return absl::OkStatus();
  }

 private:
  BlockProductDesc Describe(int64_t rows, bool adds) const {
    BlockProductDesc product;
    product.m = width_;
    product.n = desc().k;
    product.k = rows;
    product.dtype = dtype();
    product.out_dtype = base::DType::kF32;
    product.lhs_strides = {1, width_};
    product.rhs_strides = {desc().k, 1};
    product.out_strides = {desc().k, 1};
    product.adds = adds;
    return product;
  }

  int64_t panels_, width_;      // of each matrix's rows
  std::vector<int64_t> sizes_;  // of blocks, ascending
  // One per size: for a group's first block, and for the others.
  std::vector<BlockProduct> first_, more_;
  int64_t lhs_offset_ = 0, grad_offset_ = 0, sum_offset_ = 0,
          scratch_offset_ = 0;
};

absl::StatusOr<std::unique_ptr<CpuOp>> Make(const DnnlContext& context,
                                            const device::GroupedGemmDesc& desc,
                                            base::DType dtype, int threads) {
  auto op = std::make_unique<GroupedWeightGrad>(desc, dtype, threads);
  PARTITA_RETURN_IF_ERROR(op->Prepare(context));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeGroupedWeightGrad(
    DnnlContext& context, const device::GroupedGemmDesc& desc, int threads) {
  absl::StatusOr<std::unique_ptr<CpuOp>> op =
      Make(context, desc, desc.dtype, threads);
  if (absl::IsUnimplemented(op.status()) && desc.dtype != base::DType::kF32)
    op = Make(context, desc, base::DType::kF32, threads);
  return op;
}

}  // namespace partita::cpu
