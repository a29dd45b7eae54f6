// A task multiplies a block of rows of one group by a panel of columns of the
// group's matrix. Blocks have few sizes, each with a primitive; a smaller block
// is filled up with rows of 0.
#include "runtime/cpu/grouped_gemm.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/block_product.h"
#include "runtime/cpu/grouped_op.h"
#include "runtime/cpu/memory.h"

namespace partita::cpu {
namespace {

constexpr int64_t kBlockRows[] = {1,  2,  4,  8,   16,  24, 32,
                                  48, 64, 96, 128, 192, 256};
constexpr int64_t kMostBlockRows = 256;
constexpr int kLhs = 0, kMatrices = 1, kOut = 3;

// Rows `first` to `first + rows` of a group.
struct Block {
  int64_t group, first, rows;
};

class GroupedGemm : public GroupedOp {
 public:
  GroupedGemm(const device::GroupedGemmDesc& desc, base::DType dtype,
              int threads)
      : GroupedOp(desc, dtype, threads) {
    // With many rows there are enough blocks for all threads.
    if (desc.rows < 4 * threads * kMostBlockRows)
      panels_ = PanelsOf(desc.n, threads, /*least=*/64);
    width_ = desc.n / panels_;
    const int64_t most_blocks =
        desc.rows / kMostBlockRows + std::min(desc.rows, desc.groups);
    blocks_offset_ =
        ReserveShared(most_blocks * static_cast<int64_t>(sizeof(Block)));
  }

  absl::Status Prepare(DnnlContext& context, const void* matrices) {
    if (matrices != nullptr) {
      const absl::Status packed = PrepareProducts(context, /*packed=*/true);
      if (packed.ok()) {
        PARTITA_RETURN_IF_ERROR(Pack(context, matrices));
      } else if (!absl::IsUnimplemented(packed)) {
        return packed;
      }
    }
    if (packed_.empty())
      PARTITA_RETURN_IF_ERROR(PrepareProducts(context, /*packed=*/false));
    const int64_t size = sizes_.back();
    rows_offset_ = ReservePerThread(size * desc().k * factor_bytes());
    out_offset_ = ReservePerThread(size * width_ * factor_bytes());
    if (converts() && packed_.empty())
      matrix_offset_ = ReservePerThread(width_ * desc().k * factor_bytes());
    int64_t scratch = 0;
    for (const BlockProduct& product : products_)
      scratch = std::max(scratch, product.scratch_bytes());
    scratch_offset_ = ReservePerThread(scratch);
    return absl::OkStatus();
  }

  bool Packed(int index) const override {
    return index == kMatrices && !packed_.empty();
  }
  std::string Description() const override {
    return products_.back().description() + (converts() ? "+convert" : "");
  }

 protected:
  int64_t PlanTasks(const Job& job) override {
    Block* blocks = BlocksOf(job);
    blocks_ = 0;
    for (int64_t group = 0; group < groups().groups(); ++group) {
      const int64_t count = groups().Count(group);
      for (int64_t first = 0; first < count; first += kMostBlockRows)
        blocks[blocks_++] = {group, first,
                             std::min(kMostBlockRows, count - first)};
    }
    // The last task writes the rows of no group.
    return blocks_ * panels_ + 1;
  }

  absl::Status RunTask(const Job& job, int64_t task, int thread,
                       char* scratch) override {
    if (task == blocks_ * panels_) {
      ClearOtherRows(job);
      return absl::OkStatus();
    }
    const Block& block = BlocksOf(job)[task / panels_];
    const int64_t column = task % panels_ * width_;
    const int64_t* rows = groups().RowsOf(block.group) + block.first;
    const size_t index = IndexOf(block.rows);
    const int64_t size = sizes_[index];
    const int64_t p = desc().rows / desc().lhs_rows;
    // A full block of consecutive rows needs no copies.
    const bool is_dense = size == block.rows && !converts() &&
                          rows[size - 1] - rows[0] == size - 1;
    const bool is_lhs_dense = is_dense && (p == 1 || size == 1);
    const bool is_out_dense = is_dense && (panels_ == 1 || size == 1);
    const char* lhs = scratch + rows_offset_;
    if (is_lhs_dense)
      lhs = At(job, kLhs, rows[0] / p * desc().k);
    else
      Gather(job, kLhs, rows, block.rows, size, p, desc().k, 0, desc().k,
             scratch + rows_offset_);
    char* const out = is_out_dense ? At(job, kOut, rows[0] * desc().n + column)
                                   : scratch + out_offset_;
    BlockProduct& product = products_[index];
    if (packed_.empty())
      PARTITA_RETURN_IF_ERROR(
          product.Run(thread, lhs, PanelOf(job, block.group, column, scratch),
                      out, scratch + scratch_offset_));
    else
      PARTITA_RETURN_IF_ERROR(product.RunPacked(
          thread, lhs,
          packed_[static_cast<size_t>(block.group * panels_ + task % panels_)]
              .memory.get(),
          out, scratch + scratch_offset_));
    if (is_out_dense) return absl::OkStatus();
    for (int64_t i = 0; i < block.rows; ++i)
      CopyElements(dtype(), out + i * width_ * factor_bytes(), desc().dtype,
                   At(job, kOut, rows[i] * desc().n + column), width_);
    return absl::OkStatus();
  }

 private:
  struct PackedPanel {
    std::shared_ptr<PackedWeight> weight;
    DnnlMemory memory;
  };

  Block* BlocksOf(const Job& job) const {
    return reinterpret_cast<Block*>(job.shared + blocks_offset_);
  }

