#include "runtime/cuda/nccl_rows.h"

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {

comm::Operation CountsOf(const comm::Operation& operation, int n) {
  comm::Operation counts;
  counts.kind = comm::Kind::kAllGather;
  counts.dtype = base::DType::kI64;
  counts.input_shape = {1, n};
  counts.output_shape = {n, n};
  counts.dim = 0;
  counts.name = operation.name;
  return counts;
}

absl::StatusOr<RowMoves> PlanRowMoves(comm::Communicator& hosts,
                                      comm::Collective& counts,
                                      const comm::Operation& operation, int n,
                                      int index,
                                      const std::vector<int64_t>& to) {
  const size_t members = static_cast<size_t>(n);
  const std::vector<int64_t> own = comm::CountRows(operation, n, to.data());
  std::vector<int64_t> all(members * members);  // [sender, holder]
  PARTITA_RETURN_IF_ERROR(hosts.Run(counts, own.data(), all.data()));
  RowMoves moves;
  for (size_t holder = 0; holder < members; ++holder) {
    std::vector<int64_t> incoming;
    for (size_t sender = 0; sender < members; ++sender)
      incoming.push_back(all[sender * members + holder]);
    const comm::RowParts held = comm::PartsOf(operation, incoming);
    PARTITA_RETURN_IF_ERROR(
        comm::CheckCapacity(operation, static_cast<int>(holder), held.rows));
    if (static_cast<int>(holder) == index) moves.held = held;
  }
  moves.home = comm::PartsOf(operation, own);
  moves.sources = comm::RowSources(operation, n, to.data());
  return moves;
}

NcclResult ExchangeRows(const NcclLibrary& nccl, NcclComm comm, int index,
                        const comm::RowParts& from, const comm::RowParts& to,
                        const char* source, char* target, NcclStream stream) {
  NcclResult failed = kNcclSuccess;
  const auto note = [&failed](NcclResult result) {
    if (failed == kNcclSuccess && result != kNcclInProgress) failed = result;
  };
  note(nccl.BeginGroup());
  for (int i = 0; i < static_cast<int>(from.bytes.size()); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (i == index) continue;
    if (from.bytes[at] > 0)
      note(nccl.Send(source + from.first[at],
                     static_cast<size_t>(from.bytes[at]), kNcclU8, i, comm,
                     stream));
    if (to.bytes[at] > 0)
      note(nccl.Receive(target + to.first[at],
                        static_cast<size_t>(to.bytes[at]), kNcclU8, i, comm,
                        stream));
  }
  const NcclResult group = nccl.EndGroup();
  return failed == kNcclSuccess ? group : failed;
}

}  // namespace partita::cuda
