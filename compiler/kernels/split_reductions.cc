// Reductions whose results are too few to fill a GPU, in several steps; see
// passes.td.
#include <cmath>
#include <limits>

#include "compiler/kernels/passes.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/STLExtras.h"
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

// Neighbouring elements that a warp reads at a time, as code is generated: 4
// per thread. (8 in some kernels of 16-bit numbers, which then have half as
// many warps in their first step as are counted here.)
constexpr int64_t kWarpElements = 128;
// Warps that a large GPU runs at a time (132 multiprocessors of an H100, 32
// warps each: with more registers than 64 per thread no more fit).
constexpr int64_t kWarps = 4096;
// What one more launch costs, in reads of a warp: the start of a kernel and its
// first read, some 5 us, of which a read takes 0.1 where eight are under way at
// a time (unroll_reads.h).
constexpr double kLaunch = 50;
constexpr int kMostAdded = 2;

// The time of a reduction, in reads of a warp one after the other. A warp takes
// neighbouring results where the last dimension stays, and one result where it
// does not.
double timeOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  double warps = 1, reads = 1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    const bool reduced = llvm::is_contained(dims, static_cast<int64_t>(i));
    double& count = reduced ? reads : warps;
    count *= static_cast<int64_t>(i) == last
                 ? llvm::divideCeil(size, kWarpElements)
                 : size;
  }
  return reads * std::max(1.0, std::ceil(warps / kWarps)) + kLaunch;
}

// A reduction of `shape`, some of whose dimensions are cut in two, along
// `first`, and then of what is `left` along `second`.
struct Steps {
  SmallVector<int64_t> shape, first, left, second;
  double time = 0;  // of all, where the second may take steps itself
};

// Reduced dimensions before `cut` are left to the second step, and `parts` of
// that one.
Steps stepsOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, int64_t cut,
              int64_t parts) {
  Steps steps;
  SmallVector<int64_t> left;  // the shape between the steps
  const auto keep = [&](int64_t size, bool reduced) {
    if (reduced) steps.second.push_back(left.size());
    left.push_back(size);
    steps.shape.push_back(size);
  };
  const auto drop = [&](int64_t size) {
    steps.first.push_back(steps.shape.size());
    steps.shape.push_back(size);
  };
  for (auto [i, size] : llvm::enumerate(shape)) {
    const auto dim = static_cast<int64_t>(i);
    if (!llvm::is_contained(dims, dim)) {
      keep(size, false);
    } else if (dim == cut && parts < size) {
      keep(parts, true);
      drop(size / parts);
    } else if (dim <= cut) {
      keep(size, true);
    } else {
      drop(size);
    }
  }
  steps.time = timeOf(steps.shape, steps.first);
  steps.left = std::move(left);
  return steps;
}

// The fastest way in several steps, up to as many more than one. Its time is
// infinite where there is none.
Steps bestSteps(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, int more) {
  Steps best;
  best.time = std::numeric_limits<double>::infinity();
  if (more == 0) return best;
  for (int64_t cut : dims) {
    const int64_t size = shape[cut];
    const auto attempt = [&](int64_t parts) {
      Steps steps = stepsOf(shape, dims, cut, parts);
      if (steps.first.empty() || steps.time >= best.time) return;
      steps.time +=
          std::min(timeOf(steps.left, steps.second),
                   bestSteps(steps.left, steps.second, more - 1).time);
      if (steps.time < best.time) best = std::move(steps);
    };
    for (int64_t divisor = 1; divisor * divisor <= size; ++divisor)
      if (size % divisor == 0)
        for (int64_t parts : {divisor, size / divisor})
          if (parts > 1) attempt(parts);
  }
  return best;
}

// Writes the reduction in several steps where that is faster. Returns how many
// were added.
int split(nn::ReduceOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  if (type.getNumElements() == 0) return 0;
  SmallVector<int64_t> shape(type.getShape()), dims(op.getDims());
  mlir::OpBuilder builder(op);
  nn::MathBuilder b(builder, op.getLoc());
  const bool is_float = llvm::isa<mlir::FloatType>(type.getElementType());
  mlir::Value value;
  const auto reduce = [&](ArrayRef<int64_t> along) {
    value =
        nn::ReduceOp::create(builder, op.getLoc(), op.getKind(), value, along);
  };
  int added = 0;
  for (;; ++added) {
    const Steps steps = bestSteps(shape, dims, kMostAdded - added);
    if (steps.time >= timeOf(shape, dims)) break;
    // 16-bit floats are summed in f32, all the way.
    if (!value) value = is_float ? b.widen(op.getInput()) : op.getInput();
    value = b.reshape(value, steps.shape);
    reduce(steps.first);
    shape = steps.left, dims = steps.second;
  }
  if (added == 0) return 0;
  reduce(dims);
  op.replaceAllUsesWith(is_float ? b.narrow(value, op.getType()) : value);
  op.erase();
  return added;
}

bool hasLongStatistics(nn::BatchNormOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != static_cast<int64_t>(op.getFeature())) others.push_back(dim);
  return type.getNumElements() > 0 &&
         bestSteps(type.getShape(), others, kMostAdded).time <
             timeOf(type.getShape(), others);
}

class SplitReductions : public impl::SplitReductionsPassBase<SplitReductions> {
 public:
  void runOnOperation() override {
    // Statistics of a batch may be such reductions.
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
