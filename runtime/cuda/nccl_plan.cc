// Uses NCCL's collectives if the parts are contiguous as it requires, else
// sends and receives.
#include "runtime/cuda/nccl_plan.h"

#include "runtime/comm/rows.h"

namespace partita::cuda {
namespace {

using comm::Box;
using comm::Kind;
using comm::Operation;

std::optional<NcclType> TypeOf(base::DType dtype) {
  switch (dtype) {
    case base::DType::kF32:
      return kNcclF32;
    case base::DType::kF64:
      return kNcclF64;
    case base::DType::kF16:
      return kNcclF16;
    case base::DType::kBF16:
      return kNcclBF16;
    case base::DType::kI1:
    case base::DType::kU8:
    case base::DType::kF8E4M3:  // moved, never reduced
    case base::DType::kF8E5M2:
      return kNcclU8;
    case base::DType::kI8:
      return kNcclI8;
    case base::DType::kI32:
      return kNcclI32;
    case base::DType::kI64:
      return kNcclI64;
    case base::DType::kU32:
      return kNcclU32;
    case base::DType::kU64:
      return kNcclU64;
    default:
      return std::nullopt;
  }
}

NcclReduction ReductionOf(comm::Reduction reduction) {
  switch (reduction) {
    case comm::Reduction::kSum:
      return kNcclSum;
    case comm::Reduction::kProd:
      return kNcclProd;
    case comm::Reduction::kMax:
    case comm::Reduction::kAny:
      return kNcclMax;
    case comm::Reduction::kMin:
    case comm::Reduction::kAll:
      break;
  }
  return kNcclMin;
}

// Packs the runs of a box contiguously, from byte `at` on.
Box Packed(Box box, int64_t at) {
  box.to = at;
  box.to_strides[2] = box.run;
  box.to_strides[1] = box.run * box.counts[2];
  box.to_strides[0] = box.to_strides[1] * box.counts[1];
  return box;
}
Box Unpacked(Box box, int64_t at) {
  const Box packed = Packed(box, at);
  box.from = packed.to;
  for (int d = 0; d < 3; ++d) box.from_strides[d] = packed.to_strides[d];
  return box;
}

// True if the runs of one side of a box lie one after another in its order, so
// that the side is a message as it lies.
bool IsTogether(const Box& box, const int64_t (&strides)[3]) {
  int64_t bytes = box.run;
  for (int d = 2; d >= 0; --d) {
    if (box.counts[d] > 1 && strides[d] != bytes) return false;
    bytes *= box.counts[d];
  }
  return true;
}

bool IsWhole(const Box& box, int64_t from, int64_t to, int64_t bytes) {
  return box.IsOneRun() && box.run == bytes && box.from == from && box.to == to;
}

void PlanReduceScatter(const Operation& operation, int n, int index,
                       NcclPlan& plan) {
  plan.kind = NcclPlan::Kind::kReduceScatter;
  const int64_t bytes = operation.OutputBytes();
  bool in_place = true;
  for (int j = 0; j < n; ++j) {
    Box box = comm::PieceOf(operation, n, j, index);
    in_place = in_place && IsWhole(box, j * bytes, 0, bytes);
    plan.clear = plan.clear || box.Bytes() < bytes;
    box.to += j * bytes;
    if (box.Bytes() > 0) plan.packed.push_back(box);
  }
  if (in_place) {
    plan.packed.clear();
  } else {
    plan.scratch_bytes = n * bytes;
  }
}

bool IsPlainGather(const Operation& operation, int n, int index) {
  const int64_t bytes = operation.InputBytes();
  for (int j = 0; j < n; ++j)
    if (!IsWhole(comm::PieceOf(operation, n, index, j), 0, j * bytes, bytes))
      return false;
  return operation.OutputBytes() == n * bytes;
}

void PlanPieces(const Operation& operation, int n, int index, NcclPlan& plan) {
  const auto align = [](int64_t bytes) { return (bytes + 15) / 16 * 16; };
  plan.local = comm::PieceOf(operation, n, index, index);
  plan.blanks = comm::BlanksOf(operation, n, index);
  for (int j = 0; j < n; ++j) {
    if (j == index) continue;
    const Box sent = comm::PieceOf(operation, n, j, index);
    if (sent.Bytes() > 0) {
      const bool together = IsTogether(sent, sent.from_strides);
      plan.sends.push_back({j, sent.Bytes(),
                            together ? sent.from : plan.scratch_bytes,
                            !together});
      if (!together) {
        plan.packed.push_back(Packed(sent, plan.scratch_bytes));
        plan.scratch_bytes += align(sent.Bytes());
      }
    }
    const Box received = comm::PieceOf(operation, n, index, j);
    if (received.Bytes() > 0) {
      const bool together = IsTogether(received, received.to_strides);
      plan.receives.push_back({j, received.Bytes(),
                               together ? received.to : plan.scratch_bytes,
                               !together});
      if (!together) {
        plan.unpacked.push_back(Unpacked(received, plan.scratch_bytes));
        plan.scratch_bytes += align(received.Bytes());
      }
    }
  }
}

// At most one row per destination is packed, and indexed.
void PlanRows(const Operation& operation, NcclPlan& plan) {
  plan.kind = NcclPlan::Kind::kRows;
  plan.index_at = (operation.size * comm::RowBytes(operation) + 15) / 16 * 16;
  plan.scratch_bytes =
      plan.index_at + operation.size * static_cast<int64_t>(sizeof(int64_t));
}

}  // namespace

std::optional<NcclPlan> PlanNccl(const Operation& operation, int n, int index) {
  const bool reduces = operation.kind == Kind::kAllReduce ||
                       operation.kind == Kind::kReduceScatter;
  if (operation.kind == Kind::kGather) return std::nullopt;
  NcclPlan plan;
  if (comm::MovesRows(operation.kind)) {
    PlanRows(operation, plan);
    return plan;
  }
  if (reduces) {
    const std::optional<NcclType> type = TypeOf(operation.dtype);
    if (!type) return std::nullopt;
    plan.type = *type;
    plan.reduction = ReductionOf(operation.reduction);
  }
  if (operation.kind == Kind::kAllReduce) {
    plan.kind = NcclPlan::Kind::kAllReduce;
  } else if (operation.kind == Kind::kBroadcast) {
    plan.kind = NcclPlan::Kind::kBroadcast;
  } else if (n == 1) {
    PlanPieces(operation, n, index, plan);
  } else if (operation.kind == Kind::kReduceScatter) {
    PlanReduceScatter(operation, n, index, plan);
  } else if (operation.kind == Kind::kAllGather &&
             IsPlainGather(operation, n, index)) {
    plan.kind = NcclPlan::Kind::kAllGather;
  } else {
    PlanPieces(operation, n, index, plan);
  }
  return plan;
}

}  // namespace partita::cuda
