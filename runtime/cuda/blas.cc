// Opens cuBLASLt.
#include "runtime/cuda/blas.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/library_names.h"

namespace partita::cuda {

namespace {

constexpr char kAdvice[] =
    "install CUDA's libraries, or set LD_LIBRARY_PATH to where they lie";

absl::StatusOr<std::unique_ptr<Blas>> OpenOne(const std::string& name) {
  PARTITA_ASSIGN_OR_RETURN(const base::Library library,
                           base::Library::Open({name}, "cuBLASLt", kAdvice));
  auto blas = std::make_unique<Blas>();
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  PARTITA_RETURN_IF_ERROR(library.Load(#symbol, &blas->member));
  PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
  const absl::Status started =
      blas->Check(blas->Create(&blas->handle), absl::StrCat("starting ", name));
  if (!started.ok())
    return absl::FailedPreconditionError(std::string(started.message()));
  return blas;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::Open(const std::string& path,
                                                 int driver_version) {
  if (!path.empty()) return OpenOne(path);
  return OpenFirst<std::unique_ptr<Blas>>(
      LibraryNames({"libcublasLt.so", "cublas", {13, 12, 11}, true},
                   driver_version),
      "cuBLASLt", kAdvice, &OpenOne);
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
