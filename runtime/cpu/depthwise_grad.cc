// A task computes a block of channels of a part of the batch. It copies rows of
// the input into a ring of as many rows as the window has, with zeros for the
// padding left and right, so that the kernel reads contiguous memory and has no
// edges. The parts of the batch are summed in the end.
#include "runtime/cpu/depthwise_grad.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/cpu/depthwise_kernels.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

// The batch is cut if there are fewer blocks of channels than this, whatever
// the number of threads: it decides the order of the sums.
constexpr int64_t kFewestTasks = 8;

struct Window {
  int64_t size, out, kernel, stride, low;
};

class DepthwiseWeightGrad : public CpuOp {
 public:
  DepthwiseWeightGrad(const device::ConvDesc& desc, DepthwiseKernel kernel,
                      int threads)
      : dtype_(desc.dtype),
        batch_(desc.input_shape[0]),
        channels_(desc.groups),
        y_(WindowOf(desc, 0)),
        x_(WindowOf(desc, 1)),
        kernel_(kernel),
        blocks_((channels_ + kDepthwiseLanes - 1) / kDepthwiseLanes),
        parts_(std::clamp<int64_t>((kFewestTasks + blocks_ - 1) / blocks_, 1,
                                   batch_)),
        positions_((x_.out - 1) * x_.stride + x_.kernel) {
    set_threads(threads);
  }

  int64_t scratch_bytes() const override {
    return Bytes(blocks_ * parts_ * SumElements()) +
           threads() * Bytes(RowElements() + RingElements());
  }
  bool Packed(int index) const override { return false; }
  std::string Description() const override { return "depthwise:avx512"; }

  absl::Status Run(void* const* buffers, char* scratch) override {
    buffers_ = buffers;
    sums_ = reinterpret_cast<float*>(scratch);
    rows_ = scratch + Bytes(blocks_ * parts_ * SumElements());
    next_task_.store(0, std::memory_order_relaxed);
    RunOnThreads(threads(), &RunTasks, this);
    WriteOut();
    return absl::OkStatus();
  }

 private:
  static Window WindowOf(const device::ConvDesc& desc, size_t dim) {
    return {desc.input_shape[1 + dim], desc.out_shape[1 + dim],
            desc.weight_shape[2 + dim], desc.strides[dim], desc.low[dim]};
  }

  static int64_t Bytes(int64_t elements) {
    return AlignUp(elements * static_cast<int64_t>(sizeof(float)));
  }
  int64_t SumElements() const {
    return y_.kernel * x_.kernel * kDepthwiseLanes;
  }
  int64_t RowElements() const { return x_.out * kDepthwiseLanes; }
  int64_t RingElements() const {
    return y_.kernel * positions_ * kDepthwiseLanes;
  }

