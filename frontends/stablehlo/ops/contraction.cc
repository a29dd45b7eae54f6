// Matrix products and convolutions.
#include "frontends/builder/einsum.h"
#include "frontends/builder/padding.h"
#include "frontends/builder/reduction.h"
#include "frontends/builder/window.h"
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// Brings factors to one type. Products of narrow types that are summed in the
// result's type: widening the factors first gives the same sums. A result
// narrower than a float factor is rounded after the product.
bool toOneType(OpContext& n, Val& a, Val& b, ElementType type) {
  if (n.failed()) return false;
  const bool is_float = mlir::isa<mlir::FloatType>(type.type);
  if (!is_float && (a.isFloat() || b.isFloat())) {
    n.unsupported("a product of " + toString(a.elementType()) + " and " +
                  toString(b.elementType()) + " in " + toString(type));
    return false;
  }
  // A sum of booleans is true if the sum as integers is not 0.
  if (type.type.isInteger(1)) type = {n.e.builder().getI32Type()};
  if (is_float) {
    for (Val x : {a, b}) {
      if (x.element() == type.type || !x.isFloat()) continue;
      const unsigned width = x.element().getIntOrFloatBitWidth(),
                     widest = type.type.getIntOrFloatBitWidth();
      // Neither 16-bit type holds the other.
      if (width > widest)
        type = x.elementType();
      else if (width == widest)
        type = {n.e.f32()};
    }
  }
  a = n.e.cast(a, type);
  b = n.e.cast(b, type);
  return !n.failed();
}

// The dimensions of a convolution's operand in nn's order.
struct Layout {
  int64_t first, second;  // batch and features, or outputs and inputs
  Shape spatial;

  Shape perm() const {
    Shape perm = {first, second};
    perm.append(spatial.begin(), spatial.end());
    return perm;
  }
  bool isPermutation(int64_t rank) const {
    Shape sorted = perm();
    llvm::sort(sorted);
    return Dims(sorted) == Dims(countUp(rank));
  }
};

struct Convolution {
  Layout input, kernel, output;
  builder::Window window;
  Shape input_dilations;
  Shape reversed;
  int64_t groups = 1, batch_groups = 1;
};

Layout layoutOf(OpContext& n, llvm::StringRef first, llvm::StringRef second,
                llvm::StringRef spatial) {
  return {n.integer(first), n.integer(second), n.ints(spatial)};
}

bool readConvolution(OpContext& n, int64_t rank, Convolution& c) {
  c.input = layoutOf(n, "input_batch_dimension", "input_feature_dimension",
                     "input_spatial_dimensions");
  c.kernel =
      layoutOf(n, "kernel_output_feature_dimension",
               "kernel_input_feature_dimension", "kernel_spatial_dimensions");
  c.output = layoutOf(n, "output_batch_dimension", "output_feature_dimension",
                      "output_spatial_dimensions");
  const size_t spatial = rank - 2;
  const auto orDefault = [&](llvm::StringRef name, int64_t value) {
    Shape values = n.ints(name);
    if (values.empty()) values.assign(spatial, value);
    return values;
  };
  c.window.strides = orDefault("window_strides", 1);
  c.window.dilations = orDefault("rhs_dilation", 1);
  c.input_dilations = orDefault("lhs_dilation", 1);
  c.reversed = orDefault("window_reversal", 0);
  Shape padding = n.ints("padding");
  if (padding.empty()) padding.assign(2 * spatial, 0);
  c.groups = n.integer("feature_group_count");
  c.batch_groups = n.integer("batch_group_count");
  if (n.failed()) return false;
  bool fits = padding.size() == 2 * spatial &&
              c.window.strides.size() == spatial &&
              c.window.dilations.size() == spatial &&
              c.input_dilations.size() == spatial &&
              c.reversed.size() == spatial && c.groups > 0 &&
              c.batch_groups > 0 && builder::isPositive(c.window.strides) &&
              builder::isPositive(c.window.dilations) &&
              builder::isPositive(c.input_dilations);
  for (size_t i = 0; fits && i < padding.size(); ++i)
    fits = isBelow31Bits(padding[i]);
  for (const Layout* layout : {&c.input, &c.kernel, &c.output})
    fits = fits && layout->isPermutation(rank);
  if (!fits) {
    n.error(
        "expected dimension numbers that are permutations, and a window "
        "with an entry per spatial dimension");
    return false;
  }
  for (size_t i = 0; i < spatial; ++i) {
    c.window.low.push_back(padding[2 * i]);
    c.window.high.push_back(padding[2 * i + 1]);
  }
  return true;
}

