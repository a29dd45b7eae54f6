// The functions of NCCL that we call, from its documentation (NCCL 2.14 and
// later): names, parameters and constants, under our own names. abi_check.cc
// compares them with the real header if NCCL is installed.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_API_H_
#define PARTITA_RUNTIME_CUDA_NCCL_API_H_

#include <climits>
#include <cstddef>

namespace partita::cuda {

using NcclComm = void*;  // a rank's communicator of a group
using NcclStream = void*;

// The id by which the members of a group find each other.
struct NcclId {
  char bytes[128];
};

enum NcclResult : int { kNcclSuccess = 0, kNcclInProgress = 7 };

// Configuration of a communicator in the layout of NCCL 2.14. Later versions
// treat missing fields as unset.
struct NcclConfig {
  size_t bytes = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = INT_MIN;  // 0: calls return kNcclInProgress, and AsyncError
                           // says when they are done
};

enum NcclType : int {
  kNcclI8 = 0,
  kNcclU8 = 1,
  kNcclI32 = 2,
  kNcclU32 = 3,
  kNcclI64 = 4,
  kNcclU64 = 5,
  kNcclF16 = 6,
  kNcclF32 = 7,
  kNcclF64 = 8,
  kNcclBF16 = 9,
};
enum NcclReduction : int {
  kNcclSum = 0,
  kNcclProd = 1,
  kNcclMax = 2,
  kNcclMin = 3,
};

// X(member, symbol in the library, parameters): all return NcclResult. Counts
// are of elements.
#define PARTITA_CUDA_NCCL_FUNCTIONS(X)                                        \
  X(MakeId, ncclGetUniqueId, (NcclId * id))                                   \
  X(Version, ncclGetVersion, (int* version))                                  \
  X(Join, ncclCommInitRankConfig,                                             \
    (NcclComm * comm, int members, NcclId id, int index, NcclConfig* config)) \
  X(Finalize, ncclCommFinalize, (NcclComm comm))                              \
  X(Leave, ncclCommDestroy, (NcclComm comm))                                  \
  X(Abort, ncclCommAbort, (NcclComm comm))                                    \
  X(AsyncError, ncclCommGetAsyncError, (NcclComm comm, NcclResult * error))   \
  X(BeginGroup, ncclGroupStart, ())                                           \
  X(EndGroup, ncclGroupEnd, ())                                               \
  X(AllReduce, ncclAllReduce,                                                 \
    (const void* input, void* output, size_t count, NcclType type,            \
     NcclReduction reduction, NcclComm comm, NcclStream stream))              \
  X(ReduceScatter, ncclReduceScatter,                                         \
    (const void* input, void* output, size_t output_count, NcclType type,     \
     NcclReduction reduction, NcclComm comm, NcclStream stream))              \
  X(AllGather, ncclAllGather,                                                 \
    (const void* input, void* output, size_t input_count, NcclType type,      \
     NcclComm comm, NcclStream stream))                                       \
  X(Broadcast, ncclBroadcast,                                                 \
    (const void* input, void* output, size_t count, NcclType type, int root,  \
     NcclComm comm, NcclStream stream))                                       \
  X(Send, ncclSend,                                                           \
    (const void* input, size_t count, NcclType type, int to, NcclComm comm,   \
     NcclStream stream))                                                      \
  X(Receive, ncclRecv,                                                        \
    (void* output, size_t count, NcclType type, int from, NcclComm comm,      \
     NcclStream stream))

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_API_H_
