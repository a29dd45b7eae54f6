// Stores results of attention as products read them; see passes.td.
#include "compiler/kernels/passed_results.h"
#include "compiler/kernels/passes.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

#define GEN_PASS_DEF_STOREBYTOKENSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using mlir::Value;
using mlir::func::FuncOp;

// Exchanges heads and tokens; its own inverse.
constexpr int64_t kPerm[] = {0, 2, 1, 3};

bool exchangesHeads(mlir::Operation* op) {
  auto transpose = llvm::dyn_cast<nn::TransposeOp>(op);
  return transpose && transpose.getPerm() == llvm::ArrayRef<int64_t>(kPerm);
}

// The transposed value if `value` is a result of attention that is returned
// once and otherwise only transposed.
nn::TransposeOp transposedResult(Value value) {
  if (!value.getDefiningOp<nn::AttentionOp>() ||
      llvm::range_size(value.getUses()) != 2)
    return nullptr;
  nn::TransposeOp transposed;
  for (mlir::Operation* user : value.getUsers())
    if (exchangesHeads(user)) transposed = llvm::cast<nn::TransposeOp>(user);
  return transposed;
}

class StoreByTokens : public impl::StoreByTokensPassBase<StoreByTokens> {
 public:
  void runOnOperation() override {
    PassedResults passed(getOperation());
    const auto transpose_back = [](mlir::OpBuilder& builder, Value value) {
      return nn::TransposeOp::create(builder, value.getLoc(), value, kPerm)
          .getResult();
    };
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      mlir::Operation* terminator = function.front().getTerminator();
      for (unsigned index = 0; index < function.getNumResults(); ++index)
        if (nn::TransposeOp transposed =
                transposedResult(terminator->getOperand(index)))
          results += passed.replace(function, index, transposed.getResult(),
                                    transpose_back);
    }
  }
};

}  // namespace
}  // namespace partita::kernels
