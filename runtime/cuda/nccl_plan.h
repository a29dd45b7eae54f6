// Plans how NCCL runs an operation. Plain data.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_PLAN_H_
#define PARTITA_RUNTIME_CUDA_NCCL_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/comm/operation.h"
#include "runtime/cuda/nccl_api.h"

namespace partita::cuda {

struct NcclPlan {
  enum class Kind {
    kAllReduce,
    kReduceScatter,  // of the input, or of its packed parts
    kAllGather,
    kBroadcast,
    kPieces,  // sends and receives among the members
    kRows,    // the same, of as many rows as the members' numbers say
  };
  Kind kind = Kind::kPieces;
  NcclType type = kNcclU8;
  NcclReduction reduction = kNcclSum;

  // Before the exchange: parts of the input that are copied to the scratch.
  std::vector<comm::Box> packed;
  bool clear = false;  // zero the scratch first
  // A part sent to or received from a member. It is in the input or output if
  // it is contiguous there, else in the scratch.
  struct Message {
    int member = 0;
    int64_t bytes = 0;
    int64_t at = 0;
    bool in_scratch = false;
  };
  std::vector<Message> sends, receives;
  // After the exchange: parts of the scratch that are copied to the output
  // (`unpacked`), the part that the member itself has (`local`), and parts that
  // no member has (`blanks`).
  std::vector<comm::Box> unpacked;
  comm::Box local;
  std::vector<comm::Box> blanks;
  int64_t scratch_bytes = 0;
  // kRows: the scratch has packed rows, then an index of i64 from here on.
  int64_t index_at = 0;
};

// Plans for member `index` of a group of n. None if NCCL does not support the
// operation.
std::optional<NcclPlan> PlanNccl(const comm::Operation& operation, int n,
                                 int index);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_PLAN_H_
