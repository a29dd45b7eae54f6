// Products and convolutions by the runtime's own kernels.
#ifndef PARTITA_RUNTIME_CUDA_OWN_OPS_H_
#define PARTITA_RUNTIME_CUDA_OWN_OPS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// The kernels, loaded on a GPU.
class OwnKernels {
 public:
  static absl::StatusOr<std::shared_ptr<const OwnKernels>> Load(
      std::shared_ptr<Context> context);

  absl::StatusOr<CuFunction> Find(const std::string& symbol) const {
    return module_->FindFunction(symbol);
  }
  // Launches one thread per element, `count` in total. `args` points to the
  // kernel's only parameter.
  absl::Status Launch(CuStream stream, CuFunction function, const void* args,
                      int64_t count) const;
  // Copies bytes at any alignment. `copy_box` is the kernel partita_copy_box.
  absl::Status Copy(CuStream stream, CuFunction copy_box, const void* from,
                    void* to, int64_t bytes) const;

 private:
  std::shared_ptr<Context> context_;
  std::unique_ptr<CudaModule> module_;
};

// The arguments that do not change from call to call.
absl::StatusOr<ProductArgs> ToProductArgs(const device::GemmDesc& desc);
// Sets the operands of a product, in the order of GemmDesc.
void SetOperands(const device::GemmDesc& desc, void* const* buffers,
                 ProductArgs& args);

// The sums of a factor of a product over k, by our own kernels: in two steps,
// so that enough threads read.
class FactorSums {
 public:
  // Nothing to do without sums in `desc`.
  static absl::StatusOr<FactorSums> Make(
      std::shared_ptr<const OwnKernels> kernels, const device::GemmDesc& desc);

  // Device memory that Run needs, in bytes.
  int64_t scratch_bytes() const {
    return is_needed() ? args_.parts * args_.count * 4 : 0;
  }
  // `buffers` are the product's operands.
  absl::Status Run(CuStream stream, void* const* buffers, void* scratch);

 private:
  bool is_needed() const { return add_parts_ != nullptr; }

  std::shared_ptr<const OwnKernels> kernels_;
  CuFunction sum_parts_ = nullptr, add_parts_ = nullptr;
  int factor_ = 0, out_ = 0;  // operands
  FactorSumsArgs args_ = {};
};

// The same for convolutions. Unimplemented beyond three spatial dimensions.
absl::StatusOr<ConvArgs> ToConvArgs(const device::ConvDesc& desc);
void SetOperands(const device::ConvDesc& desc, void* const* buffers,
                 ConvArgs& args);

absl::StatusOr<std::unique_ptr<CudaOp>> MakeOwnProduct(
    std::shared_ptr<const OwnKernels> kernels, const device::GemmDesc& desc);
// Unimplemented beyond three spatial dimensions.
absl::StatusOr<std::unique_ptr<CudaOp>> MakeOwnConv(
    std::shared_ptr<const OwnKernels> kernels, const device::ConvDesc& desc);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_OWN_OPS_H_
