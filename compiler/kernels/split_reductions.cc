// Splits reductions with too few results to fill a GPU into several steps; see
// passes.td.
#include "compiler/core/reduction_steps.h"
#include "compiler/kernels/passes.h"
#include "compiler/kernels/reduction_marks.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;

// With longer rows, fewer than eight warps' scratch fits a multiprocessor.
constexpr int64_t kLongestRow = 1024;
// Blocks of rows that occupy a large GPU with eight warps per multiprocessor.
// More would write more partial sums.
constexpr int64_t kMostBlocks = 1024;
// With fewer blocks, too few warps walk the rows. Sizes with large prime
// factors have no other blocks.
constexpr int64_t kFewestBlocks = kMostBlocks / 2;
// Elements of a row that a warp reads at once.
constexpr int64_t kWarpElements = 128;

bool isElementwise(mlir::Operation* op) {
  return op && mlir::OpTrait::hasElementwiseMappableTraits(op);
}

// Adds the values that `value` is computed from by elementwise operations.
void addSources(mlir::Value value, llvm::SetVector<mlir::Value>& sources) {
  mlir::Operation* op = value.getDefiningOp();
  // Unrelated values share these.
  if (op && (op->hasTrait<mlir::OpTrait::ConstantLike>() ||
             llvm::isa<nn::BroadcastOp>(op)))
    return;
  if (!sources.insert(value) || !isElementwise(op)) return;
  for (mlir::Value operand : op->getOperands()) addSources(operand, sources);
}

void addAncestors(mlir::Operation* op,
                  llvm::DenseSet<mlir::Operation*>& ancestors) {
  for (mlir::Value operand : op->getOperands())
    if (mlir::Operation* producer = operand.getDefiningOp();
        producer && ancestors.insert(producer).second)
      addAncestors(producer, ancestors);
}

// True if elementwise operations on `value` end in a reduction along `dims`
// that is not `before`.
bool isReduced(mlir::Value value, ArrayRef<int64_t> dims,
               const llvm::DenseSet<mlir::Operation*>& before,
               llvm::DenseSet<mlir::Value>& seen) {
  if (!seen.insert(value).second) return false;
  return llvm::any_of(value.getUsers(), [&](mlir::Operation* user) {
    if (auto reduce = llvm::dyn_cast<nn::ReduceOp>(user))
      return reduce.getDims() == dims && !before.contains(user);
    return isElementwise(user) &&
           isReduced(user->getResult(0), dims, before, seen);
  });
}

// The number of elements per row if the reduction sums rows that other
// operations reduce along their elements, as in the backward pass of a norm:
// one kernel can do both. 0 otherwise.
int64_t rowOf(nn::ReduceOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  const auto summed = static_cast<int64_t>(op.getDims().size());
  if (op.getKind() != nn::ReduceKind::sum ||
      !llvm::isa<mlir::FloatType>(type.getElementType()) ||
      op.getDims() != ArrayRef(llvm::to_vector(llvm::seq(summed))))
    return 0;
  const auto inner = llvm::to_vector(llvm::seq(summed, type.getRank()));
  int64_t row = 1;
  for (const int64_t dim : inner) row *= type.getDimSize(dim);
  if (row % kWarpElements != 0 || row > kLongestRow) return 0;
  llvm::SetVector<mlir::Value> sources;
  addSources(op.getInput(), sources);
  // A sum of what those reductions are needed for comes after them.
  llvm::DenseSet<mlir::Operation*> before;
  addAncestors(op, before);
  llvm::DenseSet<mlir::Value> seen;
  const bool shared = llvm::any_of(sources, [&](mlir::Value source) {
    return isReduced(source, inner, before, seen);
  });
  return shared ? row : 0;
}

// True if elementwise operations compute the value from what is stored, without
// rows to reduce first.
bool isFlat(mlir::Value value, llvm::DenseSet<mlir::Value>& seen) {
  if (!seen.insert(value).second) return true;
  mlir::Operation* op = value.getDefiningOp();
  if (!op) return true;
  if (llvm::isa<nn::ReduceOp, nn::SoftmaxOp, nn::LayerNormOp, nn::RmsNormOp>(
          op))
    return false;
  if (!isElementwise(op) && !llvm::isa<nn::BroadcastOp, nn::ReshapeOp>(op))
    return true;
  return llvm::all_of(op->getOperands(), [&](mlir::Value operand) {
    return isFlat(operand, seen);
  });
}

