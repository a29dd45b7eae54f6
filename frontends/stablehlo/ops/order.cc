// Sorting and extremes: what a comparator or reducer does is found by running
// it on constants.
#include <cmath>
#include <optional>

#include "frontends/builder/indexing.h"
#include "frontends/builder/reduction.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// The results of a region on constants, as numbers. Nothing if one of them is
// not a constant.
std::optional<llvm::SmallVector<double>> evaluate(
    OpContext& n, unsigned region, llvm::ArrayRef<double> numbers,
    llvm::ArrayRef<ElementType> types) {
  Values arguments;
  for (auto [number, type] : llvm::zip(numbers, types))
    arguments.push_back(n.e.splat(number, type));
  llvm::SmallVector<double> results;
  for (Val value : n.region(region, arguments)) {
    const auto constant = value.constant();
    if (!constant || constant.getNumElements() != 1) return std::nullopt;
    if (value.isFloat()) {
      llvm::APFloat number = *constant.getValues<llvm::APFloat>().begin();
      bool loses;
      number.convert(llvm::APFloat::IEEEdouble(),
                     llvm::APFloat::rmNearestTiesToEven, &loses);
      results.push_back(number.convertToDouble());
    } else {
      const llvm::APInt number = *constant.getValues<llvm::APInt>().begin();
      results.push_back(value.is_unsigned || value.isBool()
                            ? static_cast<double>(number.getZExtValue())
                            : static_cast<double>(number.getSExtValue()));
    }
  }
  if (n.failed()) return std::nullopt;
  return results;
}

// A value and its index.
struct Entry {
  double value, index;
};

// The entry that an argmax or argmin keeps: the extreme one, NaN before all,
// and the lower index of equal ones.
Entry keptOf(Entry a, Entry b, bool is_max) {
  if (a.index > b.index) std::swap(a, b);
  if (std::isnan(a.value)) return a;
  if (std::isnan(b.value)) return b;
  return (is_max ? b.value > a.value : b.value < a.value) ? b : a;
}

