// Machine code in memory, loaded as a shared library.
#ifndef PARTITA_RUNTIME_CPU_MODULE_H_
#define PARTITA_RUNTIME_CPU_MODULE_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/program/artifact.h"

namespace partita::cpu {

struct CpuKernel : public device::Kernel {
  program::KernelFunction function = nullptr;
};

class CpuModule : public device::Module {
 public:
  // InvalidArgument, with the loader's message, if `code` is not a shared
  // library for this machine.
  static absl::StatusOr<std::unique_ptr<CpuModule>> Load(std::string_view code);
  ~CpuModule() override;

  absl::StatusOr<const device::Kernel*> Find(
      const std::string& symbol) override;

 private:
  CpuModule(int descriptor, void* handle)
      : descriptor_(descriptor), handle_(handle) {}

  int descriptor_;
  void* handle_;
  std::map<std::string, CpuKernel> kernels_;
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_MODULE_H_
