// Evaluates elementwise formulas in double precision at fixed points.
#include "compiler/kernels/product_formulas.h"

#include <cmath>
#include <vector>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {
namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;
using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;

constexpr size_t kPoints = 97;
// Constants of f32 are off by less.
constexpr double kTolerance = 1e-6;
// Longer chains are no activation.
constexpr size_t kMostOperations = 64;

using Points = std::vector<double>;

bool is16Bit(Value value) {
  const auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  return llvm::isa<mlir::FloatType>(type.getElementType()) &&
         type.getElementTypeBitWidth() == 16;
}

// In [-6, 6], where activations are curved.
Points inputPoints() {
  Points points(kPoints);
  for (size_t i = 0; i < kPoints; ++i)
    points[i] = 12.0 * static_cast<double>(i) / (kPoints - 1) - 6;
  return points;
}

Points gradientPoints() {
  Points points(kPoints);
  for (size_t i = 0; i < kPoints; ++i)
    points[i] = (i % 2 == 0 ? 1 : -1) * (0.25 + static_cast<double>(i % 7));
  return points;
}

constexpr double kSlope = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x)));
}

double geluGradient(double x) {
  const double t = std::tanh(kSlope * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
}

// One value of an elementwise operation; NaN if it is not known here.
double apply(Operation* op, double x, double y) {
  return llvm::TypeSwitch<Operation*, double>(op)
      .Case<arith::AddFOp>([&](auto) { return x + y; })
      .Case<arith::SubFOp>([&](auto) { return x - y; })
      .Case<arith::MulFOp>([&](auto) { return x * y; })
      .Case<arith::DivFOp>([&](auto) { return x / y; })
      .Case<arith::NegFOp>([&](auto) { return -x; })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return x; })
      .Case<math::TanhOp>([&](auto) { return std::tanh(x); })
      .Case<math::ExpOp>([&](auto) { return std::exp(x); })
      .Case<math::ErfOp>([&](auto) { return std::erf(x); })
      .Case<math::PowFOp>([&](auto) { return std::pow(x, y); })
      .Default([](Operation*) { return std::nan(""); });
}

bool isKnown(Operation* op) {
  return llvm::isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
                   arith::NegFOp, arith::ExtFOp, arith::TruncFOp, math::TanhOp,
                   math::ExpOp, math::ErfOp, math::PowFOp>(op);
}

// A formula of 16-bit inputs.
class Formula {
 public:
  explicit Formula(Value root) : root_(root) {
    is_valid_ = root.getDefiningOp<arith::TruncFOp>() != nullptr &&
                visit(root.getDefiningOp());
  }

  explicit operator bool() const { return is_valid_; }
  const llvm::SetVector<Value>& inputs() const { return inputs_; }
  // The operations, each behind its operands.
  const llvm::SetVector<Operation*>& operations() const { return operations_; }

  // Its values, with those of its inputs in order. Empty if an operation is
  // not known.
  Points evaluate(const std::vector<Points>& inputs) const {
    llvm::DenseMap<Value, Points> values = constants_;
    for (auto [value, points] : llvm::zip_equal(inputs_, inputs))
      values[value] = points;
    for (Operation* op : operations_) {
      Points points(kPoints);
      for (size_t i = 0; i < kPoints; ++i)
        points[i] =
            apply(op, values[op->getOperand(0)][i],
                  op->getNumOperands() > 1 ? values[op->getOperand(1)][i] : 0);
      values[op->getResult(0)] = std::move(points);
    }
    return values[root_];
  }

 private:
  // False if an operation or an operand is not known.
  bool visit(Operation* op) {
    if (operations_.contains(op)) return true;
    // Counts on entry, which bounds the recursion.
    if (!isKnown(op) || ++visited_ > kMostOperations) return false;
    for (Value operand : op->getOperands()) {
      mlir::DenseFPElementsAttr constant;
      if (is16Bit(operand))
        inputs_.insert(operand);
      else if (mlir::matchPattern(operand, mlir::m_Constant(&constant)) &&
               constant.isSplat())
        constants_[operand] = Points(
            kPoints, constant.getSplatValue<llvm::APFloat>().convertToDouble());
      else if (!operand.getDefiningOp() || !visit(operand.getDefiningOp()))
        return false;
    }
    operations_.insert(op);
    return true;
  }

  Value root_;
  bool is_valid_ = false;
  size_t visited_ = 0;  // operations
  llvm::SetVector<Value> inputs_;
  llvm::SetVector<Operation*> operations_;
  llvm::DenseMap<Value, Points> constants_;
};

bool isNear(const Points& found, const Points& expected) {
  for (auto [x, y] : llvm::zip_equal(found, expected))
    if (!(std::abs(x - y) <= kTolerance * (1 + std::abs(y)))) return false;
  return true;
}

// True if nothing outside of the formula reads `product`, or a value of the
// formula that depends on it.
bool isOnlyReadBy(const Formula& formula, Value product) {
  llvm::DenseMap<Operation*, bool> depends;
  if (!llvm::all_of(product.getUsers(), [&](Operation* user) {
        return formula.operations().contains(user);
      }))
    return false;
  Operation* const last = formula.operations().back();
  for (Operation* op : formula.operations()) {
    const bool does = llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand == product || depends.lookup(operand.getDefiningOp());
    });
    depends[op] = does;
    if (does && op != last &&
        !llvm::all_of(op->getUsers(), [&](Operation* user) {
          return formula.operations().contains(user);
        }))
      return false;
  }
  return true;
}

}  // namespace

SmallVector<Value> formulasOf(Value product) {
  llvm::SetVector<Operation*> seen;
  SmallVector<Value> found;
  const auto add = [&](Value value) {
    for (Operation* user : value.getUsers())
      if (isKnown(user) && seen.size() < kMostOperations) seen.insert(user);
  };
  add(product);
  for (size_t i = 0; i < seen.size(); ++i) {
    const Value result = seen[i]->getResult(0);
    if (llvm::isa<arith::TruncFOp>(seen[i])) {
      if (result.getType() == product.getType()) found.push_back(result);
      continue;
    }
    add(result);
  }
  return found;
}

bool isGelu(Value formula, Value x) {
  const Formula parsed(formula);
  if (!parsed || parsed.inputs().size() != 1 || parsed.inputs().front() != x)
    return false;
  Points expected;
  for (double point : inputPoints()) expected.push_back(gelu(point));
  return isNear(parsed.evaluate({inputPoints()}), expected);
}

Value geluGradientInput(Value formula, Value product) {
  const Formula parsed(formula);
  if (!parsed || parsed.inputs().size() != 2 ||
      !parsed.inputs().contains(product) || !isOnlyReadBy(parsed, product))
    return {};
  const bool is_first = parsed.inputs()[0] == product;
  const Value input = parsed.inputs()[is_first ? 1 : 0];
  if (input.getType() != product.getType()) return {};
  const Points gradient = gradientPoints(), points = inputPoints();
  Points expected;
  for (auto [g, x] : llvm::zip_equal(gradient, points))
    expected.push_back(g * geluGradient(x));
  const Points found = is_first ? parsed.evaluate({gradient, points})
                                : parsed.evaluate({points, gradient});
  return isNear(found, expected) ? input : Value();
}

}  // namespace partita::kernels
