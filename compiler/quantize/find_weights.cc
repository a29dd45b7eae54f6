// Follows a weight from an argument of @main through transposes and calls to
// the operations that read it.
#include "compiler/quantize/find_weights.h"

#include <optional>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::quantize {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

class Reader {
 public:
  Reader(FuncOp main, Weight& weight)
      : symbols_(main->getParentOfType<mlir::ModuleOp>()), weight_(weight) {
    Value value = main.getArgument(weight.argument);
    const int64_t rank =
        llvm::cast<RankedTensorType>(value.getType()).getRank();
    follow(value, llvm::to_vector(llvm::seq<int64_t>(0, rank)),
           /*may_call=*/true);
    if (!weight_.obstacle.empty()) return;
    if (channels_)
      weight_.channels = *channels_;
    else
      weight_.obstacle = "nothing reads it";
  }

 private:
  // `dims[i]` is the weight's dimension that is dimension i of `value`.
  void follow(Value value, ArrayRef<int64_t> dims, bool may_call) {
    for (mlir::OpOperand& use : value.getUses()) {
      if (!weight_.obstacle.empty()) return;
      mlir::Operation* user = use.getOwner();
      if (auto transpose = llvm::dyn_cast<nn::TransposeOp>(user)) {
        SmallVector<int64_t> turned;
        for (const int64_t dim : transpose.getPerm())
          turned.push_back(dims[dim]);
        follow(transpose.getResult(), turned, /*may_call=*/false);
      } else if (auto call = llvm::dyn_cast<CallOp>(user); call && may_call) {
        FuncOp callee = symbols_.lookup<FuncOp>(call.getCallee());
        follow(callee.getArgument(use.getOperandNumber()), dims,
               /*may_call=*/false);
      } else if (auto dot = llvm::dyn_cast<nn::DotGeneralOp>(user)) {
        read(dot, use.getOperandNumber() == 1, dims);
      } else if (auto gather = llvm::dyn_cast<nn::GatherOp>(user);
                 gather && use.getOperandNumber() == 0 && dims[0] == 0 &&
                 gather.getAxes() == ArrayRef<int64_t>{0} &&
                 gather.getBatchDims() == 0) {
        weight_.is_table = true;
        agree({0});
      } else {
        weight_.obstacle = "read by " + user->getName().getStringRef().str();
      }
    }
  }

  void read(nn::DotGeneralOp dot, bool is_rhs, ArrayRef<int64_t> dims) {
    const ArrayRef<int64_t> contract =
        is_rhs ? dot.getRhsContract() : dot.getLhsContract();
    SmallVector<int64_t> channels;
    for (auto [i, dim] : llvm::enumerate(dims))
      if (!llvm::is_contained(contract, static_cast<int64_t>(i)))
        channels.push_back(dim);
    llvm::sort(channels);
    if (!dot.getLhsBatch().empty())
      weight_.obstacle = "a product of batches reads it";
    else if (dot.getLhs() == dot.getRhs())
      weight_.obstacle = "a product multiplies it by itself";
    weight_.is_multiplied = true;
    agree(channels);
  }

  void agree(const SmallVector<int64_t>& channels) {
    if (weight_.obstacle.empty() && channels_ && *channels_ != channels)
      weight_.obstacle = "its readers have different channels";
    channels_ = channels;
  }

  mlir::SymbolTable symbols_;
  Weight& weight_;
  std::optional<SmallVector<int64_t>> channels_;
};

}  // namespace

std::vector<Weight> findWeights(FuncOp main) {
  std::vector<Weight> weights;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto type = llvm::dyn_cast<RankedTensorType>(main.getArgument(i).getType());
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!type || !type.getElementType().isF32() || type.getRank() < 2 ||
        !name || !main.getArgAttr(i, nn::kSourceAttr))
      continue;
    Weight weight{i, name.str(), {}, {}};
    if (!llvm::isa<nn::FileAttr>(main.getArgAttr(i, nn::kSourceAttr)))
      weight.obstacle = "its numbers are not one stretch of a file";
    else
      Reader(main, weight);
    weights.push_back(std::move(weight));
  }
  return weights;
}

}  // namespace partita::quantize
