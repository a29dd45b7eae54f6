// Opens NVTX, whose library has changed its name.
#include "runtime/cuda/ranges.h"

#include <vector>

#include "runtime/base/library.h"

namespace partita::cuda {

Ranges::Ranges(const std::string& path) {
  if (path == "none") return;
  std::vector<std::string> names = {path};
  if (path.empty())
    names = {"libnvToolsExt.so.1", "libnvtx3interop.so.1",
             "libnvtx3interop.so"};
  const absl::StatusOr<base::Library> library =
      base::Library::Open(names, "NVTX", "install CUDA's libraries");
  if (!library.ok()) return;
  if (!library->Load("nvtxRangePushA", &push_).ok() ||
      !library->Load("nvtxRangePop", &pop_).ok())
    push_ = nullptr;
}

}  // namespace partita::cuda
