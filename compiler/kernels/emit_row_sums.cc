// Walks rows once. If the kernel reduces rows, a team walks along each; sums
// stay in scratch, where each thread has its own columns. Else each thread
// walks down a few columns and keeps their sums in registers.
#include "compiler/kernels/emit_row_sums.h"

#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/reduction_marks.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

using namespace mlir;

namespace {

int64_t sizeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

// The marked sum of blocks of rows that `value` is: nn.reduce of one dimension
// of a reshaped tensor.
nn::ReduceOp sumOfRows(Value value) {
  auto reduce = value.getDefiningOp<nn::ReduceOp>();
  return reduce &&
                 (reduce->hasAttr(kRowSumsAttr) ||
                  reduce->hasAttr(kColumnSumsAttr)) &&
                 reduce.getKind() == nn::ReduceKind::sum &&
                 reduce.getDims().size() == 1 &&
                 reduce.getInput().getDefiningOp<nn::ReshapeOp>()
             ? reduce
             : nullptr;
}

class RowSumsEmitter {
 public:
  RowSumsEmitter(Emitter& emitter, const RowSums& kernel)
      : emitter_(emitter),
        kernel_(kernel),
        chunk_(std::min(kernel.width, emitter.nativeLanes() * emitter.team())) {
    for (const Output& sum : kernel.sums)
      element_types_.push_back(emitter.computeType(
          cast<RankedTensorType>(sum.value.getType()).getElementType()));
    const auto reduces = [&](const Output& output) {
      return emitter.reductionsBehind(output.value) > 0;
    };
    along_rows_ = llvm::any_of(kernel.elements, reduces) ||
                  llvm::any_of(kernel.sums, reduces);
    if (!along_rows_) return;
    // A masked remainder is stored whole.
    const int64_t padding =
        kernel.width % emitter.nativeLanes() == 0 ? 0 : emitter.nativeLanes();
    for (Type type : element_types_)
      accumulators_.push_back(emitter.scratch(type, kernel.width + padding));
  }

  int64_t range() const { return kernel_.blocks * chunks(); }

  LogicalResult emitItem(const Symbol* item) {
    if (along_rows_) return emitBlock(item);
    auto [block, chunk] = emitter_.split(Index(item), chunks());
    return emitColumns(block, chunk);
  }

 private:
  using Column = llvm::function_ref<LogicalResult(const Symbol*)>;

  int64_t chunks() const {
    return along_rows_ ? 1 : llvm::divideCeil(kernel_.width, chunk_);
  }

  // Columns of a block, one chunk of each row.
  LogicalResult emitColumns(const Index& block, const Index& chunk) {
    ImplicitLocOpBuilder& builder = emitter_.builder();
    const auto number = [&](const Index& index) {
      return emitter_.number(index, builder.getIndexType()).value;
    };
    Value begin = number(chunk * chunk_),
          end = number(chunk * chunk_ + Index(chunk_));
    if (kernel_.width % chunk_ != 0) end = emitter_.smaller(end, kernel_.width);
    return emitter_.laneLoop(
        begin, end, kernel_.width, chunk_, emitter_.nativeLanes(), {},
        [&](const Symbol* column, ValueRange) -> FailureOr<Values> {
          if (failed(emitColumn(block, column))) return failure();
          return Values();
        });
  }

  LogicalResult emitColumn(const Index& block, const Symbol* column) {
    Values zeros;
    for (Type type : element_types_)
      zeros.push_back(emitter_.constant(type, 0, column->lanes));
    FailureOr<Values> sums = emitter_.loop(
        kernel_.rows, zeros,
        [&](const Symbol* row, ValueRange before) -> FailureOr<Values> {
          FailureOr<SmallVector<Lanes>> addends =
              emitElements((block * kernel_.rows + Index(row)) * kernel_.width +
                           Index(column));
          if (failed(addends)) return failure();
          Values after;
          for (auto [sum, addend] : llvm::zip_equal(before, *addends))
            after.push_back(combine(emitter_, nn::ReduceKind::sum, sum,
                                    emitter_.splat(addend, column->lanes)));
          return after;
        });
    if (failed(sums)) return failure();
    for (auto [output, sum] : llvm::zip_equal(kernel_.sums, *sums))
      emitter_.store(output.buffer, block * kernel_.width + Index(column),
                     {sum, column->lanes});
    return success();
  }

