// Opens cuBLASLt.
#include "runtime/cuda/blas.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {

absl::StatusOr<std::unique_ptr<Blas>> Blas::Open(const std::string& path) {
  std::vector<std::string> names = {path};
  if (path.empty())
    names = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
             "libcublasLt.so"};
  PARTITA_ASSIGN_OR_RETURN(
      const base::Library library,
      base::Library::Open(
          names, "cuBLASLt",
          "install CUDA's libraries, or set LD_LIBRARY_PATH to where "
          "they lie"));
  auto blas = std::make_unique<Blas>();
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  PARTITA_RETURN_IF_ERROR(library.Load(#symbol, &blas->member));
  PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
  PARTITA_RETURN_IF_ERROR(
      blas->Check(blas->Create(&blas->handle), "starting cuBLASLt"));
  return blas;
}

Blas::~Blas() {
  if (handle != nullptr) Destroy(handle);
}

absl::Status Blas::Check(LtStatus status, const std::string& doing) const {
  if (status == kLtSuccess) return absl::OkStatus();
  const bool lacks = status == kLtNotSupported;
  return absl::Status(
      lacks ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal,
      absl::StrCat(doing, ": cuBLASLt's status ", static_cast<int>(status),
                   lacks ? " (it has no such product)" : "",
                   "; CUBLASLT_LOG_LEVEL=2 in the environment tells more"));
}

}  // namespace partita::cuda
