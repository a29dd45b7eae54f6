// As runtime/cuda reserves it: a workspace of the library's; sums in f32 where
// the library does not finish a product itself; a weight that is laid out as
// the library wants it.
#include "compiler/driver/device_scratch.h"

#include <algorithm>

#include "dialects/exec/dialect.h"
#include "llvm/Support/MathExtras.h"
#include "runtime/program/library_limits.h"

namespace partita::driver {
namespace {

constexpr int64_t kPart = 256;  // parts of the scratch begin at multiples

mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

bool libraryFinishes(exec::GemmOp gemm) {
  switch (gemm.getActivation()) {
    case exec::Activation::none:
      return true;
    case exec::Activation::relu:
    case exec::Activation::gelu_tanh:
      return !gemm.getResidual();
    default:
      return false;
  }
}

int64_t scratchOf(exec::GemmOp gemm) {
  const int64_t sums =
      libraryFinishes(gemm) ? 0 : typeOf(gemm.getResult()).getNumElements() * 4;
  return llvm::alignTo(sums, kPart) + program::kProductWorkspaceBytes;
}

int64_t scratchOf(exec::ConvOp conv) {
  // Of the three tensors the one that is a weight.
  auto weight = typeOf(conv.getDirection() == exec::ConvDirection::weight_grad
                           ? conv.getResult()
                           : conv.getWeight());
  const int64_t channels = weight.getDimSize(1);
  const int64_t places =
      weight.getNumElements() / (weight.getDimSize(0) * channels);
  const bool moves = conv.getChannelsLast() && channels > 1 && places > 1;
  return (moves ? llvm::alignTo(exec::bufferBytes(weight), kPart) : 0) +
         program::kConvolutionWorkspaceBytes;
}

}  // namespace

int64_t deviceScratch(mlir::ModuleOp module) {
  int64_t most = 0;
  module.walk([&](mlir::Operation* op) {
    int64_t bytes = 0;
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op))
      bytes = launch.getScratch().value_or(0);
    else if (auto gemm = llvm::dyn_cast<exec::GemmOp>(op))
      bytes = scratchOf(gemm);
    else if (auto conv = llvm::dyn_cast<exec::ConvOp>(op))
      bytes = scratchOf(conv);
    most = std::max(most, bytes);
  });
  return most;
}

}  // namespace partita::driver
