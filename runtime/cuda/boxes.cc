// Computes the arguments of the kernels that work on boxes.
#include "runtime/cuda/boxes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/own_kernels.h"

namespace partita::cuda {
namespace {

ElementType TypeOf(base::DType dtype) {
  static_assert(static_cast<int>(base::DType::kBF16) ==
                static_cast<int>(ElementType::kBF16));
  static_assert(static_cast<int>(base::DType::kI1) ==
                static_cast<int>(ElementType::kI1));
  static_assert(static_cast<int>(base::DType::kI64) ==
                static_cast<int>(ElementType::kI64));
  static_assert(base::kDTypeCount - 1 ==
                static_cast<int>(ElementType::kF8E5M2));
  return static_cast<ElementType>(dtype);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Boxes>> Boxes::Load(
    std::shared_ptr<Context> context) {
  auto boxes = std::make_unique<Boxes>();
  PARTITA_ASSIGN_OR_RETURN(boxes->kernels_,
                           OwnKernels::Load(std::move(context)));
  for (const auto& [function, symbol] :
       {std::pair(&boxes->copy_, "partita_copy_box"),
        std::pair(&boxes->fill_, "partita_fill_box"),
        std::pair(&boxes->reduce_, "partita_reduce_box"),
        std::pair(&boxes->gather_rows_, "partita_gather_rows")}) {
    PARTITA_ASSIGN_OR_RETURN(*function, boxes->kernels_->Find(symbol));
  }
  return std::unique_ptr<const Boxes>(std::move(boxes));
}

absl::Status Boxes::Copy(CuStream stream, const comm::Box& box,
                         const void* from, void* to) const {
  if (box.Bytes() == 0) return absl::OkStatus();
  CopyBoxArgs args = {};
  args.from = static_cast<const char*>(from) + box.from;
  args.to = static_cast<char*>(to) + box.to;
  uint64_t all = reinterpret_cast<uintptr_t>(args.from) |
                 reinterpret_cast<uintptr_t>(args.to) |
                 static_cast<uint64_t>(box.run) | 16;
  for (int d = 0; d < 3; ++d) {
    args.counts[d] = box.counts[d];
    args.from_strides[d] = box.from_strides[d];
    args.to_strides[d] = box.to_strides[d];
    if (box.counts[d] > 1)
      all |= static_cast<uint64_t>(box.from_strides[d]) |
             static_cast<uint64_t>(box.to_strides[d]);
  }
  args.unit = static_cast<int>(all & (~all + 1));  // its lowest bit
  args.units = box.run / args.unit;
  args.count = box.Bytes() / args.unit;
  return kernels_->Launch(stream, copy_, &args, args.count);
}

absl::Status Boxes::Fill(CuStream stream, const comm::Box& box,
                         const std::string& fill, void* to) const {
  if (box.Bytes() == 0) return absl::OkStatus();
  FillBoxArgs args = {};
  args.to = static_cast<char*>(to) + box.to;
  args.element_bytes = static_cast<int>(fill.size());
  args.elements = box.run / args.element_bytes;
  args.count = box.Bytes() / args.element_bytes;
  for (int d = 0; d < 3; ++d) {
    args.counts[d] = box.counts[d];
    args.to_strides[d] = box.to_strides[d];
  }
  std::memcpy(&args.value, fill.data(), fill.size());
  return kernels_->Launch(stream, fill_, &args, args.count);
}

absl::Status Boxes::GatherRows(CuStream stream, const int64_t* index,
                               int64_t rows, int64_t row_bytes,
                               const void* from, void* to) const {
  if (rows * row_bytes == 0) return absl::OkStatus();
  GatherRowsArgs args = {};
  args.from = static_cast<const char*>(from);
  args.to = static_cast<char*>(to);
  args.index = reinterpret_cast<const Int*>(index);
  const uint64_t all = reinterpret_cast<uintptr_t>(from) |
                       reinterpret_cast<uintptr_t>(to) |
                       static_cast<uint64_t>(row_bytes) | 16;
  args.unit = static_cast<int>(all & (~all + 1));  // its lowest bit
  args.units = row_bytes / args.unit;
  args.count = rows * args.units;
  return kernels_->Launch(stream, gather_rows_, &args, args.count);
}

absl::Status Boxes::Reduce(CuStream stream, comm::Reduction reduction,
                           base::DType dtype, const comm::Box& box,
                           const std::vector<const char*>& inputs,
                           const std::vector<char*>& outputs) const {
  if (box.Bytes() == 0) return absl::OkStatus();
  const size_t most = std::max(inputs.size(), outputs.size());
  if (most > static_cast<size_t>(kMaxMembers))
    return absl::InternalError(absl::StrCat(
        "expected up to ", kMaxMembers, " tensors to reduce, found ", most));
  ReduceBoxArgs args = {};
  for (size_t i = 0; i < inputs.size(); ++i)
    args.inputs[i] = inputs[i] + box.from;
  for (size_t i = 0; i < outputs.size(); ++i)
    args.outputs[i] = outputs[i] + box.to;
  args.input_count = static_cast<int>(inputs.size());
  args.output_count = static_cast<int>(outputs.size());
  args.type = TypeOf(dtype);
  args.reduction = reduction;
  args.element_bytes = static_cast<int>(base::SizeOf(dtype));
  args.elements = box.run / args.element_bytes;
  args.count = box.Bytes() / args.element_bytes;
  for (int d = 0; d < 3; ++d) {
    args.counts[d] = box.counts[d];
    args.from_strides[d] = box.from_strides[d];
    args.to_strides[d] = box.to_strides[d];
  }
  return kernels_->Launch(stream, reduce_, &args, args.count);
}

}  // namespace partita::cuda
