// cuBLASLt, opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_BLAS_H_
#define PARTITA_RUNTIME_CUDA_BLAS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/blas_api.h"

namespace partita::cuda {

// The library's functions, and its handle for the context that was current at
// Open.
struct Blas {
#define PARTITA_CUDA_MEMBER(member, symbol, parameters) \
  LtStatus(*member) parameters = nullptr;
  PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_CUDA_MEMBER)
#undef PARTITA_CUDA_MEMBER
  LtHandle handle = nullptr;

  Blas() = default;
  Blas(const Blas&) = delete;
  ~Blas();

  // Opens the installed cuBLASLt that suits the driver (library_names.h), or
  // the library at `path`. FailedPrecondition, with advice, if it cannot be
  // loaded or does not start.
  static absl::StatusOr<std::unique_ptr<Blas>> Open(const std::string& path,
                                                    int driver_version);

  // Unimplemented if the library has no algorithm, else Internal.
  absl::Status Check(LtStatus status, const std::string& doing) const;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_BLAS_H_
