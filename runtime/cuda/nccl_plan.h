// How an operation is done by NCCL's. Plain data.
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
    kReduceScatter,  // of the input, or of what is packed from it
    kAllGather,
    kBroadcast,
    kPieces,  // sends and receives among the members
  };
  Kind kind = Kind::kPieces;
  NcclType type = kNcclU8;
  NcclReduction reduction = kNcclSum;

  // Before: parts of the input that are copied to the scratch.
  std::vector<comm::Box> packed;
  bool clear = false;  // the scratch is zero first
  // A part that goes to or comes from a member: in the input or the output
  // where it lies together there, else in the scratch.
  struct Message {
    int member = 0;
    int64_t bytes = 0;
    int64_t at = 0;
    bool in_scratch = false;
  };
  std::vector<Message> sends, receives;
  // After: parts of the scratch that are copied to the output, what the member
  // has itself, and what nobody has.
  std::vector<comm::Box> unpacked;
  comm::Box own;
  std::vector<comm::Box> blanks;
  int64_t scratch_bytes = 0;
};

// For member `index` of a group of n. None where the library has no such
// reduction.
std::optional<NcclPlan> PlanNccl(const comm::Operation& operation, int n,
                                 int index);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_PLAN_H_
