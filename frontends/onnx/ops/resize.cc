// Resize: each axis is a product with a matrix of interpolation weights, or a
// gather.
#include <cmath>

#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::onnx {
namespace {

struct Settings {
  std::string mode, transformation, nearest_mode;
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

struct Axis {
  int64_t dim, in, out;
  double scale, roi_start, roi_end;
};

// The weights of input elements in one output element. `outside` means that it
// takes the extrapolation value.
struct Row {
  std::vector<std::pair<int64_t, double>> weights;
  bool outside = false;
};

double originalCoordinate(const Settings& settings, const Axis& axis,
                          int64_t i) {
  double in = static_cast<double>(axis.in), resized = axis.scale * in,
         x = static_cast<double>(i);
  llvm::StringRef how = settings.transformation;
  if (how == "asymmetric") return x / axis.scale;
  if (how == "align_corners")
    return resized == 1 ? 0 : x * (in - 1) / (resized - 1);
  if (how == "tf_crop_and_resize") {
    double span = axis.roi_end - axis.roi_start;
    double offset = resized == 1 ? span * (in - 1) / 2
                                 : x * span * (in - 1) / (resized - 1);
    return offset + axis.roi_start * (in - 1);
  }
  if (how == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (how == "pytorch_half_pixel") return resized == 1 ? -0.5 : half_pixel;
  if (how == "half_pixel_symmetric")
    return half_pixel + in / 2 * (1 - static_cast<double>(axis.out) / resized);
  return half_pixel;
}

// Keys' cubic convolution kernel.
double cubicKernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Weights of x's neighbours by distance. Downscaling with antialias widens the
// kernel.
Row interpolate(const Settings& settings, const Axis& axis, double x) {
  bool is_cubic = settings.mode == "cubic";
  double shrink = settings.antialias ? std::min(axis.scale, 1.0) : 1.0;
  int64_t reach = static_cast<int64_t>(std::ceil((is_cubic ? 2 : 1) / shrink));
  int64_t base = static_cast<int64_t>(std::ceil(x)) - 1;
  std::map<int64_t, double> weights;
  double sum = 0;
  for (int64_t j = base - reach + 1; j <= base + reach; ++j) {
    double distance = (static_cast<double>(j) - x) * shrink;
    double weight = is_cubic ? cubicKernel(distance, settings.cubic_a)
                             : std::max(1 - std::abs(distance), 0.0);
    bool is_outside = j < 0 || j >= axis.in;
    if (weight == 0 || (settings.exclude_outside && is_outside)) continue;
    weights[std::clamp<int64_t>(j, 0, axis.in - 1)] += weight;
    sum += weight;
  }
  Row row;
  for (auto [j, weight] : weights)
    row.weights.emplace_back(j, weight / (sum == 0 ? 1 : sum));
  return row;
}

Row nearest(const Settings& settings, const Axis& axis, double x) {
  double rounded = llvm::StringSwitch<double>(settings.nearest_mode)
                       .Case("round_prefer_ceil", std::floor(x + 0.5))
                       .Case("floor", std::floor(x))
                       .Case("ceil", std::ceil(x))
                       .Default(std::ceil(x - 0.5));
  return {{{std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, axis.in - 1),
            1.0}}};
}

std::vector<Row> rowsOf(const Settings& settings, const Axis& axis) {
  std::vector<Row> rows;
  for (int64_t i = 0; i < axis.out; ++i) {
    double x = originalCoordinate(settings, axis, i);
    rows.push_back(settings.mode == "nearest" ? nearest(settings, axis, x)
                                              : interpolate(settings, axis, x));
    bool crops = settings.transformation == "tf_crop_and_resize";
    rows.back().outside =
        crops && (x < 0 || x > static_cast<double>(axis.in - 1));
  }
  return rows;
}

// True if each element is only repeated: integer scale factors.
bool repeatsEach(const std::vector<Row>& rows, const Axis& axis) {
  if (axis.out % axis.in != 0) return false;
  int64_t factor = axis.out / axis.in;
  for (int64_t i = 0; i < axis.out; ++i) {
    if (rows[i].weights.size() != 1 || rows[i].weights[0].first != i / factor)
      return false;
  }
  return true;
}

Val applyRows(Emitter& e, Val x, const std::vector<Row>& rows,
              const Axis& axis) {
  Shape shape(x.shape());
  shape[axis.dim] = axis.out;
  if (repeatsEach(rows, axis)) {
    Shape split(x.shape()), dims = countUp(x.rank());
    split.insert(split.begin() + axis.dim + 1, axis.out / axis.in);
    for (int64_t i = axis.dim + 1; i < x.rank(); ++i) ++dims[i];
    return e.reshape(e.broadcastDims(x, split, dims), shape);
  }
  // The axis moves last, and back afterwards.
  Shape perm = countUp(x.rank());
  std::swap(perm[axis.dim], perm.back());
  Val moved = e.transpose(x, perm);
  bool only_chooses = llvm::all_of(
      rows, [](const Row& row) { return row.weights.size() == 1; });
  if (only_chooses) {
    Shape indices, gather_perm;
    for (const Row& row : rows) indices.push_back(row.weights[0].first);
    Val taken = e.gather(moved, e.ints(indices, {axis.out, 1}), {x.rank() - 1});
    for (int64_t i = 1; i < x.rank(); ++i) gather_perm.push_back(i);
    gather_perm.push_back(0);
    return e.transpose(e.transpose(taken, gather_perm), perm);
  }
  llvm::SmallVector<double> matrix(axis.in * axis.out, 0);
  for (int64_t i = 0; i < axis.out; ++i) {
    for (auto [j, weight] : rows[i].weights) matrix[j * axis.out + i] = weight;
  }
  Val weights = e.reals(matrix, {axis.in, axis.out}, x.element());
  return e.transpose(e.dot(moved, weights, {}, {}, {x.rank() - 1}, {0}), perm);
}

// Reads scales or sizes as one Axis per resized dimension.
FailureOr<std::vector<Axis>> readAxes(NodeContext& n, Val x) {
  auto dims = n.axes(n.attrInts("axes", countUp(x.rank())), x.rank());
  if (failed(dims)) return failure();
  size_t count = dims->size();
  // Upsample became Resize in opset 10; Resize got a roi in opset 11.
  unsigned scales_input = n.opset <= 10 ? 1 : 2;
  FailureOr<llvm::SmallVector<double>> scales = llvm::SmallVector<double>(),
                                       roi = scales;
  FailureOr<Shape> sizes = Shape();
  if (n.opset < 9) scales = n.attrFloats("scales");
  if (n.has(scales_input)) scales = n.constFloats(scales_input);
  if (n.opset > 10 && n.has(3)) sizes = n.constInts(3);
  if (n.attrString("coordinate_transformation_mode", "half_pixel") ==
          "tf_crop_and_resize" &&
      n.has(1)) {
    roi = n.constFloats(1);
    if (succeeded(roi) && roi->size() != 2 * count)
      return n.error("expected a roi with a start and an end per axis");
  }
  if (failed(scales) || failed(sizes) || failed(roi)) return failure();
  bool has_sizes = !sizes->empty();
  if (has_sizes ? sizes->size() != count : scales->size() != count)
    return n.error("expected one scale or size per axis");
  std::string policy = n.attrString("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? INFINITY : 0;
  std::vector<Axis> axes;
  for (size_t i = 0; i < count; ++i) {
    Axis axis = {(*dims)[i], x.dim((*dims)[i]), 0, 1, 0, 1};
    axis.scale = has_sizes ? static_cast<double>((*sizes)[i]) /
                                 static_cast<double>(axis.in)
                           : (*scales)[i];
    double out = has_sizes
                     ? static_cast<double>((*sizes)[i])
                     : std::floor(static_cast<double>(axis.in) * axis.scale);
    if (axis.in < 1 || !(axis.scale > 0) || !(out >= 1 && out < 1 << 30))
      return n.error("expected positive sizes and scales");
    axis.out = static_cast<int64_t>(out);
    common = policy == "not_larger" ? std::min(common, axis.scale)
                                    : std::max(common, axis.scale);
    if (!roi->empty())
      axis.roi_start = (*roi)[i], axis.roi_end = (*roi)[i + count];
    axes.push_back(axis);
  }
  if (has_sizes && policy != "stretch") {
    for (Axis& axis : axes) {
      axis.scale = common;
      axis.out = static_cast<int64_t>(
          std::floor(static_cast<double>(axis.in) * common + 0.5));
    }
  }
  return axes;
}

}  // namespace

LogicalResult importResize(NodeContext& n) {
  Val x = n.in(0);
  Emitter& e = n.e;
  auto axes = readAxes(n, x);
  if (failed(axes)) return failure();
  Settings settings;
  settings.mode = n.attrString("mode", "nearest");
  settings.transformation =
      n.attrString("coordinate_transformation_mode",
                   n.opset <= 10 ? "asymmetric" : "half_pixel");
  settings.nearest_mode = n.attrString(
      "nearest_mode", n.opset <= 10 ? "floor" : "round_prefer_floor");
  settings.cubic_a = n.attrFloat("cubic_coeff_a", -0.75);
  settings.extrapolation = n.attrFloat("extrapolation_value", 0);
  settings.exclude_outside = n.attrInt("exclude_outside", 0);
  settings.antialias = n.attrInt("antialias", 0);
  if (settings.mode != "nearest" && settings.mode != "linear" &&
      settings.mode != "cubic") {
    return n.unsupported("mode=" + settings.mode);
  }
  Val y = x.isFloat() || settings.mode == "nearest" ? x : e.cast(x, e.f32());
  Val outside;
  for (const Axis& axis : *axes) {
    std::vector<Row> rows = rowsOf(settings, axis);
    bool keeps = axis.in == axis.out && repeatsEach(rows, axis);
    if (!keeps) y = applyRows(e, y, rows, axis);
    if (llvm::none_of(rows, [](const Row& row) { return row.outside; }))
      continue;
    Shape shape(x.rank(), 1);
    shape[axis.dim] = axis.out;
    llvm::SmallVector<bool> flags;
    for (const Row& row : rows) flags.push_back(row.outside);
    Val mask = e.bools(flags, shape);
    outside = outside ? e.bitOr(outside, mask) : mask;
  }
  if (outside)
    y = e.select(outside, e.splat(settings.extrapolation, y.elementType()), y);
  return n.result(e.cast(y, x.elementType()));
}

}  // namespace partita::onnx
