// Follows placeholders of chosen indices forwards: through index arithmetic to
// gathers, through operations on rows to scatters. Gathers and scatters at
// regular places become reshapes, repetitions and sums.
#include "frontends/onnx/chosen_rows.h"

#include "frontends/onnx/index_values.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::onnx {
namespace {

using llvm::failure;
using llvm::LogicalResult;
using llvm::success;
using mlir::Operation;
using mlir::UnrealizedConversionCastOp;
using mlir::Value;

Dims shapeOf(Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

// The dimension of a reshaped tensor that dimension `dim` becomes; -1 if it is
// merged or split.
int64_t reshapedDim(Dims from, int64_t dim, Dims to) {
  const int64_t before = product(from.take_front(dim));
  for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i)
    if (to[i] == from[dim] && product(to.take_front(i)) == before) return i;
  return -1;
}

// Places in rows 0 .. n - 1 of the elements of a grid: a sum of a stride per
// dimension of the grid times its index.
struct Lattice {
  Shape strides;  // 0 for dimensions that do not change the place
  Shape order;    // dimensions with a stride, the largest stride first
};

// The lattice that takes each of `rows` rows; nothing if places are irregular.
std::optional<Lattice> latticeOf(llvm::ArrayRef<int64_t> places, Dims grid,
                                 int64_t rows) {
  Lattice lattice;
  int64_t step = product(grid);
  for (auto [dim, size] : llvm::enumerate(grid)) {
    step /= size;
    lattice.strides.push_back(size == 1 ? 0 : places[step] - places[0]);
    if (lattice.strides.back() != 0) lattice.order.push_back(dim);
  }
  llvm::sort(lattice.order, [&](int64_t a, int64_t b) {
    return lattice.strides[a] > lattice.strides[b];
  });
  int64_t covered = 1;
  for (int64_t dim : llvm::reverse(lattice.order)) {
    if (lattice.strides[dim] != covered) return std::nullopt;
    covered *= grid[dim];
  }
  if (covered != rows) return std::nullopt;
  for (auto [position, place] : llvm::enumerate(places)) {
    const Shape index = nn::indexAt(grid, position);
    int64_t expected = 0;
    for (auto [i, stride] : llvm::zip(index, lattice.strides))
      expected += i * stride;
    if (place != expected) return std::nullopt;
  }
  return lattice;
}

// Follows the placeholders of all NonZeros in one walk.
class Resolver {
 public:
  Resolver(mlir::Block& block, llvm::ArrayRef<Value> placeholders)
      : block_(block), e_(mlir::OpBuilder::atBlockBegin(&block)) {
    for (auto [i, value] : llvm::enumerate(placeholders)) {
      auto op = value.getDefiningOp<UnrealizedConversionCastOp>();
      nonzeros_.push_back(
          {op, Val{op.getOperand(0)},
           Placeholder{value, Shape(shapeOf(op.getOperand(0)))}});
      rows_[value] = {i, 1};
    }
  }

