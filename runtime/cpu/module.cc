// Loads code through an in-memory file.
#include "runtime/cpu/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/elf_check.h"

namespace partita::cpu {
namespace {

bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuModule>> CpuModule::Load(
    std::string_view code) {
  PARTITA_RETURN_IF_ERROR(CheckSharedLibrary(code));
  const int descriptor = memfd_create("partita-kernels", MFD_CLOEXEC);
  if (descriptor < 0 || !WriteAll(descriptor, code)) {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot hold ", code.size(),
                     " bytes of machine code in memory: ", strerror(error)));
  }
  const std::string path = absl::StrCat("/proc/self/fd/", descriptor);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot load the kernels: ", reason ? reason : "unknown reason"));
  }
  // The descriptor stays open: the loader identifies libraries by path, and a
  // reused descriptor number would name this library.
  return std::unique_ptr<CpuModule>(new CpuModule(descriptor, handle));
}

CpuModule::~CpuModule() {
  dlclose(handle_);
  close(descriptor_);
}

absl::StatusOr<const device::Kernel*> CpuModule::Find(
    const std::string& symbol) {
  CpuKernel& kernel = kernels_[symbol];
  if (kernel.function == nullptr) {
    kernel.function = reinterpret_cast<program::KernelFunction>(
        dlsym(handle_, symbol.c_str()));
    if (kernel.function == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("the code section has no kernel '", symbol,
                       "'; compile the model again"));
    }
  }
  return &kernel;
}

}  // namespace partita::cpu
