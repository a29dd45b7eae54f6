// Constants, data movement, creation and folding. Elementwise operations are in
// emitter_elementwise.cc.
#include "frontends/builder/emitter.h"

#include "dialects/nn/fold.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

namespace partita::builder {
namespace {

// Maximum number of elements of a folded constant, and of an initializer that
// becomes a constant.
constexpr int64_t kMaxFoldedElements = 1 << 20;

mlir::DenseElementsAttr getConstant(mlir::Value value) {
  mlir::DenseElementsAttr attr;
  mlir::matchPattern(value, mlir::m_Constant(&attr));
  return attr;
}

mlir::Attribute scalarAttr(mlir::Builder& builder, double value,
                           mlir::Type type) {
  if (mlir::isa<mlir::FloatType>(type)) {
    auto semantics = &mlir::cast<mlir::FloatType>(type).getFloatSemantics();
    llvm::APFloat number(value);
    bool loses;
    number.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
    return mlir::FloatAttr::get(type, number);
  }
  // Uses APSInt because doubles represent integers only up to 2^53. The limits
  // of 64 bits saturate.
  llvm::APSInt integer(type.getIntOrFloatBitWidth(), /*isUnsigned=*/value > 0);
  bool is_exact;
  llvm::APFloat(value).convertToInteger(integer, llvm::APFloat::rmTowardZero,
                                        &is_exact);
  return builder.getIntegerAttr(type, integer);
}

}  // namespace

mlir::DenseElementsAttr Val::constant() const { return getConstant(value); }

std::string toString(Dims shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(size);
  return text + "]";
}

Shape countUp(int64_t count) {
  Shape result(count);
  for (int64_t i = 0; i < count; ++i) result[i] = i;
  return result;
}

Shape inversePermutation(Dims perm) {
  Shape result(perm.size());
  for (auto [i, dim] : llvm::enumerate(perm))
    result[dim] = static_cast<int64_t>(i);
  return result;
}

int64_t product(Dims sizes) {
  int64_t result = 1;
  for (int64_t size : sizes) result *= size;
  return result;
}

void Emitter::start(mlir::Location loc) {
  loc_ = loc;
  failed_ = false;
}

void Emitter::error(const llvm::Twine& message) {
  if (!failed_) mlir::emitError(loc_) << message;
  failed_ = true;
}

mlir::RankedTensorType Emitter::tensor(Dims shape, mlir::Type element) {
  if (!elementCount(shape)) {
    error(
        "expected sizes that are not negative and whose product is below 2^48, "
        "found " +
        toString(shape));
    return mlir::RankedTensorType::get({}, element);
  }
  return mlir::RankedTensorType::get(shape, element);
}

llvm::SmallVector<mlir::Value> Emitter::finish(mlir::Operation* op) {
  llvm::SmallVector<mlir::Value> results(op->getResults());
  // One error per node: operations that depend on it are neither verified nor
  // kept.
  if (failed_) return results;
  if (mlir::failed(mlir::verify(op, /*verifyRecursively=*/false))) {
    failed_ = true;
    for (mlir::Value& result : results) {
      auto type = mlir::cast<mlir::RankedTensorType>(result.getType());
      result = splat(0, type.getElementType(), type.getShape()).value;
    }
    op->erase();
    return results;
  }
  auto is_constant = [](mlir::Value value) {
    return static_cast<bool>(getConstant(value));
  };
  if (!llvm::all_of(op->getOperands(), is_constant)) return results;
  auto folded = nn::foldByReference(op, kMaxFoldedElements);
  if (mlir::failed(folded)) return results;
  for (auto [result, attr] : llvm::zip(results, *folded))
    result = constant(attr).value;
  op->erase();
  return results;
}

Val Emitter::constant(mlir::DenseElementsAttr attr, bool is_unsigned) {
  return {mlir::arith::ConstantOp::create(builder_, loc_, attr), is_unsigned};
}

Val Emitter::ints(Dims values) {
  return ints(values, {static_cast<int64_t>(values.size())});
}

Val Emitter::ints(Dims values, Dims shape) {
  return constant(mlir::DenseElementsAttr::get(tensor(shape, i64()), values));
}

Val Emitter::reals(llvm::ArrayRef<double> values, Dims shape,
                   mlir::Type element) {
  llvm::SmallVector<mlir::Attribute> attrs;
  for (double value : values)
    attrs.push_back(scalarAttr(builder_, value, element));
  return constant(mlir::DenseElementsAttr::get(tensor(shape, element), attrs));
}

Val Emitter::bools(const llvm::SmallVector<bool>& values, Dims shape) {
  return constant(mlir::DenseElementsAttr::get(
      tensor(shape, builder_.getI1Type()), llvm::ArrayRef<bool>(values)));
}

Val Emitter::splat(double value, ElementType element, Dims shape) {
  mlir::RankedTensorType type = tensor(shape, element.type);
  return constant(mlir::DenseElementsAttr::get(
                      type, scalarAttr(builder_, value, element.type)),
                  element.is_unsigned);
}

Val Emitter::broadcast(Val input, Dims shape) {
  int64_t added = static_cast<int64_t>(shape.size()) - input.rank();
  bool fits = added >= 0;
  for (int64_t i = 0; fits && i < input.rank(); ++i)
    fits = input.dim(i) == 1 || input.dim(i) == shape[added + i];
  if (!fits) {
    error("expected a shape that broadcasts to " + toString(shape) +
          ", found " + toString(input.shape()));
    return splat(0, input.elementType(), shape);
  }
  Shape dims;
  for (int64_t i = 0; i < input.rank(); ++i) dims.push_back(added + i);
  return broadcastDims(input, shape, dims);
}

Val Emitter::broadcastDims(Val input, Dims shape, Dims dims) {
  if (input.shape() == shape) return input;
  mlir::RankedTensorType type = tensor(shape, input.element());
  mlir::DenseElementsAttr attr = input.constant();
  if (attr && attr.isSplat() && type.getNumElements() > 0) {
    return constant(attr.resizeSplat(type), input.is_unsigned);
  }
  return {create<nn::BroadcastOp>(type, input.value, dims), input.is_unsigned};
}

Val Emitter::reshape(Val input, Dims shape) {
  if (input.shape() == shape) return input;
  std::optional<uint64_t> count = elementCount(shape);
  if (!count || *count != static_cast<uint64_t>(input.size())) {
    error("expected a shape of " + std::to_string(input.size()) +
          " elements as " + toString(input.shape()) + " has, found " +
          toString(shape));
    return splat(0, input.elementType(), count ? shape : Dims());
  }
  mlir::RankedTensorType type = tensor(shape, input.element());
  mlir::DenseElementsAttr attr = input.constant();
  if (attr) return constant(attr.reshape(type), input.is_unsigned);
  return {create<nn::ReshapeOp>(type, input.value), input.is_unsigned};
}

Val Emitter::transpose(Val input, Dims perm) {
  if (llvm::equal(perm, countUp(input.rank()))) return input;
  return {create<nn::TransposeOp>(input.value, perm), input.is_unsigned};
}

Val Emitter::slice(Val input, Dims starts, Dims sizes, Dims strides) {
  bool is_whole = sizes == input.shape();
  for (int64_t i = 0; is_whole && i < input.rank(); ++i)
    is_whole = starts[i] == 0 && strides[i] == 1;
  if (is_whole) return input;
  return {create<nn::SliceOp>(tensor(sizes, input.element()), input.value,
                              starts, strides),
          input.is_unsigned};
}

Val Emitter::sliceDim(Val input, int64_t dim, int64_t start, int64_t size,
                      int64_t stride) {
  Shape starts(input.rank(), 0), sizes(input.shape()), strides(input.rank(), 1);
  starts[dim] = start;
  sizes[dim] = size;
  strides[dim] = stride;
  return slice(input, starts, sizes, strides);
}

Val Emitter::reverse(Val input, int64_t dim) {
  return input.dim(dim) <= 1
             ? input
             : sliceDim(input, dim, input.dim(dim) - 1, input.dim(dim), -1);
}

Val Emitter::pad(Val input, Val value, Dims low, Dims high, nn::PadMode mode) {
  Shape sizes, starts, added_low, added_high, padded;
  for (int64_t i = 0; i < input.rank(); ++i) {
    int64_t cut_low = std::max<int64_t>(-low[i], 0),
            cut_high = std::max<int64_t>(-high[i], 0);
    starts.push_back(cut_low);
    sizes.push_back(input.dim(i) - cut_low - cut_high);
    added_low.push_back(std::max<int64_t>(low[i], 0));
    added_high.push_back(std::max<int64_t>(high[i], 0));
    padded.push_back(sizes[i] + added_low[i] + added_high[i]);
    if (sizes[i] < 0) {
      error("negative padding cuts off more than there is of dimension " +
            std::to_string(i));
      return input;
    }
  }
  input = slice(input, starts, sizes, Shape(input.rank(), 1));
  if (Dims(padded) == input.shape()) return input;
  return {create<nn::PadOp>(tensor(padded, input.element()), input.value,
                            value.value, added_low, added_high, mode),
          input.is_unsigned};
}

Val Emitter::concat(llvm::ArrayRef<Val> inputs, int64_t axis) {
  llvm::SmallVector<mlir::Value> values;
  Shape shape(inputs[0].shape());
  shape[axis] = 0;
  for (Val input : inputs) {
    if (input.rank() != inputs[0].rank() ||
        !(input.elementType() == inputs[0].elementType())) {
      error("expected inputs of one rank and element type to concatenate");
      return inputs[0];
    }
    shape[axis] += input.dim(axis);
    if (input.dim(axis) > 0) values.push_back(input.value);
  }
  if (values.size() == 1) return {values[0], inputs[0].is_unsigned};
  if (values.empty()) return inputs[0];
  return {
      create<nn::ConcatOp>(tensor(shape, inputs[0].element()), values, axis),
      inputs[0].is_unsigned};
}

Val Emitter::gather(Val input, Val indices, Dims axes, int64_t batch_dims) {
  mlir::RankedTensorType type =
      nn::inferGatherType(input.type(), indices.type(), axes, batch_dims);
  if (!type) {
    error("expected indices that fit the data, found shapes " +
          toString(indices.shape()) + " and " + toString(input.shape()));
    return input;
  }
  return {
      create<nn::GatherOp>(type, input.value, indices.value, axes, batch_dims),
      input.is_unsigned};
}

Val Emitter::scatter(Val input, Val indices, Val updates, Dims axes,
                     nn::ScatterKind kind, int64_t batch_dims) {
  if (updates.element() != input.element()) {
    error("expected updates of the data's element type");
    return input;
  }
  return {create<nn::ScatterOp>(input.type(), input.value, indices.value,
                                updates.value, axes, batch_dims, kind),
          input.is_unsigned};
}

Val Emitter::iota(Dims shape, int64_t dim, mlir::Type element) {
  return {create<nn::IotaOp>(tensor(shape, element), dim)};
}

Val Emitter::uniform(Val seed, Dims shape) {
  return {create<nn::RandomOp>(tensor(shape, builder_.getF32Type()),
                               nn::Distribution::uniform, seed.value)};
}

Val Emitter::wrapIndices(Val indices, int64_t size) {
  if (indices.is_unsigned) return cast(indices, i64());
  // Indices of 8 or 16 bits cannot represent every size.
  if (indices.element().getIntOrFloatBitWidth() < 32)
    indices = cast(indices, i64());
  return select(compare(Compare::lt, indices, 0.0),
                add(indices, static_cast<double>(size)), indices);
}

}  // namespace partita::builder