// True if the reduction sums rows that an elementwise kernel computes and
// writes for others, such as the gradient of an activation.
bool sumsWrittenRows(nn::ReduceOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  const auto summed = static_cast<int64_t>(op.getDims().size());
  if (op.getKind() != nn::ReduceKind::sum ||
      !llvm::isa<mlir::FloatType>(type.getElementType()) ||
      op.getDims() != ArrayRef(llvm::to_vector(llvm::seq(summed))))
    return false;
  int64_t row = 1;
  for (const int64_t dim : type.getShape().drop_front(summed)) row *= dim;
  if (row % kWarpElements != 0) return false;
  mlir::Value input = op.getInput();
  if (auto widened = input.getDefiningOp<mlir::arith::ExtFOp>())
    input = widened.getIn();
  llvm::DenseSet<mlir::Value> seen;
  return isElementwise(input.getDefiningOp()) &&
         !(input.hasOneUse() && op.getInput().hasOneUse()) &&
         isFlat(input, seen);
}

// The steps of a sum of rows by kernels whose warps walk blocks of whole rows.
std::vector<core::ReductionStep> stepsOfRows(nn::ReduceOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  const auto last = static_cast<int64_t>(op.getDims().size()) - 1;
  int64_t all = 1;
  for (const int64_t dim : op.getDims()) all *= type.getDimSize(dim);
  int64_t rows = 1;
  while (type.getDimSize(last) % rows != 0 || all / rows > kMostBlocks)
    if (++rows > type.getDimSize(last)) return {};
  if (rows == 1 || all / rows < kFewestBlocks) return {};
  core::ReductionStep first;
  first.left = type.getShape().vec();
  first.left[last] /= rows;
  first.shape = first.left;
  first.shape.insert(first.shape.begin() + last + 1, rows);
  first.dims = {last + 1};
  std::vector<core::ReductionStep> steps =
      core::ReductionSteps(first.left, op.getDims().vec());
  steps.insert(steps.begin(), std::move(first));
  return steps;
}

std::vector<core::ReductionStep> stepsOf(RankedTensorType type,
                                         ArrayRef<int64_t> dims) {
  if (type.getNumElements() == 0) return {};
  return core::ReductionSteps(type.getShape().vec(), dims.vec());
}

// Writes the reduction in several steps if that is faster. Returns the number
// of added steps.
int64_t split(nn::ReduceOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  std::vector<core::ReductionStep> steps = stepsOf(type, op.getDims());
  if (steps.size() < 2) return 0;
  bool of_rows = rowOf(op) > 0;
  if (of_rows) {
    std::vector<core::ReductionStep> others = stepsOfRows(op);
    of_rows = !others.empty();
    if (of_rows) steps = std::move(others);
  }
  const bool of_columns =
      !of_rows && steps.front().dims.size() == 1 && sumsWrittenRows(op);
  mlir::OpBuilder builder(op);
  nn::MathBuilder b(builder, op.getLoc());
  // All steps sum 16-bit floats in f32.
  const bool is_float = llvm::isa<mlir::FloatType>(type.getElementType());
  mlir::Value value = is_float ? b.widen(op.getInput()) : op.getInput();
  for (const core::ReductionStep& step : steps) {
    auto reduce = nn::ReduceOp::create(builder, op.getLoc(), op.getKind(),
                                       b.reshape(value, step.shape), step.dims);
    if (&step != &steps.front())
      reduce->setAttr(kLateStepAttr,
                      builder.getI64IntegerAttr(&steps.back() - &step));
    else if (of_rows)
      reduce->setAttr(kRowSumsAttr, builder.getUnitAttr());
    else if (of_columns)
      reduce->setAttr(kColumnSumsAttr, builder.getUnitAttr());
    value = reduce;
  }
  op.replaceAllUsesWith(is_float ? b.narrow(value, op.getType()) : value);
  op.erase();
  return static_cast<int64_t>(steps.size()) - 1;
}

bool hasLongStatistics(nn::BatchNormOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != static_cast<int64_t>(op.getFeature())) others.push_back(dim);
  return stepsOf(type, others).size() > 1;
}

class SplitReductions : public impl::SplitReductionsPassBase<SplitReductions> {
 public:
  void runOnOperation() override {
    // Batch statistics may be such reductions.
    SmallVector<nn::BatchNormOp> norms;
    getOperation().walk([&](nn::BatchNormOp op) {
      if (op.getTraining() && hasLongStatistics(op)) norms.push_back(op);
    });
    for (nn::BatchNormOp op : norms) {
      mlir::OpBuilder builder(op);
      auto results = op.decompose(builder);
      if (mlir::failed(results)) return signalPassFailure();
      op->replaceAllUsesWith(*results);
      op->erase();
    }
    SmallVector<nn::ReduceOp> reductions;
    getOperation().walk([&](nn::ReduceOp op) { reductions.push_back(op); });
    for (nn::ReduceOp op : reductions) steps += split(op);
  }
};

}  // namespace
}  // namespace partita::kernels