bool sameNumber(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

bool importArgReduction(OpContext& n, int64_t dim) {
  const Val x = n.in(0), index = n.in(1);
  const ElementType types[] = {x.elementType(), index.elementType(),
                               x.elementType(), index.elementType()};
  if (index.isFloat()) return false;
  llvm::SmallVector<double> values = {0, 1};
  if (!x.isBool()) values.append({2, 5});
  if (x.isFloat()) values.append({-1, NAN, -INFINITY, INFINITY});
  bool is_max = true, is_min = true;
  for (double a : values) {
    for (double b : values) {
      for (bool is_first : {true, false}) {
        // Which of two NaNs is kept depends on the order of the reduction.
        if (std::isnan(a) && std::isnan(b)) continue;
        const Entry left = {a, is_first ? 3.0 : 7.0},
                    right = {b, is_first ? 7.0 : 3.0};
        const auto found = evaluate(
            n, 0, {left.value, left.index, right.value, right.index}, types);
        if (!found || found->size() != 2) return false;
        const auto agrees = [&](bool max) {
          const Entry kept = keptOf(left, right, max);
          return sameNumber((*found)[0], kept.value) &&
                 (*found)[1] == kept.index;
        };
        is_max &= agrees(true);
        is_min &= agrees(false);
      }
    }
  }
  if (is_max == is_min) return false;
  // argExtreme starts at the first element, so the initial values must be ones
  // that every element wins against.
  const auto kind = is_max ? nn::ReduceKind::max : nn::ReduceKind::min;
  const auto isEqual = [](Val init, Val to) {
    const auto found = init.constant(), expected = to.constant();
    return found && expected && found == expected;
  };
  const Val first = n.in(2), first_index = n.in(3);
  if (n.failed()) return false;
  if (!isEqual(first, n.e.neutral(kind, x.elementType())) ||
      !isEqual(first_index, n.e.splat(0, index.elementType()))) {
    n.unsupported(llvm::Twine(is_max ? "an argmax" : "an argmin") +
                  " with initial values other than the " +
                  (is_max ? "lowest" : "highest") + " value and index 0");
    return false;
  }
  // Only indices along the dimension: then a position says all.
  const Val counted = n.e.iota(index.shape(), dim, index.element());
  const auto given = index.constant(), expected = counted.constant();
  auto iota = index.value.getDefiningOp<nn::IotaOp>();
  const bool counts = (iota && static_cast<int64_t>(iota.getDim()) == dim) ||
                      (given && expected && given == expected);
  if (!counts) return false;
  const Val compared = x.isBool() ? n.e.cast(x, n.e.builder().getI32Type()) : x;
  const Val position = builder::argExtreme(n.e, compared, dim, is_max, false);
  Shape kept(x.shape());
  kept.erase(kept.begin() + dim);
  // NaN equals nothing, so argExtreme gives the size for it; its place is found
  // by itself.
  Val place = position;
  if (x.isFloat()) {
    const Val is_nan = n.e.compare(Compare::ne, x, x);
    const Val places =
        n.e.select(is_nan, n.e.iota(x.shape(), dim, n.e.i64()),
                   n.e.splat(static_cast<double>(x.dim(dim)), n.e.i64()));
    place = n.e.minimum(position,
                        n.e.reduce(nn::ReduceKind::min, places, {dim}, true));
  }
  n.out(0, n.e.cast(n.e.reduce(kind, compared, {dim}, false), x.elementType()));
  n.out(1, n.e.cast(n.e.reshape(place, kept), index.elementType()));
  return true;
}

namespace {

// The order of a comparator: the first `keys` operands in turn, each upwards or
// each downwards.
struct Order {
  size_t keys = 0;  // 0: another comparator
  bool descends = false;
};

// Tries pairs of tuples that differ in one or two of the first operands.
Order orderOf(OpContext& n, const Values& inputs) {
  llvm::SmallVector<ElementType> types;
  for (Val input : inputs) types.append(2, input.elementType());
  // The first results for each pair of tuples of 0 and 1.
  constexpr size_t kMaxKeys = 3;
  const size_t tried = std::min(inputs.size(), kMaxKeys + 1);
  const unsigned tuples = 1u << tried;
  llvm::SmallVector<bool> less(tuples * tuples);
  for (unsigned a = 0; a < tuples; ++a) {
    for (unsigned b = 0; b < tuples; ++b) {
      llvm::SmallVector<double> numbers;
      for (size_t i = 0; i < inputs.size(); ++i)
        numbers.append({i < tried ? double(a >> i & 1) : 0.0,
                        i < tried ? double(b >> i & 1) : 1.0});
      const auto found = evaluate(n, 0, numbers, types);
      if (!found || found->size() != 1) return {};
      less[a * tuples + b] = (*found)[0] != 0;
    }
  }
  for (size_t keys = 1; keys <= std::min(inputs.size(), kMaxKeys); ++keys) {
    for (bool descends : {false, true}) {
      bool fits = true;
      for (unsigned a = 0; fits && a < tuples; ++a)
        for (unsigned b = 0; fits && b < tuples; ++b) {
          bool expected = false;
          for (size_t i = 0; i < keys; ++i) {
            const bool x = a >> i & 1, y = b >> i & 1;
            if (x == y) continue;
            expected = descends ? x : y;
            break;
          }
          fits = less[a * tuples + b] == expected;
        }
      if (fits) return {keys, descends};
    }
  }
  return {};
}

Val flipTop(Emitter& e, Val x) {
  const auto top = mlir::DenseElementsAttr::get(
      e.tensor({}, x.element()),
      llvm::APInt::getSignMask(x.element().getIntOrFloatBitWidth()));
  return {e.bitXor({x.value}, e.constant(top)).value};
}

// A value whose order as signed integers or floats is that of `x`.
Val sortable(Emitter& e, Val x) {
  if (x.isBool()) return e.cast(x, e.builder().getI32Type());
  return x.is_unsigned ? flipTop(e, x) : x;
}

// The inverse, for a value that was of this type.
Val fromSortable(Emitter& e, Val x, ElementType type) {
  if (type.type.isInteger(1)) return e.cast(x, type);
  return type.is_unsigned ? Val{flipTop(e, x).value, true} : x;
}

}  // namespace

Val importSort(OpContext& n) {
  const Values inputs = n.all();
  if (n.failed()) return {};
  if (inputs.empty()) return n.error("expected operands");
  int64_t dim = n.integer("dimension");
  const int64_t rank = inputs[0].rank();
  if (dim < 0) dim += rank;
  if (n.failed()) return {};
  if (dim < 0 || dim >= rank)
    return n.error("expected a dimension of the operands");
  for (Val input : inputs)
    if (input.shape() != inputs[0].shape())
      return n.error("expected operands of one shape");
  if (inputs[0].size() == 0) {
    n.outAll(inputs);
    return {};
  }
  const Order order = orderOf(n, inputs);
  if (n.failed()) return {};
  if (order.keys == 0)
    return n.unsupported(
        "a comparator other than less or greater than of the first operands");
  // The last key first: a sort keeps the order of equal elements.
  Val sorted, places;
  for (size_t k = order.keys; k-- > 0;) {
    Val key = sortable(n.e, inputs[k]);
    if (places) key = builder::gatherElements(n.e, key, places, dim);
    const auto [values, next] =
        builder::topK(n.e, key, key.dim(dim), dim, order.descends);
    sorted = values;
    places = places ? builder::gatherElements(n.e, places, next, dim) : next;
  }
  for (auto [i, input] : llvm::enumerate(inputs)) {
    const bool is_sorted =
        i == 0 && sorted.elementType() == input.elementType();
    n.out(
        static_cast<unsigned>(i),
        is_sorted ? sorted : builder::gatherElements(n.e, input, places, dim));
  }
  return {};
}

Val importTopK(OpContext& n) {
  const Val x = n.in(0);
  const ValueType values_type = n.result(0), places_type = n.result(1);
  if (n.failed()) return {};
  const int64_t last = x.rank() - 1;
  if (last < 0 || values_type.shape.empty() ||
      values_type.shape.back() > x.dim(last) || values_type.shape.back() < 1)
    return n.error("expected 1 <= k <= the last size");
  const auto [values, places] =
      builder::topK(n.e, sortable(n.e, x), values_type.shape.back(), last,
                    /*largest=*/true);
  n.out(0, fromSortable(n.e, values, x.elementType()));
  n.out(1, n.e.cast(places, places_type.element));
  return {};
}

}  // namespace partita::stablehlo