  static void RunTasks(void* data, int thread, int threads) {
    DepthwiseWeightGrad& op = *static_cast<DepthwiseWeightGrad*>(data);
    float* const row = reinterpret_cast<float*>(
        op.rows_ + thread * Bytes(op.RowElements() + op.RingElements()));
    while (true) {
      const int64_t task =
          op.next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= op.blocks_ * op.parts_) return;
      op.RunTask(task, row, row + op.RowElements());
    }
  }

  void RunTask(int64_t task, float* row, float* ring) {
    const int64_t first = task / parts_ * kDepthwiseLanes, part = task % parts_;
    const int64_t count = std::min(kDepthwiseLanes, channels_ - first);
    float* const sums = sums_ + task * SumElements();
    std::memset(sums, 0, static_cast<size_t>(Bytes(SumElements())));
    // Padding and missing channels stay zero.
    std::memset(row, 0,
                static_cast<size_t>(RowElements() + RingElements()) * 4);
    for (int64_t n = batch_ * part / parts_; n < batch_ * (part + 1) / parts_;
         ++n)
      AddImage(n, first, count, row, ring, sums);
  }

  void AddImage(int64_t n, int64_t first, int64_t count, float* row,
                float* ring, float* sums) const {
    int64_t copied = 0;  // rows of the input
    for (int64_t y = 0; y < y_.out; ++y) {
      const int64_t top = y * y_.stride - y_.low;
      const int64_t begin = std::max<int64_t>(top, 0),
                    end = std::min(top + y_.kernel, y_.size);
      if (begin >= end) continue;
      for (copied = std::max(copied, begin); copied < end; ++copied)
        CopyChannels(dtype_, At(0, (n * y_.size + copied) * x_.size, first),
                     channels_, count, std::min(x_.size, positions_ - x_.low),
                     RingRow(ring, copied) + x_.low * kDepthwiseLanes);
      CopyChannels(dtype_, At(1, (n * y_.out + y) * x_.out, first), channels_,
                   count, x_.out, row);
      for (int64_t from = begin; from < end; ++from)
        kernel_({RingRow(ring, from), row,
                 sums + (from - top) * x_.kernel * kDepthwiseLanes, x_.out,
                 x_.stride});
    }
  }

  float* RingRow(float* ring, int64_t y) const {
    return ring + y % y_.kernel * positions_ * kDepthwiseLanes;
  }
  const char* At(int buffer, int64_t position, int64_t channel) const {
    return static_cast<const char*>(buffers_[buffer]) +
           (position * channels_ + channel) * base::SizeOf(dtype_);
  }

  void WriteOut() {
    const int64_t places = y_.kernel * x_.kernel;
    char* const out = static_cast<char*>(buffers_[2]);
    for (int64_t channel = 0; channel < channels_; ++channel) {
      const float* const of_block =
          sums_ + channel / kDepthwiseLanes * parts_ * SumElements();
      for (int64_t place = 0; place < places; ++place) {
        float sum = 0;
        for (int64_t part = 0; part < parts_; ++part)
          sum += of_block[part * SumElements() + place * kDepthwiseLanes +
                          channel % kDepthwiseLanes];
        base::Convert(base::DType::kF32, &sum, dtype_,
                      out + (channel * places + place) * base::SizeOf(dtype_),
                      1);
      }
    }
  }

  const base::DType dtype_;
  const int64_t batch_, channels_;
  const Window y_, x_;
  const DepthwiseKernel kernel_;
  const int64_t blocks_, parts_;  // of channels; of the batch
  const int64_t positions_;       // of a padded row that windows reach

  void* const* buffers_ = nullptr;
  float* sums_ = nullptr;  // [blocks, parts, places of the window, lanes]
  char* rows_ = nullptr;   // per thread: a gradient's row, and the ring
  std::atomic<int64_t> next_task_{0};
};

bool IsSupported(const device::ConvDesc& desc) {
  if (desc.direction != device::ConvDirection::kWeightGrad ||
      !desc.channels_last || desc.strides.size() != 2)
    return false;
  if (desc.dtype != base::DType::kF32 && desc.dtype != base::DType::kBF16)
    return false;
  if (desc.groups != desc.input_shape.back() ||
      desc.groups != desc.weight_shape[0] || desc.input_shape[0] == 0)
    return false;
  for (size_t dim = 0; dim < 2; ++dim) {
    const int64_t reached = (desc.out_shape[1 + dim] - 1) * desc.strides[dim] +
                            desc.weight_shape[2 + dim];
    // Rows of padding only are oneDNN's.
    if (desc.dilations[dim] != 1 || desc.low[dim] < 0 || desc.high[dim] < 0 ||
        desc.out_shape[1 + dim] < 1 || desc.low[dim] >= reached)
      return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<CpuOp> MakeDepthwiseWeightGrad(const device::ConvDesc& desc,
                                               int threads) {
  if (!IsSupported(desc)) return nullptr;
  const DepthwiseKernel kernel = ChooseDepthwiseKernel(desc.weight_shape[3]);
  if (kernel == nullptr) return nullptr;
  return std::make_unique<DepthwiseWeightGrad>(desc, kernel, threads);
}

}  // namespace partita::cpu