// A product of the kernel with the elements of all windows: nn.conv has floats
// only.
Val convolveIntegers(Emitter& e, Val x, Val w, const builder::Window& window,
                     int64_t groups) {
  Shape result = {x.dim(0), w.dim(0)};
  for (size_t i = 0; i < window.kernel.size(); ++i)
    result.push_back(nn::windowedSize(
        x.dim(static_cast<int64_t>(i) + 2), window.kernel[i], window.strides[i],
        window.dilations[i], window.low[i], window.high[i]));
  const Val elements = builder::takeWindows(e, x, window);
  if (e.failed()) return x;
  const int64_t outputs = w.dim(0) / groups,
                inputs = product(w.shape().drop_front());
  const Val parts =
      e.reshape(elements, {x.dim(0), groups, inputs, elements.dim(2)});
  const Val kernel = e.reshape(w, {groups, outputs, inputs});
  // [group, output, batch, window]
  const Val y = e.dot(kernel, parts, {0}, {1}, {2}, {2});
  return e.failed() ? y : e.reshape(e.transpose(y, {2, 0, 1, 3}), result);
}

}  // namespace

Val importDotGeneral(OpContext& n) {
  Val a = n.in(0), b = n.in(1);
  const ElementType type = n.result().element;
  if (!toOneType(n, a, b, type)) return {};
  if (n.name == "dot") {
    if (a.rank() < 1 || a.rank() > 2 || b.rank() < 1 || b.rank() > 2)
      return n.error("expected vectors or matrices");
    return n.e.cast(n.e.dot(a, b, {}, {}, {a.rank() - 1}, {0}), type);
  }
  const Shape a_batch = n.dimensions("lhs_batching_dimensions", a.rank()),
              b_batch = n.dimensions("rhs_batching_dimensions", b.rank()),
              a_sum = n.dimensions("lhs_contracting_dimensions", a.rank()),
              b_sum = n.dimensions("rhs_contracting_dimensions", b.rank());
  if (n.failed()) return {};
  if (a_batch.size() != b_batch.size() || a_sum.size() != b_sum.size())
    return n.error("expected as many dimensions of both factors");
  const Val product = n.e.dot(a, b, a_batch, b_batch, a_sum, b_sum);
  return n.failed() ? product : n.e.cast(product, type);
}

Val importConvolution(OpContext& n) {
  Val x = n.in(0), w = n.in(1);
  const ElementType type = n.result().element;
  if (!toOneType(n, x, w, type)) return {};
  if (x.rank() != w.rank() || x.rank() < 2 || x.rank() > 5)
    return n.unsupported("a convolution of tensors of rank " +
                         llvm::Twine(x.rank()) + " and " +
                         llvm::Twine(w.rank()));
  Convolution c;
  if (!readConvolution(n, x.rank(), c)) return {};
  const size_t spatial = x.rank() - 2;
  x = n.e.transpose(x, c.input.perm());
  w = n.e.transpose(w, c.kernel.perm());
  for (size_t i = 0; i < spatial; ++i)
    if (c.reversed[i]) w = n.e.reverse(w, static_cast<int64_t>(i) + 2);
  // Groups of the batch become groups of features: a group's rows meet its
  // outputs only.
  if (c.batch_groups > 1) {
    const int64_t g = c.batch_groups;
    if (c.groups != 1 || x.dim(0) % g != 0 || w.dim(0) % g != 0)
      return n.error(
          "expected groups of the batch that divide it and the "
          "outputs");
    Shape split = {g, x.dim(0) / g};
    split.append(x.shape().begin() + 1, x.shape().end());
    Shape perm = countUp(x.rank() + 1);
    std::swap(perm[0], perm[1]);
    Shape joined(x.shape());
    joined[0] /= g;
    joined[1] *= g;
    x = n.e.reshape(n.e.transpose(n.e.reshape(x, split), perm), joined);
    c.groups = g;
  }
  const bool fits = x.dim(1) % c.groups == 0 && w.dim(0) % c.groups == 0 &&
                    w.dim(1) == x.dim(1) / c.groups;
  if (!fits)
    return n.error("expected features that fit the kernel, found " +
                   toString(x.shape()) + " and " + toString(w.shape()));
  // Zeros between the elements, and padding that crops.
  const Val zero = n.e.splat(0, x.elementType());
  Shape between = {0, 0}, low = {0, 0}, high = {0, 0};
  for (size_t i = 0; i < spatial; ++i) {
    between.push_back(c.input_dilations[i] - 1);
    low.push_back(std::min<int64_t>(c.window.low[i], 0));
    high.push_back(std::min<int64_t>(c.window.high[i], 0));
    c.window.low[i] = std::max<int64_t>(c.window.low[i], 0);
    c.window.high[i] = std::max<int64_t>(c.window.high[i], 0);
    c.window.kernel.push_back(w.dim(static_cast<int64_t>(i) + 2));
  }
  x = n.e.pad(builder::spreadApart(n.e, x, zero, between), zero, low, high);
  if (n.failed()) return {};
  if (spatial == 0) {
    if (c.groups != 1)
      return n.unsupported("groups without spatial dimensions");
    return n.e.cast(n.e.transpose(n.e.dot(x, w, {}, {}, {1}, {1}),
                                  builder::inversePermutation(c.output.perm())),
                    type);
  }
  const Val y = x.isFloat() ? builder::convolve(n.e, x, w, c.window, c.groups)
                            : convolveIntegers(n.e, x, w, c.window, c.groups);
  if (n.failed()) return {};
  return n.e.cast(
      n.e.transpose(y, builder::inversePermutation(c.output.perm())), type);
}

