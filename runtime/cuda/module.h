// Kernels in PTX or machine code.
#ifndef PARTITA_RUNTIME_CUDA_MODULE_H_
#define PARTITA_RUNTIME_CUDA_MODULE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/context.h"
#include "runtime/device/device.h"

namespace partita::cuda {

class CudaKernel : public device::Kernel {
 public:
  CudaKernel(std::shared_ptr<Context> context, std::string name,
             CuFunction function);

  // Launches the kernel. Its parameters are one pointer per buffer, then the
  // maps of the shape (CudaTensorMaps), then `scratch` unless it is null. A
  // grid with a zero dimension launches nothing. InvalidArgument if the shape
  // is invalid or the kernel takes another number of parameters.
  absl::Status Launch(CuStream stream, const device::LaunchShape& shape,
                      void* const* buffers, int count, void* scratch) const;
  // Launches a kernel whose only parameter is a table of pieces.
  absl::Status LaunchTable(CuStream stream, const device::LaunchShape& shape,
                           std::vector<uint64_t> table) const;

 private:
  absl::Status CheckShape(const device::LaunchShape& shape, int count) const;
  absl::Status Start(CuStream stream, const device::LaunchShape& shape,
                     void** parameters) const;

  const std::shared_ptr<Context> context_;
  const std::string name_;
  const CuFunction function_;
  int parameters_ = -1;                  // -1: unknown
  mutable int shared_bytes_ = 48 << 10;  // current limit of a launch
};

class CudaModule : public device::Module {
 public:
  // Loads a code section (runtime/program/code_bundle.h): the machine code of
  // the GPU's architecture, or PTX text, a cubin or a fatbin without any that
  // the driver loads. InvalidArgument, with the driver's compiler message, if
  // the code is invalid.
  static absl::StatusOr<std::unique_ptr<CudaModule>> Load(
      std::shared_ptr<Context> context, std::string_view section);
  CudaModule(const CudaModule&) = delete;
  ~CudaModule() override;

  absl::StatusOr<const device::Kernel*> Find(
      const std::string& symbol) override;
  // Finds one of the runtime's own kernels, which take other parameters.
  absl::StatusOr<CuFunction> FindFunction(const std::string& symbol) const;

 private:
  CudaModule(std::shared_ptr<Context> context, CuModule module)
      : context_(std::move(context)), module_(module) {}

  const std::shared_ptr<Context> context_;
  const CuModule module_;
  std::map<std::string, CudaKernel> kernels_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_MODULE_H_
