// NCCL, opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_LIBRARY_H_
#define PARTITA_RUNTIME_CUDA_NCCL_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/nccl_api.h"

namespace partita::cuda {

struct NcclLibrary {
#define PARTITA_CUDA_MEMBER(member, symbol, parameters) \
  NcclResult(*member) parameters = nullptr;
  PARTITA_CUDA_NCCL_FUNCTIONS(PARTITA_CUDA_MEMBER)
#undef PARTITA_CUDA_MEMBER
  const char* (*ErrorText)(NcclResult result) = nullptr;
  const char* (*LastError)(NcclComm comm) = nullptr;  // null before 2.13

  // True if the library exists, even if it cannot be loaded.
  static bool IsInstalled(const std::string& path);
  // Opens libnccl.so.2, or the library at `path`. FailedPrecondition, with
  // advice, if it cannot be loaded or is too old.
  static absl::StatusOr<std::shared_ptr<const NcclLibrary>> Open(
      const std::string& path);

  absl::Status Check(NcclResult result, const std::string& doing) const;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_LIBRARY_H_
