// Opens cuSPARSELt.
#include "runtime/cuda/sparse.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/library_names.h"

namespace partita::cuda {
namespace {

constexpr char kAdvice[] =
    "install it (pip's nvidia-cusparselt-cu13), or set LD_LIBRARY_PATH to "
    "where it lies";
// The first version with today's numbers of compute types.
constexpr int kLeastMinor = 7;

absl::StatusOr<std::unique_ptr<Sparse>> OpenOne(const std::string& name) {
  PARTITA_ASSIGN_OR_RETURN(const base::Library library,
                           base::Library::Open({name}, "cuSPARSELt", kAdvice));
  auto sparse = std::make_unique<Sparse>();
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  PARTITA_RETURN_IF_ERROR(library.Load(#symbol, &sparse->member));
  PARTITA_CUDA_SPARSE_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
  int major = 0, minor = 0;
  sparse->Property(kSparseMajor, &major);
  sparse->Property(kSparseMinor, &minor);
  if (major == 0 && minor < kLeastMinor)
    return absl::FailedPreconditionError(
        absl::StrCat("expected cuSPARSELt 0.", kLeastMinor,
                     " or later, found 0.", minor, " at ", name));
  const absl::Status status = sparse->Check(sparse->Create(&sparse->handle),
                                            absl::StrCat("starting ", name));
  if (!status.ok())
    return absl::FailedPreconditionError(std::string(status.message()));
  sparse->started = true;
  return sparse;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sparse>> Sparse::Open(const std::string& path,
                                                     int driver_version) {
  if (!path.empty()) return OpenOne(path);
  return OpenFirst<std::unique_ptr<Sparse>>(
      LibraryNames({"libcusparseLt.so", "cusparselt", {0}}, driver_version),
      "cuSPARSELt", kAdvice, &OpenOne);
}

Sparse::~Sparse() {
  if (started) Destroy(&handle);
}

absl::Status Sparse::Check(SparseStatus status,
                           const std::string& doing) const {
  if (status == kSparseSuccess) return absl::OkStatus();
  // It calls sizes that it does not support invalid.
  const bool lacks = status == kSparseNotSupported ||
                     status == kSparseArchMismatch ||
                     status == kSparseInvalidValue;
  return absl::Status(
      lacks ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal,
      absl::StrCat(doing, ": cuSPARSELt's status ", static_cast<int>(status),
                   lacks ? " (it has no such product)" : "",
                   "; CUSPARSELT_LOG_LEVEL=2 in the environment tells more"));
}

}  // namespace partita::cuda
