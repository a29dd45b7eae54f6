// An operation of GPUs, prepared once.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_COLLECTIVE_H_
#define PARTITA_RUNTIME_CUDA_NCCL_COLLECTIVE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/communicator.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/nccl_plan.h"

namespace partita::cuda {

class NcclCollective : public comm::Collective {
 public:
  NcclCollective(comm::Operation operation, std::vector<int> ranks, int index,
                 NcclPlan plan, NcclComm comm, bool beside,
                 std::unique_ptr<comm::Collective> counts)
      : Collective(std::move(operation), std::move(ranks), index),
        plan_(std::move(plan)),
        comm_(comm),
        beside_(beside),
        counts_(std::move(counts)),
        description_(std::make_shared<const std::string>(
            absl::StrCat(comm::Describe(this->operation()), " among ranks ",
                         absl::StrJoin(this->ranks(), ", ")))) {}
  const NcclPlan& plan() const { return plan_; }
  NcclComm comm() const { return comm_; }
  bool beside() const { return beside_; }
  // Gathers the members' counts of rows, in host memory; null for other kinds.
  comm::Collective* counts() const { return counts_.get(); }
  // For messages: "all_reduce 'h.0.mlp' of f32[8] among ranks 0, 1". It may
  // outlive the collective.
  const std::shared_ptr<const std::string>& description() const {
    return description_;
  }

 private:
  const NcclPlan plan_;
  const NcclComm comm_;  // null: this rank alone
  const bool beside_;
  const std::unique_ptr<comm::Collective> counts_;
  const std::shared_ptr<const std::string> description_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_COLLECTIVE_H_
