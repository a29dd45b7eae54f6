// Threads take one task after the other, because groups differ in size.
#include "runtime/cpu/grouped_op.h"

#include <cstring>
#include <utility>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {

GroupedOp::GroupedOp(const device::GroupedGemmDesc& desc, base::DType dtype,
                     int threads)
    : desc_(desc),
      dtype_(dtype),
      groups_(desc.rows, desc.groups),
      shared_bytes_(groups_.scratch_bytes()),
      statuses_(static_cast<size_t>(threads)) {
  set_threads(threads);
}

int64_t GroupedOp::ReserveShared(int64_t bytes) {
  const int64_t offset = shared_bytes_;
  shared_bytes_ += AlignUp(bytes);
  return offset;
}

int64_t GroupedOp::ReservePerThread(int64_t bytes) {
  const int64_t offset = thread_bytes_;
  thread_bytes_ += AlignUp(bytes);
  return offset;
}

absl::Status GroupedOp::Run(void* const* buffers, char* scratch) {
  job_ = {buffers, scratch};
  groups_.Sort(desc_.ids, buffers[2], scratch);
  tasks_ = PlanTasks(job_);
  next_task_.store(0, std::memory_order_relaxed);
  RunOnThreads(threads(), &RunTasks, this);
  for (absl::Status& status : statuses_)
    PARTITA_RETURN_IF_ERROR(std::exchange(status, absl::OkStatus()));
  return absl::OkStatus();
}

void GroupedOp::RunTasks(void* data, int thread, int threads) {
  GroupedOp& op = *static_cast<GroupedOp*>(data);
  char* const scratch =
      op.job_.shared + op.shared_bytes_ + thread * op.thread_bytes_;
  absl::Status& status = op.statuses_[static_cast<size_t>(thread)];
  while (status.ok()) {
    const int64_t task = op.next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= op.tasks_) return;
    status = op.RunTask(op.job_, task, thread, scratch);
  }
}

void GroupedOp::Gather(const Job& job, int operand, const int64_t* rows,
                       int64_t count, int64_t size, int64_t p, int64_t stride,
                       int64_t column, int64_t width, char* target) const {
  const int64_t row_bytes = width * factor_bytes();
  for (int64_t i = 0; i < count; ++i)
    CopyElements(desc_.dtype, At(job, operand, rows[i] / p * stride + column),
                 dtype_, target + i * row_bytes, width);
  std::memset(target + count * row_bytes, 0,
              static_cast<size_t>((size - count) * row_bytes));
}

int64_t PanelsOf(int64_t size, int64_t wanted, int64_t least) {
  for (int64_t panels = wanted; panels > 1; --panels)
    if (size % (panels * 16) == 0 && size / panels >= least) return panels;
  return 1;
}

void CopyElements(base::DType from, const void* source, base::DType to,
                  void* target, int64_t count) {
  if (from == to)
    std::memcpy(target, source,
                static_cast<size_t>(count * base::SizeOf(from)));
  else
    base::Convert(from, source, to, target, count);
}

}  // namespace partita::cpu
