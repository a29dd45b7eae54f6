// Marks the products of linear layers whose factors are rounded to 8 bits; see
// passes.td.
#include "compiler/autodiff/float8_marks.h"
#include "compiler/autodiff/passes.h"
#include "compiler/autodiff/router_operations.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_CHOOSEFLOAT8PRODUCTSPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

// GPUs multiply 16 bytes of each factor at a time.
constexpr int64_t kUnit = 16;

// Product of the sizes of all dimensions that are not summed.
int64_t freeSize(mlir::Value factor, llvm::ArrayRef<int64_t> contract) {
  const auto type = mlir::cast<RankedTensorType>(factor.getType());
  int64_t size = 1;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(contract, dim)) size *= type.getDimSize(dim);
  return size;
}

// A matrix product of 16-bit factors, with sizes that GPUs can multiply. The
// products of attention have batch dimensions.
bool isLinear(nn::DotGeneralOp dot) {
  const auto lhs = mlir::cast<RankedTensorType>(dot.getLhs().getType()),
             rhs = mlir::cast<RankedTensorType>(dot.getRhs().getType());
  if (!lhs.getElementType().isBF16() || !rhs.getElementType().isBF16() ||
      !dot.getLhsBatch().empty())
    return false;
  int64_t summed = 1;
  for (int64_t dim : dot.getLhsContract()) summed *= lhs.getDimSize(dim);
  return summed % kUnit == 0 &&
         freeSize(dot.getLhs(), dot.getLhsContract()) % kUnit == 0 &&
         freeSize(dot.getRhs(), dot.getRhsContract()) % kUnit == 0;
}

// True if another product or a layer reads what `op` computes.
bool feedsLayers(Operation* op) {
  llvm::DenseSet<Operation*> seen;
  llvm::SmallVector<Operation*> open(op->getUsers());
  while (!open.empty()) {
    Operation* user = open.pop_back_val();
    if (!seen.insert(user).second) continue;
    if (mlir::isa<nn::DotGeneralOp, nn::ConvOp, nn::AttentionOp, nn::ExpertsOp,
                  mlir::func::CallOp>(user))
      return true;
    llvm::append_range(open, user->getUsers());
  }
  return false;
}

// How often a step runs each function, with alike layers as calls of one.
llvm::StringMap<int64_t> countCalls(mlir::ModuleOp module) {
  llvm::StringMap<int64_t> calls;
  module.walk([&](mlir::func::CallOp call) { ++calls[call.getCallee()]; });
  return calls;
}

class ChooseFloat8Products
    : public impl::ChooseFloat8ProductsPassBase<ChooseFloat8Products> {
 public:
  using ChooseFloat8ProductsPassBase::ChooseFloat8ProductsPassBase;

  void runOnOperation() override {
    const auto mark = mlir::StringAttr::get(&getContext(), kFloat8Forward);
    const llvm::StringMap<int64_t> calls = countCalls(getOperation());
    int64_t marked = 0, all = 0;
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      const bool is_main = function.getName() == "main";
      const int64_t runs = is_main ? 1 : calls.lookup(function.getName());
      const llvm::DenseSet<Operation*> routers = findRouterOperations(function);
      for (auto dot : function.getOps<nn::DotGeneralOp>()) {
        all += runs;
        // The model's last product gives logits, whose errors add up in a
        // softmax over the vocabulary.
        if (!isLinear(dot) || routers.contains(dot) ||
            (is_main && !feedsLayers(dot)))
          continue;
        dot->setAttr(kFloat8Attr, mark);
        ++products;
        marked += runs;
      }
    }
    report(marked, all);
  }

 private:
  void report(int64_t marked, int64_t all) {
    const mlir::Location loc = getOperation().getLoc();
    if (marked == 0)
      mlir::emitWarning(loc)
          << "--precision f8: expected products of linear layers whose sizes "
             "are multiples of "
          << kUnit << ", found none among " << all
          << " products; the program is that of bf16";
    else
      mlir::emitRemark(loc)
          << "--precision f8: the factors of " << marked << " of " << all
          << " products are rounded to 8 bits";
  }
};

}  // namespace
}  // namespace partita::autodiff
