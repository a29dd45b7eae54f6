// Follows a weight from an argument of @main through transposes, reshapes and
// calls to the operations that read it.
#include "compiler/quantize/find_weights.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/plan/glob.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/SymbolTable.h"
#include "runtime/base/status_macros.h"

namespace partita::quantize {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

constexpr size_t kMostListed = 12;  // weights in a message

bool matches(const std::string& pattern, const std::string& name) {
  llvm::StringRef module(name);
  module.consume_back(".weight");
  if (plan::MatchesGlob(pattern, name) ||
      plan::MatchesGlob(pattern, module.str()))
    return true;
  return pattern.find_first_of("*?[{\\") == std::string::npos &&
         (llvm::StringRef(name).ends_with("." + pattern) ||
          module.ends_with("." + pattern));
}

class Reader {
 public:
  Reader(FuncOp main, Weight& weight, bool convolutions)
      : symbols_(main->getParentOfType<mlir::ModuleOp>()),
        weight_(weight),
        convolutions_(convolutions) {
    Value value = main.getArgument(weight.argument);
    rank_ = llvm::cast<RankedTensorType>(value.getType()).getRank();
    follow(value, llvm::to_vector(llvm::seq<int64_t>(0, rank_)),
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
      } else if (auto reshape = llvm::dyn_cast<nn::ReshapeOp>(user);
                 reshape && !keptDims(reshape).empty()) {
        SmallVector<int64_t> kept;
        for (const int64_t dim : keptDims(reshape)) kept.push_back(dims[dim]);
        follow(reshape.getResult(), kept, /*may_call=*/false);
      } else if (auto call = llvm::dyn_cast<CallOp>(user); call && may_call) {
        FuncOp callee = symbols_.lookup<FuncOp>(call.getCallee());
        follow(callee.getArgument(use.getOperandNumber()), dims,
               /*may_call=*/false);
      } else if (auto dot = llvm::dyn_cast<nn::DotGeneralOp>(user)) {
        read(dot, use.getOperandNumber() == 1, dims);
      } else if (convolutions_ && llvm::isa<nn::ConvOp>(user) &&
                 use.getOperandNumber() == 1 && dims[0] == 0) {
        weight_.is_multiplied = true;
        agree({0});
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
    SmallVector<int64_t> summed, channels;
    for (const int64_t dim : contract) summed.push_back(dims[dim]);
    for (int64_t dim = 0; dim < rank_; ++dim)
      if (!llvm::is_contained(summed, dim)) channels.push_back(dim);
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
  const bool convolutions_;
  int64_t rank_ = 0;
  std::optional<SmallVector<int64_t>> channels_;
};

}  // namespace

SmallVector<int64_t> Weight::order(int64_t rank) const {
  SmallVector<int64_t> dims(channels);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(channels, dim)) dims.push_back(dim);
  return dims;
}

std::vector<Weight> findWeights(FuncOp main, bool needs_file,
                                bool convolutions) {
  std::vector<Weight> weights;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto type = llvm::dyn_cast<RankedTensorType>(main.getArgument(i).getType());
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!type || !type.getElementType().isF32() || type.getRank() < 2 ||
        !name || !main.getArgAttr(i, nn::kSourceAttr))
      continue;
    Weight weight{i, name.str(), {}, {}};
    if (needs_file &&
        !llvm::isa<nn::FileAttr>(main.getArgAttr(i, nn::kSourceAttr)))
      weight.obstacle =
          "no stretch of a file holds its numbers: they are made from a seed, "
          "or by a computation";
    else
      Reader(main, weight, convolutions);
    weights.push_back(std::move(weight));
  }
  return weights;
}

absl::Status keepWeights(std::vector<Weight>& weights,
                         const std::vector<std::string>& keep, bool embeddings,
                         const KeepOptionNames& names) {
  for (Weight& weight : weights)
    if (weight.obstacle.empty() && !weight.is_multiplied && !embeddings)
      weight.obstacle =
          absl::StrCat("no product reads it (", names.embeddings, ")");
  for (const std::string& pattern : keep) {
    PARTITA_RETURN_IF_ERROR(plan::CheckGlob(pattern));
    bool found = false;
    for (Weight& weight : weights) {
      if (!matches(pattern, weight.name)) continue;
      found = true;
      if (weight.obstacle.empty())
        weight.obstacle = absl::StrCat(names.keep, " ", pattern);
    }
    if (found) continue;
    std::string message = absl::StrCat(
        names.keep, ": expected patterns of weights, found none that matches '",
        pattern, "'");
    for (size_t i = 0; i < weights.size() && i < kMostListed; ++i)
      absl::StrAppend(&message, i == 0 ? "; the first weights are " : ", ",
                      weights[i].name);
    return absl::InvalidArgumentError(message);
  }
  return absl::OkStatus();
}

SmallVector<int64_t> keptDims(nn::ReshapeOp reshape) {
  const auto from = llvm::cast<RankedTensorType>(reshape.getInput().getType());
  const RankedTensorType to = reshape.getType();
  SmallVector<int64_t> kept;
  int64_t dim = 0;
  for (int64_t i = 0; i < from.getRank(); ++i) {
    // The first dimensions of size 1 stay, if any do.
    if (dim < to.getRank() && from.getDimSize(i) == to.getDimSize(dim)) {
      kept.push_back(i);
      ++dim;
    } else if (from.getDimSize(i) != 1) {
      return {};
    }
  }
  if (dim < to.getRank()) return {};
  return kept;
}

}  // namespace partita::quantize