  LogicalResult run() {
    for (Operation& op : llvm::make_early_inc_range(block_)) {
      llvm::SmallVector<size_t> found;
      for (Value operand : op.getOperands())
        if (auto rows = rows_.find(operand); rows != rows_.end())
          found.push_back(rows->second.nonzero);
      if (found.empty()) continue;
      current_ = &nonzeros_[found.front()];
      e_.start(op.getLoc());
      e_.builder().setInsertionPoint(&op);
      if (!llvm::all_equal(found))
        return refuse(&op, "rows chosen by two of them");
      if (llvm::failed(follow(&op)) || e_.failed()) return failure();
    }
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block_)))
      if (!mlir::isa<UnrealizedConversionCastOp>(op) &&
          mlir::isOpTriviallyDead(&op))
        op.erase();
    for (NonZero& nonzero : nonzeros_) {
      current_ = &nonzero;
      if (!nonzero.op.use_empty()) replaceByNumbers();
      nonzero.op.erase();
    }
    return success();
  }

 private:
  struct NonZero {
    UnrealizedConversionCastOp op;
    Val mask;
    Placeholder placeholder;
  };
  // The dimension of a value that has the rows of a NonZero.
  struct Rows {
    size_t nonzero;
    int64_t dim;
  };

  int64_t dimOf(Value value) const {
    auto found = rows_.find(value);
    return found == rows_.end() ? -1 : found->second.dim;
  }
  void setDim(Value value, int64_t dim) {
    rows_[value] = {static_cast<size_t>(current_ - nonzeros_.data()), dim};
  }
  const Shape& grid() const { return current_->placeholder.grid; }
  int64_t count() const { return current_->placeholder.count(); }

  LogicalResult refuse(Operation* op, const llvm::Twine& found) {
    mlir::InFlightDiagnostic error = op->emitError();
    error << "expected rows chosen by NonZero to reach only operations on rows "
             "separately, and a ScatterND or ScatterElements that adds them "
             "up: shapes are static, and which rows are chosen depends on the "
             "model's inputs; found "
          << found;
    error.attachNote(current_->op->getLoc()) << "chosen here";
    return error;
  }

  LogicalResult follow(Operation* op) {
    if (auto gather = mlir::dyn_cast<nn::GatherOp>(op);
        gather && dimOf(gather.getInput()) < 0)
      return followGather(gather);
    if (auto scatter = mlir::dyn_cast<nn::ScatterOp>(op))
      return followScatter(scatter);
    if (op->hasTrait<mlir::OpTrait::IsTerminator>())
      return refuse(op, "an output of the model");
    if (op->getNumResults() != 1)
      return refuse(op, "'" + op->getName().getStringRef() + "'");
    const int64_t dim = resultDim(op);
    if (dim < 0)
      return refuse(op, "'" + op->getName().getStringRef() +
                            "', which mixes rows or needs their number");
    setDim(op->getResult(0), dim);
    return success();
  }

  // The dimension of rows in the result of an operation on rows separately;
  // else -1.
  int64_t resultDim(Operation* op) const {
    if (op->hasTrait<mlir::OpTrait::Elementwise>()) {
      int64_t dim = -1;
      for (Value operand : op->getOperands()) {
        const int64_t own = dimOf(operand);
        if (own < 0) continue;
        if (dim >= 0 && dim != own) return -1;
        dim = own;
      }
      return dim;
    }
    const int64_t dim = dimOf(op->getOperand(0));
    if (auto dot = mlir::dyn_cast<nn::DotGeneralOp>(op))
      return dim >= 0 && dimOf(dot.getRhs()) < 0 ? dotDim(dot, dim) : -1;
    if (auto concat = mlir::dyn_cast<nn::ConcatOp>(op)) {
      int64_t common = -1;
      for (Value part : concat.getInputs()) {
        const int64_t own = dimOf(part);
        if (own >= 0 && common >= 0 && own != common) return -1;
        common = std::max(common, own);
      }
      return static_cast<int64_t>(concat.getAxis()) == common ? -1 : common;
    }
    if (dim < 0) return -1;
    const Dims shape = shapeOf(op->getOperand(0)),
               result = shapeOf(op->getResult(0));
    if (mlir::isa<nn::ReshapeOp>(op)) return reshapedDim(shape, dim, result);
    if (auto transpose = mlir::dyn_cast<nn::TransposeOp>(op))
      return llvm::find(transpose.getPerm(), dim) - transpose.getPerm().begin();
    if (auto broadcast = mlir::dyn_cast<nn::BroadcastOp>(op))
      return result[broadcast.getDims()[dim]] == shape[dim]
                 ? broadcast.getDims()[dim]
                 : -1;
    if (auto slice = mlir::dyn_cast<nn::SliceOp>(op))
      return result[dim] == shape[dim] && slice.getStrides()[dim] == 1 ? dim
                                                                       : -1;
    if (auto softmax = mlir::dyn_cast<nn::SoftmaxOp>(op))
      return static_cast<int64_t>(softmax.getAxis()) == dim ? -1 : dim;
    if (auto reduce = mlir::dyn_cast<nn::ReduceOp>(op))
      return llvm::is_contained(reduce.getDims(), dim)
                 ? -1
                 : dim - llvm::count_if(reduce.getDims(),
                                        [&](int64_t d) { return d < dim; });
    return -1;
  }

  // Rows are free in the left operand.
  static int64_t dotDim(nn::DotGeneralOp dot, int64_t dim) {
    if (llvm::is_contained(dot.getLhsBatch(), dim) ||
        llvm::is_contained(dot.getLhsContract(), dim))
      return -1;
    int64_t result = dot.getLhsBatch().size();
    for (int64_t i = 0; i < dim; ++i)
      if (!llvm::is_contained(dot.getLhsBatch(), i) &&
          !llvm::is_contained(dot.getLhsContract(), i))
        ++result;
    return result;
  }

  // Place of each chosen row among the rows of `input`, which are its
  // dimensions `axes`, merged. Nothing if it depends on more than the row.
  std::optional<std::vector<int64_t>> places(Value indices, Dims axes,
                                             Value input) const {
    const int64_t dim = dimOf(indices), last = shapeOf(indices).size() - 1;
    if (dim < 0 || dim == last) return std::nullopt;
    Shape index(last + 1, kAny);
    index[dim] = kRunning;
    std::vector<int64_t> result(count(), 0);
    for (auto [i, axis] : llvm::enumerate(axes)) {
      index[last] = i;
      auto component =
          indexValues(indices, index, count(), current_->placeholder);
      const int64_t size = shapeOf(input)[axis];
      if (!component) return std::nullopt;
      for (auto [place, number] : llvm::zip(result, *component)) {
        if (number < 0 || number >= size) return std::nullopt;
        place = place * size + number;
      }
    }
    return result;
  }

  LogicalResult followGather(nn::GatherOp gather) {
    const Val input = {gather.getInput()};
    const Dims axes = gather.getAxes(), indices = shapeOf(gather.getIndices());
    const int64_t dim = dimOf(gather.getIndices()), rows = count();
    auto found = gather.getBatchDims() == 0
                     ? places(gather.getIndices(), axes, input.value)
                     : std::nullopt;
    if (!found || product(indices.drop_back()) != rows)
      return refuse(gather, "indices that are more than the chosen ones");
    auto [perm, rest] = axesFirst(axes, input);
    const int64_t count = input.size() / std::max<int64_t>(product(rest), 1);
    const auto lattice = latticeOf(*found, grid(), count);
    Val taken = e_.transpose(input, perm);
    Shape flat = {count};
    llvm::append_range(flat, rest);
    if (lattice) {
      taken = spread(taken, *lattice, rest);
    } else {
      taken =
          e_.gather(e_.reshape(taken, flat), e_.ints(*found, {rows, 1}), {0});
    }
    Val result = e_.reshape(taken, shapeOf(gather.getResult()));
    // Other uses of the input are not chosen rows.
    if (result.value == input.value)
      result.value = nn::ReshapeOp::create(e_.builder(), gather.getLoc(),
                                           input.type(), input.value);
    setDim(result.value, dim);
    gather.getResult().replaceAllUsesWith(result.value);
    gather.erase();
    return success();
  }

  // The permutation that puts `axes` first, and the sizes of the other
  // dimensions.
  static std::pair<Shape, Shape> axesFirst(Dims axes, Val x) {
    std::pair<Shape, Shape> result = {Shape(axes), {}};
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (llvm::is_contained(axes, i)) continue;
      result.first.push_back(i);
      result.second.push_back(x.dim(i));
    }
    return result;
  }

  // Sizes of the lattice's dimensions, in order, then `rest`.
  Shape sizesOf(const Lattice& lattice, Dims rest) const {
    Shape sizes;
    for (int64_t dim : lattice.order) sizes.push_back(grid()[dim]);
    llvm::append_range(sizes, rest);
    return sizes;
  }

  // The lattice's dimensions of the grid, ascending, and the
  // permutation of a tensor [lattice..., rest...] to this order.
  static std::pair<Shape, Shape> gridOrder(const Lattice& lattice,
                                           size_t rest) {
    Shape dims = lattice.order, perm;
    llvm::sort(dims);
    for (int64_t dim : dims)
      perm.push_back(llvm::find(lattice.order, dim) - lattice.order.begin());
    for (size_t i = 0; i < rest; ++i) perm.push_back(dims.size() + i);
    return {dims, perm};
  }

  // Rows [n, rest...] at the places of the grid's elements: [grid..., rest...].
  Val spread(Val rows, const Lattice& lattice, Dims rest) {
    auto [dims, perm] = gridOrder(lattice, rest.size());
    const Val sorted =
        e_.transpose(e_.reshape(rows, sizesOf(lattice, rest)), perm);
    Shape shape = grid();
    for (int64_t size : rest) {
      dims.push_back(shape.size());
      shape.push_back(size);
    }
    return e_.broadcastDims(sorted, shape, dims);
  }

  LogicalResult followScatter(nn::ScatterOp scatter) {
    const Val input = {scatter.getInput()};
    Shape axes(scatter.getAxes());
    if (dimOf(input.value) >= 0 || dimOf(scatter.getUpdates()) < 0 ||
        scatter.getBatchDims() != 0)
      return refuse(scatter, "a scatter into these rows");
    mlir::DenseElementsAttr start;
    const bool is_sum =
        scatter.getKind() == nn::ScatterKind::add ||
        // Exporters write index_add as a sum with rows put into zeros.
        (scatter.getKind() == nn::ScatterKind::set &&
         mlir::matchPattern(input.value, mlir::m_Constant(&start)) &&
         start.isSplat() && mlir::isa<mlir::FloatType>(input.element()) &&
         start.getSplatValue<llvm::APFloat>().isZero());
    if (!is_sum) return refuse(scatter, "a scatter that does not add them");
    const int64_t depth = dropOwnIndices(scatter, axes);
    auto found =
        places(scatter.getIndices(), Dims(axes).take_front(depth), input.value);
    if (!found) return refuse(scatter, "indices that are more than the chosen");
    axes.truncate(depth);
    auto [perm, rest] = axesFirst(axes, input);
    Val updates = {scatter.getUpdates()};
    Shape shape = grid();
    llvm::append_range(shape, rest);
    if (updates.size() != product(shape) ||
        reshapedRows(updates, dimOf(updates.value)) != product(rest))
      return refuse(scatter, "updates of more than the chosen rows");
    updates = e_.reshape(updates, shape);
    const Val chosen = current_->mask.isBool()
                           ? current_->mask
                           : e_.compare(Compare::ne, current_->mask, 0.0);
    updates = e_.select(e_.broadcastDims(chosen, shape, countUp(grid().size())),
                        updates, e_.splatLike(0, updates));
    const int64_t count = input.size() / std::max<int64_t>(product(rest), 1);
    const Val sum = addUp(updates, *found, count, rest);
    Shape sorted;
    for (int64_t dim : perm) sorted.push_back(input.dim(dim));
    const Val result =
        e_.add(input, e_.transpose(e_.reshape(sum, sorted),
                                   builder::inversePermutation(perm)));
    scatter.getResult().replaceAllUsesWith(result.value);
    scatter.erase();
    return success();
  }

  // The number of elements per row of a tensor with rows first, after
  // dimensions of size 1; else -1.
  static int64_t reshapedRows(Val x, int64_t dim) {
    if (product(x.shape().take_front(dim)) != 1) return -1;
    return product(x.shape().drop_front(dim + 1));
  }

  // ScatterElements has an index for every dimension. Returns the number of
  // axes before those whose index is the element's own.
  int64_t dropOwnIndices(nn::ScatterOp scatter, Dims axes) const {
    const Dims indices = shapeOf(scatter.getIndices());
    const int64_t last = indices.size() - 1;
    int64_t depth = axes.size();
    if (depth != last || !llvm::equal(axes, countUp(depth))) return depth;
    while (depth > 1 && countsUp(scatter.getIndices(), depth - 1) &&
           indices[depth - 1] == shapeOf(scatter.getInput())[depth - 1])
      --depth;
    return depth;
  }

  // True if component `dim` of an index vector is its index in dimension `dim`.
  bool countsUp(Value indices, int64_t dim) const {
    if (dimOf(indices) == dim) return false;
    const Dims shape = shapeOf(indices);
    Shape index(shape.size(), kAny);
    index[dim] = kRunning;
    index.back() = dim;
    const auto values =
        indexValues(indices, index, shape[dim], current_->placeholder);
    return values &&
           llvm::equal(*values, countUp(static_cast<int64_t>(values->size())));
  }

  // The sum of updates [grid..., rest...] per place: [n, rest...].
  Val addUp(Val updates, llvm::ArrayRef<int64_t> found, int64_t size,
            Dims rest) {
    Shape flat = {size};
    llvm::append_range(flat, rest);
    const auto lattice = latticeOf(found, grid(), size);
    if (!lattice) {
      Shape rows = {count()};
      llvm::append_range(rows, rest);
      return e_.scatter(e_.splat(0, updates.elementType(), flat),
                        e_.ints(found, {count(), 1}), e_.reshape(updates, rows),
                        {0}, nn::ScatterKind::add);
    }
    auto [dims, perm] = gridOrder(*lattice, rest.size());
    Shape others;
    for (int64_t i = 0; i < static_cast<int64_t>(grid().size()); ++i)
      if (!llvm::is_contained(dims, i)) others.push_back(i);
    const Val sum = others.empty()
                        ? updates
                        : e_.reduce(nn::ReduceKind::sum, updates, others,
                                    /*keep_dims=*/false);
    return e_.reshape(e_.transpose(sum, builder::inversePermutation(perm)),
                      flat);
  }

  // For values that are computed from indices, e.g. positions.
  void replaceByNumbers() {
    e_.start(current_->op.getLoc());
    e_.builder().setInsertionPoint(current_->op);
    Shape numbers;
    const int64_t rank = grid().size(), elements = count();
    for (int64_t dim = 0; dim < rank; ++dim)
      for (int64_t i = 0; i < elements; ++i)
        numbers.push_back(nn::indexAt(grid(), i)[dim]);
    current_->op.getResult(0).replaceAllUsesWith(
        e_.ints(numbers, {rank, elements}).value);
  }

  mlir::Block& block_;
  Emitter e_;
  std::vector<NonZero> nonzeros_;
  NonZero* current_ = nullptr;  // whose rows the operation reads
  llvm::DenseMap<Value, Rows> rows_;
};

}  // namespace

Val ChosenRows::choose(Emitter& e, Val mask) {
  const auto type = e.tensor({mask.rank(), mask.size()}, e.i64());
  auto op = UnrealizedConversionCastOp::create(e.builder(), e.loc(), type,
                                               mask.value);
  masks_.push_back(op.getResult(0));
  known_[masks_.back()] = true;
  return {masks_.back()};
}

bool ChosenRows::isChosen(Value value) {
  if (empty()) return false;
  auto [known, is_new] = known_.try_emplace(value, false);
  if (!is_new) return known->second;
  Operation* op = value.getDefiningOp();
  if (!op || mlir::isa<nn::ScatterOp>(op)) return false;
  const bool found =
      llvm::any_of(op->getOperands(), [&](Value v) { return isChosen(v); });
  known_[value] = found;
  return found;
}

LogicalResult ChosenRows::resolve() {
  if (empty()) return success();
  const LogicalResult result =
      Resolver(*masks_.front().getParentBlock(), masks_).run();
  masks_.clear();
  known_.clear();
  return result;
}

}  // namespace partita::onnx
