// Looks for kernels that compute one attention of strided views of their
// operands, and describes the attention on the launches; see passes.td.
#include <optional>

#include "compiler/kernels/passes.h"
#include "compiler/kernels/strided_view.h"
#include "dialects/exec/attention.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/kernel_parts.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_DESCRIBEATTENTIONSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Value;
using mlir::func::FuncOp;
using Tensor = exec::Attention::Tensor;

llvm::ArrayRef<int64_t> shapeOf(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

// The strides of `value` in the memory of `returned`, which consists of
// transposes and reshapes of it.
std::optional<SmallVector<int64_t>> stridesWithin(Value returned, Value value) {
  SmallVector<int64_t> strides = denseStrides(shapeOf(returned));
  while (returned != value) {
    mlir::Operation* op = returned.getDefiningOp();
    if (auto transpose = llvm::dyn_cast_or_null<nn::TransposeOp>(op)) {
      const SmallVector<int64_t> to = strides;
      for (auto [stride, dim] : llvm::zip_equal(to, transpose.getPerm()))
        strides[dim] = stride;
    } else if (llvm::isa_and_nonnull<nn::ReshapeOp>(op)) {
      auto within = reshapedStrides(shapeOf(returned), strides,
                                    shapeOf(op->getOperand(0)));
      if (!within) return std::nullopt;
      strides = *within;
    } else {
      return std::nullopt;
    }
    returned = op->getOperand(0);
  }
  return strides;
}

std::optional<Tensor> tensorOf(int64_t operand, int64_t offset,
                               llvm::ArrayRef<int64_t> strides,
                               llvm::ArrayRef<int64_t> shape) {
  if ((shape[3] != 1 && strides[3] != 1) ||
      llvm::any_of(strides, [](int64_t stride) { return stride < 0; }))
    return std::nullopt;
  return Tensor{operand, offset, strides[0], strides[1], strides[2]};
}

// The tensor of transposes, reshapes and slices of an argument.
std::optional<Tensor> inputOf(Value value) {
  const StridedView view = viewOfSlices(value);
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(view.base);
  if (!argument) return std::nullopt;
  const llvm::ArrayRef<int64_t> shape = shapeOf(value);
  // Broadcasts are refused: cuDNN expects distinct elements.
  for (auto [size, stride] : llvm::zip_equal(shape, view.strides))
    if (size > 1 && stride == 0) return std::nullopt;
  return tensorOf(argument.getArgNumber(), view.offset, view.strides, shape);
}

// True for an attention of 16-bit floats with no mask but a causal one, whose
// last query sees all keys.
bool isPlain(nn::AttentionOp op) {
  if (op.getBias() || op.getShift() || op.getQSegments() || op.getFirstHead() ||
      op.getWindow() || op.getSinks() || op.getBlocks() ||
      op.getSoftcap().convertToDouble() > 0)
    return false;
  const auto offset = static_cast<int64_t>(op.getCausalOffset().value_or(0));
  // The causal masks that the library's own interface offers: of queries that
  // are the last of the keys.
  if (op.getCausalOffset() &&
      (offset < 0 || offset != shapeOf(op.getK())[2] - shapeOf(op.getQ())[2]))
    return false;
  const mlir::Type type =
      llvm::cast<mlir::RankedTensorType>(op.getQ().getType()).getElementType();
  return (type.isF16() || type.isBF16()) &&
         llvm::none_of(op->getOperands(), [](Value operand) {
           return llvm::is_contained(shapeOf(operand), 0);
         });
}

// The only attention of a kernel, or null.
nn::AttentionOp onlyAttention(FuncOp kernel) {
  nn::AttentionOp found;
  int count = 0;
  kernel.walk([&](nn::AttentionOp op) {
    found = op;
    ++count;
  });
  return count == 1 ? found : nn::AttentionOp();
}

// Sets the results: a view of the attention's result and, if the kernel returns
// it, the log-sum-exp. False if there are others.
bool describeResults(FuncOp kernel, nn::AttentionOp op,
                     exec::Attention& attention) {
  const int64_t arguments = kernel.getNumArguments();
  bool has_out = false;
  for (auto [index, returned] :
       llvm::enumerate(kernel.front().getTerminator()->getOperands())) {
    const int64_t operand = arguments + static_cast<int64_t>(index);
    if (op.getLse() && returned == op.getLse() && attention.lse < 0) {
      attention.lse = operand;
      continue;
    }
    const auto strides = stridesWithin(returned, op.getResult());
    if (!strides || has_out) return false;
    const auto out = tensorOf(operand, 0, *strides, shapeOf(op.getResult()));
    if (!out) return false;
    attention.out = *out;
    has_out = true;
  }
  return has_out;
}

std::optional<exec::Attention> describe(FuncOp kernel) {
  nn::AttentionOp op = onlyAttention(kernel);
  if (!op || !isPlain(op)) return std::nullopt;
  exec::Attention attention;
  if (!describeResults(kernel, op, attention)) return std::nullopt;
  const auto q = inputOf(op.getQ()), k = inputOf(op.getK()),
             v = inputOf(op.getV());
  if (!q || !k || !v) return std::nullopt;
  attention.q = *q, attention.k = *k, attention.v = *v;
  const auto queries = shapeOf(op.getQ()), keys = shapeOf(op.getK());
  attention.batch = queries[0];
  attention.heads = queries[1];
  attention.groups = keys[1];
  attention.queries = queries[2];
  attention.keys = keys[2];
  attention.size = queries[3];
  attention.value_size = shapeOf(op.getV())[3];
  attention.scale = op.getScale().convertToDouble();
  attention.causal = op.getCausalOffset().has_value();
  attention.causal_offset =
      static_cast<int64_t>(op.getCausalOffset().value_or(0));
  return attention;
}

class DescribeAttentions
    : public impl::DescribeAttentionsPassBase<DescribeAttentions> {
 public:
  using DescribeAttentionsPassBase::DescribeAttentionsPassBase;

  void runOnOperation() override {
    llvm::StringMap<exec::Attention> attentions;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (function->hasAttr(exec::kKernelAttr) && !function.isExternal() &&
          !exec::hasKernelParts(function))
        if (auto attention = describe(function))
          attentions[function.getName()] = *attention;
    getOperation().walk([&](exec::LaunchOp launch) {
      auto found = attentions.find(launch.getKernel());
      // Only launches on GPUs have blocks.
      if (found == attentions.end() || !launch.getBlocks()) return;
      exec::setAttention(launch, found->second);
      ++described;
    });
  }
};

}  // namespace
}  // namespace partita::kernels
