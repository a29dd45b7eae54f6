// cuSPARSELt, opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_SPARSE_H_
#define PARTITA_RUNTIME_CUDA_SPARSE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/sparse_api.h"

namespace partita::cuda {

// The library's functions, and its handle for the context that was current at
// Open.
struct Sparse {
#define PARTITA_CUDA_MEMBER(member, symbol, parameters) \
  SparseStatus(*member) parameters = nullptr;
  PARTITA_CUDA_SPARSE_FUNCTIONS(PARTITA_CUDA_MEMBER)
#undef PARTITA_CUDA_MEMBER
  SparseObject handle = {};
  bool started = false;

  Sparse() = default;
  Sparse(const Sparse&) = delete;
  ~Sparse();

  // Opens the installed cuSPARSELt (library_names.h), or the library at `path`.
  // FailedPrecondition, with advice, if it cannot be loaded or does not start,
  // or if its version is older than 0.7.
  static absl::StatusOr<std::unique_ptr<Sparse>> Open(const std::string& path,
                                                      int driver_version);

  // Unimplemented if the library has no such product, else Internal.
  absl::Status Check(SparseStatus status, const std::string& doing) const;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_SPARSE_H_