  // The smallest block with this many rows.
  size_t IndexOf(int64_t rows) const {
    return static_cast<size_t>(
        std::lower_bound(sizes_.begin(), sizes_.end(), rows) - sizes_.begin());
  }

  void ClearOtherRows(const Job& job) const {
    const int64_t none = groups().groups();
    for (int64_t i = 0; i < groups().Count(none); ++i)
      std::memset(At(job, kOut, groups().RowsOf(none)[i] * desc().n), 0,
                  static_cast<size_t>(desc().n * element_bytes()));
  }

  BlockProductDesc Describe(int64_t rows) const {
    BlockProductDesc product;
    product.m = rows;
    product.n = width_;
    product.k = desc().k;
    product.dtype = product.out_dtype = dtype();
    product.lhs_strides = {desc().k, 1};
    product.rhs_strides = {1, desc().k};
    if (desc().transposed)
      product.rhs_strides = {converts() ? width_ : desc().n, 1};
    product.out_strides = {width_, 1};
    return product;
  }

  absl::Status PrepareProducts(const DnnlContext& context, bool packed) {
    sizes_.clear();
    products_.clear();
    for (const int64_t size : kBlockRows) {
      sizes_.push_back(size);
      if (size >= desc().rows) break;
    }
    if (packed) {
      PARTITA_ASSIGN_OR_RETURN(
          packed_layout_,
          BlockProduct::PackedLayout(context, Describe(sizes_.back())));
    }
    for (const int64_t size : sizes_) {
      PARTITA_ASSIGN_OR_RETURN(
          BlockProduct product,
          BlockProduct::Create(context, Describe(size),
                               packed ? &packed_layout_ : nullptr, threads()));
      products_.push_back(std::move(product));
    }
    return absl::OkStatus();
  }

  // The index of the first element of a panel.
  int64_t BeginOf(int64_t group, int64_t column) const {
    return group * desc().n * desc().k +
           (desc().transposed ? column : column * desc().k);
  }

  // Copies a panel of `matrices` to `target` as factors.
  void ConvertPanel(const char* matrices, int64_t group, int64_t column,
                    void* target) const {
    const char* source = matrices + BeginOf(group, column) * element_bytes();
    if (!desc().transposed)
      return CopyElements(desc().dtype, source, dtype(), target,
                          width_ * desc().k);
    for (int64_t row = 0; row < desc().k; ++row)
      CopyElements(
          desc().dtype, source + row * desc().n * element_bytes(), dtype(),
          static_cast<char*>(target) + row * width_ * factor_bytes(), width_);
  }

  const void* PanelOf(const Job& job, int64_t group, int64_t column,
                      char* scratch) const {
    if (!converts()) return At(job, kMatrices, BeginOf(group, column));
    ConvertPanel(At(job, kMatrices, 0), group, column,
                 scratch + matrix_offset_);
    return scratch + matrix_offset_;
  }

  absl::Status Pack(DnnlContext& context, const void* matrices) {
    const BlockProductDesc product = Describe(1);
    PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t source,
                             BlockProduct::RhsLayout(product));
    const char* const begin = static_cast<const char*>(matrices);
    std::vector<float> converted;
    if (converts()) converted.resize(static_cast<size_t>(width_ * desc().k));
    for (int64_t group = 0; group < desc().groups; ++group) {
      for (int64_t panel = 0; panel < panels_; ++panel) {
        const char* const at =
            begin + BeginOf(group, panel * width_) * element_bytes();
        if (converts())
          ConvertPanel(begin, group, panel * width_, converted.data());
        const Constant constant = {
            at, converts() ? static_cast<const void*>(converted.data()) : at};
        PackedPanel packed;
        PARTITA_ASSIGN_OR_RETURN(
            packed.weight,
            PackConstant(context, constant, source, packed_layout_));
        PARTITA_ASSIGN_OR_RETURN(
            packed.memory, MakeMemory(packed_layout_, context.engine.get()));
        PARTITA_RETURN_IF_ERROR(
            DnnlStatus(Dnnl().memory_set_data_handle(packed.memory.get(),
                                                     packed.weight->data),
                       "matrices"));
        packed_.push_back(std::move(packed));
      }
    }
    return absl::OkStatus();
  }

  int64_t panels_ = 1, width_;          // of each matrix's columns
  std::vector<int64_t> sizes_;          // of blocks, ascending
  std::vector<BlockProduct> products_;  // one per size
  dnnl_memory_desc_t packed_layout_ = {};
  std::vector<PackedPanel> packed_;  // by group, then panel; or empty
  int64_t blocks_offset_ = 0, rows_offset_ = 0, out_offset_ = 0,
          matrix_offset_ = 0, scratch_offset_ = 0;
  int64_t blocks_ = 0;
};

absl::StatusOr<std::unique_ptr<CpuOp>> Make(DnnlContext& context,
                                            const device::GroupedGemmDesc& desc,
                                            const void* matrices,
                                            base::DType dtype, int threads) {
  auto op = std::make_unique<GroupedGemm>(desc, dtype, threads);
  PARTITA_RETURN_IF_ERROR(op->Prepare(context, matrices));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeGroupedGemm(
    DnnlContext& context, const device::GroupedGemmDesc& desc,
    const void* matrices, int threads) {
  absl::StatusOr<std::unique_ptr<CpuOp>> op =
      Make(context, desc, matrices, desc.dtype, threads);
  if (absl::IsUnimplemented(op.status()) && desc.dtype != base::DType::kF32)
    op = Make(context, desc, matrices, base::DType::kF32, threads);
  return op;
}

}  // namespace partita::cpu
