// Finds out how many rows move between GPUs. The hosts exchange these counts.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_ROWS_H_
#define PARTITA_RUNTIME_CUDA_NCCL_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/operation.h"
#include "runtime/comm/rows.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/nccl_library.h"

namespace partita::cuda {

// What a member of a group does with rows.
struct RowMoves {
  comm::RowParts home, held;     // packed rows; rows of the holder's tensor
  std::vector<int64_t> sources;  // comm::RowSources
};

// The operation on host memory that gathers the counts of n members.
comm::Operation CountsOf(const comm::Operation& operation, int n);

// Collective over the group: `to` are this member's destinations, and `counts`
// is a prepared CountsOf. ResourceExhausted, on all members, if one gets more
// rows than fit.
absl::StatusOr<RowMoves> PlanRowMoves(comm::Communicator& hosts,
                                      comm::Collective& counts,
                                      const comm::Operation& operation, int n,
                                      int index,
                                      const std::vector<int64_t>& to);

// Puts one group of sends and receives on the stream: the parts of all members
// but `index`. Returns the first result that is neither success nor in
// progress, else that of the group.
NcclResult ExchangeRows(const NcclLibrary& nccl, NcclComm comm, int index,
                        const comm::RowParts& from, const comm::RowParts& to,
                        const char* source, char* target, NcclStream stream);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_ROWS_H_
