// The common part of grouped products: sorts the rows, then gives the tasks of
// the product to threads.
#ifndef PARTITA_RUNTIME_CPU_GROUPED_OP_H_
#define PARTITA_RUNTIME_CPU_GROUPED_OP_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cpu/library_op.h"
#include "runtime/cpu/row_groups.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

class GroupedOp : public CpuOp {
 public:
  int64_t scratch_bytes() const final {
    return shared_bytes_ + threads() * thread_bytes_;
  }
  absl::Status Run(void* const* buffers, char* scratch) final;

 protected:
  // One run, as its threads see it.
  struct Job {
    void* const* buffers;
    char* shared;  // scratch of all threads
  };

  // `dtype` is the type of the factors inside oneDNN: the operands' or f32.
  GroupedOp(const device::GroupedGemmDesc& desc, base::DType dtype,
            int threads);

  // Reserve scratch and return its offset, in Job::shared and in each thread's
  // own scratch.
  int64_t ReserveShared(int64_t bytes);
  int64_t ReservePerThread(int64_t bytes);

  // Called after the rows are sorted. Returns the number of tasks, which
  // threads run in any order.
  virtual int64_t PlanTasks(const Job& job) = 0;
  virtual absl::Status RunTask(const Job& job, int64_t task, int thread,
                               char* scratch) = 0;

  const device::GroupedGemmDesc& desc() const { return desc_; }
  const RowGroups& groups() const { return groups_; }
  base::DType dtype() const { return dtype_; }
  bool converts() const { return dtype_ != desc_.dtype; }
  int64_t element_bytes() const { return base::SizeOf(desc_.dtype); }
  int64_t factor_bytes() const { return base::SizeOf(dtype_); }

  // Element `index` of an operand.
  char* At(const Job& job, int operand, int64_t index) const {
    return static_cast<char*>(job.buffers[operand]) + index * element_bytes();
  }
  // Copies `width` elements of each of `count` rows, from column `column` on,
  // of an operand with rows of `stride` elements, as factors. p consecutive
  // rows share one. Then adds rows of 0 up to `size` rows.
  void Gather(const Job& job, int operand, const int64_t* rows, int64_t count,
              int64_t size, int64_t p, int64_t stride, int64_t column,
              int64_t width, char* target) const;

 private:
  static void RunTasks(void* data, int thread, int threads);

  const device::GroupedGemmDesc desc_;
  const base::DType dtype_;
  RowGroups groups_;
  int64_t shared_bytes_ = 0, thread_bytes_ = 0;
  Job job_ = {};
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_task_{0};
  std::vector<absl::Status> statuses_;  // by thread
};

// The largest number of equal parts of `size`, at most `wanted`, that are
// multiples of 16 and at least `least`; 1 if there is none.
int64_t PanelsOf(int64_t size, int64_t wanted, int64_t least);

// Converts or copies elements.
void CopyElements(base::DType from, const void* source, base::DType to,
                  void* target, int64_t count);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_GROUPED_OP_H_