  LogicalResult emitBlock(const Symbol* block) {
    const auto clear = [&](const Symbol* column) -> LogicalResult {
      for (auto [type, accumulator] :
           llvm::zip_equal(element_types_, accumulators_))
        emitter_.store(
            accumulator, Index(column),
            {emitter_.constant(type, 0, column->lanes), column->lanes});
      return success();
    };
    if (failed(columns(clear))) return failure();
    auto rows = emitter_.loop(
        kernel_.rows, {},
        [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
          const Index begin =
              (Index(block) * kernel_.rows + Index(row)) * kernel_.width;
          if (failed(columns([&](const Symbol* column) {
                return addElements(begin + Index(column), column);
              })))
            return failure();
          return Values();
        });
    if (failed(rows)) return failure();
    return columns([&](const Symbol* column) -> LogicalResult {
      for (auto [sum, accumulator] :
           llvm::zip_equal(kernel_.sums, accumulators_))
        emitter_.store(sum.buffer, Index(block) * kernel_.width + Index(column),
                       emitter_.load(accumulator, Index(column)));
      return success();
    });
  }

  LogicalResult columns(Column body) {
    return emitter_.laneLoop(
        kernel_.width, emitter_.nativeLanes(), {},
        [&](const Symbol* column, ValueRange) -> FailureOr<Values> {
          if (failed(body(column))) return failure();
          return Values();
        });
  }

  FailureOr<Lanes> elementOf(const Output& output, const Index& position) {
    return emitter_.element(
        output.value,
        emitter_.delinearize(
            position,
            cast<RankedTensorType>(output.value.getType()).getShape()));
  }

  // Stores the elements at a position and returns the addends there.
  FailureOr<SmallVector<Lanes>> emitElements(const Index& position) {
    SmallVector<Lanes> elements, addends;
    for (const Output& output : kernel_.elements) {
      FailureOr<Lanes> element = elementOf(output, position);
      if (failed(element)) return failure();
      elements.push_back(*element);
    }
    for (const Output& sum : kernel_.sums) {
      FailureOr<Lanes> addend = elementOf(sum, position);
      if (failed(addend)) return failure();
      addends.push_back(*addend);
    }
    for (auto [output, element] : llvm::zip_equal(kernel_.elements, elements))
      emitter_.store(output.buffer, position, element);
    return addends;
  }

  LogicalResult addElements(const Index& position, const Symbol* column) {
    FailureOr<SmallVector<Lanes>> addends = emitElements(position);
    if (failed(addends)) return failure();
    for (auto [accumulator, addend] :
         llvm::zip_equal(accumulators_, *addends)) {
      const Lanes before = emitter_.load(accumulator, Index(column));
      const Value sum = combine(emitter_, nn::ReduceKind::sum, before.value,
                                emitter_.splat(addend, column->lanes));
      emitter_.store(accumulator, Index(column), {sum, column->lanes});
    }
    return success();
  }

  Emitter& emitter_;
  const RowSums& kernel_;
  const int64_t chunk_;  // elements of a row in one item, in columns
  bool along_rows_ = false;
  SmallVector<Type> element_types_;
  SmallVector<Buffer> accumulators_;
};

}  // namespace

std::optional<RowSums> findRowSums(ArrayRef<Output> outputs) {
  RowSums kernel;
  for (const Output& output : outputs) {
    nn::ReduceOp reduce = sumOfRows(output.value);
    if (!reduce) {
      kernel.elements.push_back(output);
      continue;
    }
    const ArrayRef<int64_t> shape =
        cast<RankedTensorType>(reduce.getInput().getType()).getShape();
    const int64_t dim = reduce.getDims()[0], rows = shape[dim],
                  blocks = product(shape.take_front(dim)),
                  width = product(shape.drop_front(dim + 1));
    if (!kernel.sums.empty() &&
        (rows != kernel.rows || blocks != kernel.blocks ||
         width != kernel.width))
      return std::nullopt;
    kernel.blocks = blocks, kernel.rows = rows, kernel.width = width;
    Output sum = output;
    sum.value = reduce.getInput().getDefiningOp<nn::ReshapeOp>().getInput();
    kernel.sums.push_back(sum);
  }
  if (kernel.sums.empty() || kernel.elements.empty() || kernel.width == 0)
    return std::nullopt;
  const int64_t size = kernel.blocks * kernel.rows * kernel.width;
  for (const Output& output : kernel.elements)
    if (sizeOf(output.value) != size) return std::nullopt;
  return kernel;
}

FailureOr<int64_t> emitRowSums(Emitter& emitter, const RowSums& kernel,
                               Value begin, Value end) {
  RowSumsEmitter rows(emitter, kernel);
  auto items =
      emitter.loop(begin, end, rows.range(), {},
                   [&](const Symbol* item, ValueRange) -> FailureOr<Values> {
                     if (failed(rows.emitItem(item))) return failure();
                     return Values();
                   });
  if (failed(items)) return failure();
  return rows.range();
}

}  // namespace partita::kernels