// A row's group is the number of groups that end at the row or before it.
Val importRaggedDot(OpContext& n) {
  const auto attributes = mlir::dyn_cast_or_null<mlir::DictionaryAttr>(
      n.op.getAttr("composite_attributes"));
  const auto numbers = attributes
                           ? mlir::dyn_cast_or_null<mlir::ArrayAttr>(
                                 attributes.get("ragged_dot_dimension_numbers"))
                           : mlir::ArrayAttr();
  if (!numbers || numbers.size() != 6 || n.size() != 3) return {};
  // Batch of both, contracted of both, ragged of the rows, groups of matrices.
  Shape dims[6];
  for (auto [i, attribute] : llvm::enumerate(numbers)) {
    const auto list = mlir::dyn_cast<mlir::DenseIntElementsAttr>(attribute);
    if (!list) return {};
    for (const llvm::APInt& dim : list.getValues<llvm::APInt>())
      dims[i].push_back(dim.getSExtValue());
  }
  const Val rows = n.in(0), other = n.in(1), sizes = n.in(2);
  const mlir::RankedTensorType type =
      n.e.tensor(n.result().shape, n.result().element.type);
  if (n.failed() || !dims[0].empty() || !dims[1].empty() ||
      dims[4] != Shape{0} || rows.rank() != 2 || sizes.rank() != 1 ||
      sizes.isFloat() || !rows.isFloat() ||
      rows.element() != type.getElementType() ||
      other.element() != rows.element())
    return {};
  Emitter& e = n.e;
  const int64_t count = rows.dim(0), groups = sizes.dim(0);
  const auto ids = [&] {
    const Val ends =
        builder::cumulate(e, nn::ReduceKind::sum, e.cast(sizes, e.i64()), 0);
    const Val row = e.iota({count, groups}, 0, e.i64());
    const Val ended =
        e.compare(Compare::ge, row, e.broadcast(ends, row.shape()));
    return e.reduce(nn::ReduceKind::sum, e.cast(ended, e.i64()), {1},
                    /*keep_dims=*/false);
  };
  // The matrix of a group is a sum over its rows.
  if (dims[2] == Shape{0} && dims[3] == Shape{0} && dims[5].empty() &&
      other.rank() == 2 && other.dim(0) == count &&
      llvm::equal(type.getShape(), Shape{groups, rows.dim(1), other.dim(1)}))
    return {e.create<nn::GroupedDotWeightGradOp>(type, other.value, ids().value,
                                                 rows.value)};
  if (dims[2] != Shape{1} || dims[3].size() != 1 || dims[3][0] < 1 ||
      dims[3][0] > 2 || dims[5] != Shape{0} || other.rank() != 3 ||
      other.dim(0) != groups || rows.dim(1) != other.dim(dims[3][0]) ||
      !llvm::equal(type.getShape(),
                   Shape{count, other.dim(dims[3][0] == 1 ? 2 : 1)}))
    return {};
  return {e.create<nn::GroupedDotOp>(type, rows.value, ids().value, other.value,
                                     /*transposed=*/dims[3][0] == 1)};
}

Val importEinsum(OpContext& n) {
  const std::string equation = n.text("einsum_config");
  const Values operands = n.all();
  return n.failed() ? Val() : builder::einsum(n.e, equation, operands);
}

}  // namespace partita::stablehlo
