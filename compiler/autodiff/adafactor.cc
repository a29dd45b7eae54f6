// Implements the formulas of the header.
#include "compiler/autodiff/adafactor.h"

namespace partita::autodiff {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Value;

constexpr double kTiny = 1e-30;

// Returns, for each dimension of the model, the dimensions of `own` that form
// it. Returns nullopt if a dimension of `own` spans two of them.
std::optional<SmallVector<SmallVector<int64_t>>> cut(ArrayRef<int64_t> own,
                                                     ArrayRef<int64_t> model) {
  SmallVector<SmallVector<int64_t>> pieces;
  size_t next = 0;
  for (auto [i, size] : llvm::enumerate(model)) {
    SmallVector<int64_t>& piece = pieces.emplace_back();
    int64_t product = 1;
    const auto take = [&] {
      product *= own[next];
      piece.push_back(static_cast<int64_t>(next++));
    };
    if (size == 1 && next < own.size() && own[next] == 1) take();
    while (next < own.size() && product < size) take();
    // Dimensions of size 1 that the model lacks.
    while (next < own.size() && own[next] == 1 &&
           (i + 1 == model.size() || model[i + 1] != 1))
      take();
    if (product != size) return std::nullopt;
  }
  return pieces;
}

// Returns the largest dimension except `other`; the last one on a tie.
int64_t largest(ArrayRef<int64_t> shape, int64_t other) {
  int64_t found = -1;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (static_cast<int64_t>(dim) != other &&
        (found < 0 || size >= shape[found]))
      found = static_cast<int64_t>(dim);
  return found;
}

Value mean(nn::MathBuilder& math, Value x, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= nn::MathBuilder::typeOf(x).getDimSize(dim);
  if (dims.empty()) return x;
  return math.divide(math.reduce(nn::ReduceKind::sum, x, dims),
                     static_cast<double>(count));
}

Value scaleBy(nn::MathBuilder& math, Value x, Value scalar) {
  return math.multiply(x,
                       math.broadcast(scalar, nn::MathBuilder::typeOf(x), {}));
}

Value average(nn::MathBuilder& math, Value old, Value x, Value decay) {
  Value one = math.constant(nn::MathBuilder::typeOf(decay), 1);
  return math.add(scaleBy(math, old, decay),
                  scaleBy(math, x, math.subtract(one, decay)));
}

// Renumbers `dims` for a tensor without the dimensions `gone`.
SmallVector<int64_t> countedWithout(ArrayRef<int64_t> dims,
                                    ArrayRef<int64_t> gone) {
  SmallVector<int64_t> result;
  for (int64_t dim : dims)
    result.push_back(
        dim - llvm::count_if(gone, [&](int64_t other) { return other < dim; }));
  return result;
}

}  // namespace

Factored factor(ArrayRef<int64_t> own, ArrayRef<int64_t> model) {
  Factored result;
  const int64_t one = largest(model, -1), two = largest(model, one);
  if (two < 0 || model[two] < 2) {
    result.shape.assign(own.begin(), own.end());
    return result;
  }
  const int64_t row = std::min(one, two), column = std::max(one, two);
  result.model_row = row;
  result.model_column = column;
  if (auto pieces = cut(own, model)) {
    result.shape.assign(own.begin(), own.end());
    result.rows = (*pieces)[row];
    result.columns = (*pieces)[column];
  } else {
    result.shape.assign(model.begin(), model.end());
    result.rows = {row};
    result.columns = {column};
  }
  return result;
}

Value buildAdafactorDecay(nn::MathBuilder& math, Value t) {
  Value one = math.constant(nn::MathBuilder::typeOf(t), 1);
  return math.subtract(one, math.exp(math.multiply(math.log(t), -0.8)));
}

SmallVector<Value> buildAdafactor(nn::MathBuilder& math,
                                  const Factored& factored, Value gradient,
                                  ArrayRef<Value> states, Value decay) {
  Value g = math.reshape(gradient, factored.shape);
  Value u = math.add(math.multiply(g, g), kTiny);
  SmallVector<Value> result;
  Value direction;
  if (factored.rows.empty()) {
    Value v = average(math, states[0], u, decay);
    direction = math.multiply(g, math.rsqrt(v));
    result = {v};
  } else {
    Value r = average(math, states[0], mean(math, u, factored.columns), decay);
    Value c = average(math, states[1], mean(math, u, factored.rows), decay);
    const SmallVector<int64_t> rows =
        countedWithout(factored.rows, factored.columns);
    Value center = math.spread(mean(math, r, rows), r, rows);
    direction = math.multiply(
        math.multiply(g, math.spread(math.rsqrt(math.divide(r, center)), g,
                                     factored.columns)),
        math.spread(math.rsqrt(c), g, factored.rows));
    result = {r, c};
  }
  SmallVector<int64_t> all;
  for (int64_t dim = 0; dim < nn::MathBuilder::typeOf(g).getRank(); ++dim)
    all.push_back(dim);
  Value length =
      math.sqrt(mean(math, math.multiply(direction, direction), all));
  Value one = math.constant(nn::MathBuilder::typeOf(length), 1);
  Value longer = math.compare(mlir::arith::CmpFPredicate::OGT, length, one);
  direction = scaleBy(math, direction,
                      math.divide(one, math.select(longer, length, one)));
  result.insert(
      result.begin(),
      math.reshape(direction, nn::MathBuilder::typeOf(gradient).getShape()));
  return result;
}

}  // namespace partita::autodiff
