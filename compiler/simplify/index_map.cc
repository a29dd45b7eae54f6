#include "compiler/simplify/index_map.h"

#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Matchers.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::SmallVector;

// Splits a digit into a slow one and a fast one of size `fast`.
std::pair<Digit, Digit> split(const Digit& digit, int64_t fast) {
  Digit slow = digit, rest = digit;
  slow.size = digit.size / fast;
  rest.size = fast;
  if (digit.symbol < 0) {
    slow.number = digit.number / fast;
    rest.number = digit.number % fast;
  } else {
    slow.stride = digit.stride * fast;
  }
  return {slow, rest};
}

// Groups digits into dimensions of these sizes; nothing if a digit cannot be
// split.
std::optional<SmallVector<Index>> group(ArrayRef<Digit> digits,
                                        ArrayRef<int64_t> shape) {
  SmallVector<Digit> rest(llvm::reverse(digits));  // the next digit is last
  SmallVector<Index> dims;
  for (int64_t size : shape) {
    Index& dim = dims.emplace_back();
    while (size != 1) {
      if (rest.empty()) return std::nullopt;
      Digit digit = rest.pop_back_val();
      if (digit.size == 0) return std::nullopt;  // no elements
      if (size % digit.size != 0) {
        if (size == 0 || digit.size % size != 0) return std::nullopt;
        const auto [slow, fast] = split(digit, digit.size / size);
        rest.push_back(fast);
        digit = slow;
      }
      size /= digit.size;
      dim.push_back(digit);
    }
  }
  if (!rest.empty()) return std::nullopt;
  return dims;
}

// The number of an index without symbols.
std::optional<int64_t> numberOf(const Index& index) {
  int64_t number = 0;
  for (const Digit& digit : index) {
    if (digit.symbol >= 0) return std::nullopt;
    number = number * digit.size + digit.number;
  }
  return number;
}

Index numberIndex(int64_t number, int64_t size) {
  if (size == 1) return {};
  Digit digit;
  digit.size = size;
  digit.number = number;
  return {digit};
}

std::optional<Access> throughSlice(const Access& access, nn::SliceOp slice) {
  Access inner = {slice.getInput(), access.dims};
  const ArrayRef<int64_t> sizes = slice.getInput().getType().getShape();
  for (auto [dim, size] : llvm::enumerate(slice.getType().getShape())) {
    const int64_t start = slice.getStarts()[dim],
                  stride = slice.getStrides()[dim];
    if (const std::optional<int64_t> number = numberOf(access.dims[dim]))
      inner.dims[dim] = numberIndex(start + *number * stride, sizes[dim]);
    else if (start != 0 || stride != 1 || size != sizes[dim])
      return std::nullopt;
  }
  return inner;
}

std::optional<Access> before(const Access& access) {
  mlir::Operation* op = access.value.getDefiningOp();
  if (auto reshape = mlir::dyn_cast_or_null<nn::ReshapeOp>(op)) {
    auto dims = group(access.digits(), reshape.getInput().getType().getShape());
    if (!dims) return std::nullopt;
    return Access{reshape.getInput(), std::move(*dims)};
  }
  if (auto transpose = mlir::dyn_cast_or_null<nn::TransposeOp>(op)) {
    Access inner = {transpose.getInput(), access.dims};
    for (auto [i, dim] : llvm::enumerate(transpose.getPerm()))
      inner.dims[dim] = access.dims[i];
    return inner;
  }
  if (auto broadcast = mlir::dyn_cast_or_null<nn::BroadcastOp>(op)) {
    Access inner = {broadcast.getInput(), {}};
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      inner.dims.push_back(broadcast.getInput().getType().getDimSize(i) == 1
                               ? Index()
                               : access.dims[dim]);
    return inner;
  }
  auto slice = mlir::dyn_cast_or_null<nn::SliceOp>(op);
  return slice ? throughSlice(access, slice) : std::nullopt;
}

// The constant that holds the element, and the element's position.
struct Place {
  mlir::DenseElementsAttr constant;
  int64_t position = 0;
};

std::optional<Place> constantAt(const Access& access) {
  Place place;
  if (!mlir::matchPattern(access.value, mlir::m_Constant(&place.constant)) ||
      place.constant.empty())
    return std::nullopt;
  if (place.constant.isSplat()) return place;
  for (auto [index, size] :
       llvm::zip(access.dims, tensorType(access.value).getShape())) {
    const std::optional<int64_t> number = numberOf(index);
    if (!number) return std::nullopt;
    place.position = place.position * size + *number;
  }
  return place;
}

}  // namespace

Index wholeRange(int symbol, int64_t size) {
  if (size == 1) return {};
  Digit digit;
  digit.symbol = symbol;
  digit.size = size;
  return {digit};
}

Index Access::digits() const {
  Index merged;
  for (const Index& index : dims) {
    for (const Digit& digit : index) {
      if (!merged.empty()) {
        Digit& last = merged.back();
        if (last.symbol == digit.symbol && digit.symbol >= 0 &&
            last.stride == digit.stride * digit.size) {
          last.stride = digit.stride;
          last.size *= digit.size;
          continue;
        }
      }
      merged.push_back(digit);
    }
  }
  return merged;
}

Access Access::operand(unsigned i) const {
  return {value.getDefiningOp()->getOperand(i), dims};
}

Access peel(Access access) {
  while (std::optional<Access> inner = before(access))
    access = std::move(*inner);
  return access;
}

std::optional<int64_t> integerAt(const Access& access) {
  const Access inner = peel(access);
  if (auto iota = inner.value.getDefiningOp<nn::IotaOp>())
    return numberOf(inner.dims[iota.getDim()]);
  const std::optional<Place> found = constantAt(inner);
  const auto type =
      found
          ? mlir::dyn_cast<mlir::IntegerType>(found->constant.getElementType())
          : mlir::IntegerType();
  if (!type) return std::nullopt;
  const llvm::APInt number =
      found->constant.getValues<llvm::APInt>()[found->position];
  return type.getWidth() == 1 ? static_cast<int64_t>(number.getZExtValue())
                              : number.getSExtValue();
}

std::optional<double> floatAt(const Access& access) {
  const std::optional<Place> found = constantAt(peel(access));
  if (!found || !mlir::isa<mlir::FloatType>(found->constant.getElementType()))
    return std::nullopt;
  llvm::APFloat number =
      found->constant.getValues<llvm::APFloat>()[found->position];
  bool lost;
  number.convert(llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  return number.convertToDouble();
}

}  // namespace partita::simplify
