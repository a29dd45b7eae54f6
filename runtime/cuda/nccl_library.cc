// Opens NCCL, and converts its errors to statuses.
#include "runtime/cuda/nccl_library.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/library_names.h"

namespace partita::cuda {
namespace {

std::vector<std::string> NamesOf(const std::string& path) {
  if (!path.empty()) return {path};
  return LibraryNames({"libnccl.so", "nccl", {2}}, /*driver_version=*/0);
}

}  // namespace

bool NcclLibrary::IsInstalled(const std::string& path) {
  const std::vector<std::string> names = NamesOf(path);
  return std::any_of(names.begin(), names.end(), base::Library::IsInstalled);
}

absl::StatusOr<std::shared_ptr<const NcclLibrary>> NcclLibrary::Open(
    const std::string& path) {
  PARTITA_ASSIGN_OR_RETURN(
      const base::Library library,
      base::Library::Open(
          NamesOf(path), "NCCL",
          "install it, or set LD_LIBRARY_PATH to where it lies"));
  auto nccl = std::make_shared<NcclLibrary>();
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  PARTITA_RETURN_IF_ERROR(library.Load(#symbol, &nccl->member));
  PARTITA_CUDA_NCCL_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
  PARTITA_RETURN_IF_ERROR(library.Load("ncclGetErrorString", &nccl->ErrorText));
  library.Load("ncclGetLastError", &nccl->LastError).IgnoreError();
  return std::shared_ptr<const NcclLibrary>(std::move(nccl));
}

absl::Status NcclLibrary::Check(NcclResult result,
                                const std::string& doing) const {
  if (result == kNcclSuccess) return absl::OkStatus();
  const char* const text = ErrorText(result);
  const char* const last = LastError == nullptr ? nullptr : LastError(nullptr);
  return absl::UnavailableError(absl::StrCat(
      doing, ": NCCL says '", text == nullptr ? "" : text, "' (",
      static_cast<int>(result), ")",
      last == nullptr || *last == '\0' ? "" : absl::StrCat(", '", last, "'"),
      "; NCCL_DEBUG=INFO in the environment tells more"));
}

}  // namespace partita::cuda
