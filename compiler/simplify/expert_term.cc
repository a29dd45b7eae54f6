// Follows the elements of a summand to a row of x, and to the choices and
// weights of that row, however tensors are shaped on the way.
#include "compiler/simplify/expert_term.h"

#include "compiler/simplify/activation_match.h"
#include "compiler/simplify/index_map.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

// Symbols of indices: the row, its choice, and the output and input of a
// product.
enum : int { kRow, kChoice, kOut, kHidden, kIn };

// True if the element's index is these parts, in order.
bool hasDigits(const Access& access, ArrayRef<Index> parts) {
  Access expected;
  expected.dims.append(parts.begin(), parts.end());
  return access.digits() == expected.digits();
}

// An index that comes from the choice of the largest scores is not negative, so
// counting negative ones from the end leaves it as it is.
Access withoutWrap(Access ids) {
  auto select = ids.value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>()
                        : arith::CmpIOp();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
      compare.getLhs() != select.getFalseValue() ||
      integerAt(peel(Access{select.getCondition(), ids.dims}).operand(1)) != 0)
    return ids;
  Access inner = peel(ids.operand(2));
  auto choice = inner.value.getDefiningOp<nn::TopKOp>();
  return choice && inner.value == choice.getIndices() ? inner : ids;
}

// A comparison of an index with a number.
struct Indicator {
  Access ids;
  int64_t number;
};

bool isNumber(const Access& access, int64_t number) {
  if (mlir::isa<mlir::FloatType>(tensorType(access.value).getElementType()))
    return floatAt(access) == static_cast<double>(number);
  return integerAt(access) == number;
}

// Conversions that keep 0 and 1.
bool keepsBits(mlir::Operation* op) {
  const auto isBool = [](Value value) {
    return tensorType(value).getElementType().isInteger(1);
  };
  if (mlir::isa<arith::UIToFPOp, arith::ExtUIOp, arith::ExtFOp,
                arith::TruncFOp>(op))
    return true;
  if (mlir::isa<arith::SIToFPOp, arith::ExtSIOp>(op))
    return !isBool(op->getOperand(0));
  return mlir::isa<arith::TruncIOp, arith::FPToSIOp, arith::FPToUIOp>(op) &&
         !isBool(op->getResult(0));
}

std::optional<Indicator> matchIndicator(Access access) {
  access = peel(access);
  mlir::Operation* op = access.value.getDefiningOp();
  if (!op) return std::nullopt;
  if (keepsBits(op)) return matchIndicator(access.operand(0));
  if (mlir::isa<arith::SelectOp>(op))
    return isNumber(access.operand(1), 1) && isNumber(access.operand(2), 0)
               ? matchIndicator(access.operand(0))
               : std::nullopt;
  if (auto compare = mlir::dyn_cast<arith::CmpFOp>(op))
    return (compare.getPredicate() == arith::CmpFPredicate::UNE ||
            compare.getPredicate() == arith::CmpFPredicate::ONE) &&
                   isNumber(access.operand(1), 0)
               ? matchIndicator(access.operand(0))
               : std::nullopt;
  auto compare = mlir::dyn_cast<arith::CmpIOp>(op);
  if (compare && compare.getPredicate() == arith::CmpIPredicate::ne &&
      integerAt(access.operand(1)) == 0)
    return matchIndicator(access.operand(0));
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (unsigned i : {0u, 1u})
    if (const std::optional<int64_t> number = integerAt(access.operand(1 - i)))
      return Indicator{withoutWrap(peel(access.operand(i))), *number};
  return std::nullopt;
}

class Matcher {
 public:
  std::optional<ExpertTerm> match(Value summand) {
    const ArrayRef<int64_t> shape = tensorType(summand).getShape();
    if (shape.size() < 2) return std::nullopt;
    out_ = shape.back();
    term_.rows =
        tensorType(summand).getNumElements() / std::max<int64_t>(out_, 1);
    Access access = {summand, {}};
    int64_t stride = term_.rows;
    for (int64_t size : shape.drop_back()) {
      stride /= std::max<int64_t>(size, 1);
      Index index = wholeRange(kRow, size);
      for (Digit& digit : index) digit.stride = stride;
      access.dims.push_back(index);
    }
    access.dims.push_back(wholeRange(kOut, out_));
    if (term_.rows == 0 || out_ == 0 || !matchSummand(access))
      return std::nullopt;
    if (!term_.choices) term_.choices = 1;
    return term_;
  }

 private:
  Index rows() const { return wholeRange(kRow, term_.rows); }
  Index choices() const {
    return wholeRange(kChoice, std::max<int64_t>(term_.choices, 1));
  }

  // The summands of a sum over choices, if `access` is one.
  std::optional<Access> overChoices(const Access& access) {
    auto sum = access.value.getDefiningOp<nn::ReduceOp>();
    if (!sum || sum.getKind() != nn::ReduceKind::sum) return std::nullopt;
    Access inner = {sum.getInput(), {}};
    size_t next = 0;
    for (auto [dim, size] :
         llvm::enumerate(sum.getInput().getType().getShape())) {
      if (!llvm::is_contained(sum.getDims(), dim)) {
        inner.dims.push_back(access.dims[next++]);
        continue;
      }
      if (size != 1 && term_.choices) return std::nullopt;
      if (size != 1) term_.choices = size;
      inner.dims.push_back(wholeRange(kChoice, size));
    }
    return inner;
  }

  bool matchSummand(Access access) {
    access = peel(access);
    if (std::optional<Access> inner = overChoices(access))
      access = peel(*inner);
    if (mlir::isa_and_nonnull<arith::SelectOp>(access.value.getDefiningOp())) {
      const auto chosen = matchIndicator(access.operand(0));
      if (!chosen || !isNumber(access.operand(2), 0) || !setIds(*chosen))
        return false;
      const Access product = peel(access.operand(1));
      if (!product.value.getDefiningOp<arith::MulFOp>()) return false;
      for (unsigned i : {0u, 1u})
        if (setWeights(peel(product.operand(i))) &&
            matchMlp(product.operand(1 - i)))
          return true;
      return false;
    }
    if (!access.value.getDefiningOp<arith::MulFOp>()) return false;
    for (unsigned i : {0u, 1u}) {
      const int64_t choices = term_.choices;
      if (matchColumn(access.operand(i)))
        return matchMlp(access.operand(1 - i));
      term_.choices = choices;
    }
    return false;
  }

  // The weight of an expert for each row.
  bool matchColumn(Access access) {
    access = peel(access);
    if (auto scatter = access.value.getDefiningOp<nn::ScatterOp>())
      return matchScattered(scatter, access);
    if (std::optional<Access> inner = overChoices(access))
      access = peel(*inner);
    mlir::Operation* op = access.value.getDefiningOp();
    if (mlir::isa_and_nonnull<arith::SelectOp>(op)) {
      const auto chosen = matchIndicator(access.operand(0));
      return chosen && isNumber(access.operand(2), 0) && setIds(*chosen) &&
             setWeights(peel(access.operand(1)));
    }
    if (!mlir::isa_and_nonnull<arith::MulFOp>(op)) return false;
    for (unsigned i : {0u, 1u}) {
      const auto chosen = matchIndicator(access.operand(i));
      if (chosen)
        return setIds(*chosen) && setWeights(peel(access.operand(1 - i)));
    }
    return false;
  }

  // Weights [rows, choices] put into zeros [rows, experts] at their experts. A
  // row's choices differ, because they are its largest scores.
  bool matchScattered(nn::ScatterOp scatter, const Access& access) {
    const ArrayRef<int64_t> shape = scatter.getUpdates().getType().getShape();
    auto indices = scatter.getIndices().getDefiningOp<nn::ConcatOp>();
    if (term_.choices || access.dims.size() != 2 || shape.size() != 2 ||
        scatter.getBatchDims() != 0 ||
        scatter.getAxes() != ArrayRef<int64_t>{0, 1} ||
        (scatter.getKind() != nn::ScatterKind::set &&
         scatter.getKind() != nn::ScatterKind::add) ||
        !isNumber(Access{scatter.getInput(), access.dims}, 0) || !indices ||
        indices.getAxis() != 2 || indices.getInputs().size() != 2 ||
        shape[0] != term_.rows || access.dims[0] != rows())
      return false;
    const std::optional<int64_t> expert = numberAt(access.dims[1]);
    if (!expert) return false;
    term_.choices = shape[1];
    const Access ids = withoutWrap(
        peel({indices.getInputs()[1], {rows(), choices(), Index()}}));
    auto choice = ids.value.getDefiningOp<nn::TopKOp>();
    return choice && ids.value == choice.getIndices() &&
           countsRows(indices.getInputs()[0]) && setIds({ids, *expert}) &&
           setWeights(peel({scatter.getUpdates(), {rows(), choices()}}));
  }

  static std::optional<int64_t> numberAt(const Index& index) {
    if (index.size() != 1 || index[0].symbol >= 0) return std::nullopt;
    return index[0].number;
  }

  // True if element [row, choice, 0] is the row.
  bool countsRows(Value value) const {
    const Access access = peel({value, {rows(), choices(), Index()}});
    if (auto iota = access.value.getDefiningOp<nn::IotaOp>())
      return access.dims[iota.getDim()] == rows();
    for (int64_t row = 0; row < term_.rows; ++row) {
      Digit digit;
      digit.size = term_.rows;
      digit.number = row;
      Index index;
      if (term_.rows != 1) index.push_back(digit);
      for (int64_t choice = 0; choice < term_.choices; ++choice) {
        Index column;
        digit.size = term_.choices;
        digit.number = choice;
        if (term_.choices != 1) column.push_back(digit);
        if (integerAt({value, {index, column, Index()}}) != row) return false;
      }
    }
    return true;
  }

  bool setIds(const Indicator& chosen) {
    term_.expert = chosen.number;
    term_.ids = chosen.ids.value;
    return hasDigits(chosen.ids, {rows(), choices()});
  }

  bool setWeights(const Access& weights) {
    term_.weights = weights.value;
    return hasDigits(weights, {rows(), choices()});
  }

  // A product of rows with a matrix, at output `out`, and the rows at `in`.
  struct Product {
    Linear linear;
    Access rows;
  };
  std::optional<Product> matchLinear(Access access, int out, int64_t size,
                                     int in) {
    Product result;
    result.linear.count = size;
    access = peel(access);
    // Some of the outputs.
    if (auto slice = access.value.getDefiningOp<nn::SliceOp>()) {
      const ArrayRef<int64_t> shape = slice.getInput().getType().getShape();
      const size_t last = shape.size() - 1;
      if (shape.drop_back() != slice.getType().getShape().drop_back() ||
          slice.getStrides()[last] != 1 ||
          access.dims[last] != wholeRange(out, size))
        return std::nullopt;
      result.linear.first = slice.getStarts()[last];
      access.value = slice.getInput();
    }
    if (access.value.getDefiningOp<arith::AddFOp>()) {
      for (unsigned i : {0u, 1u}) {
        const Access bias = peel(access.operand(i));
        if (!hasDigits(bias, {wholeRange(out, size)})) continue;
        result.linear.bias = bias.value;
        access = access.operand(1 - i);
        break;
      }
      if (!result.linear.bias) return std::nullopt;
    }
    if (access.value.getDefiningOp<nn::ReshapeOp>() && !result.linear.first)
      access = peel(access);
    auto dot = access.value.getDefiningOp<nn::DotGeneralOp>();
    if (!dot || !dot.getLhsBatch().empty() ||
        dot.getRhsContract().size() != 1 ||
        tensorType(dot.getRhs()).getRank() != 2 ||
        access.dims.back() != wholeRange(out, size))
      return std::nullopt;
    result.linear.matrix = dot.getRhs();
    result.linear.is_transposed = dot.getRhsContract()[0] == 0;
    result.rows = {dot.getLhs(), {}};
    const int64_t contracted = dot.getLhsContract()[0];
    size_t next = 0;
    for (auto [dim, width] :
         llvm::enumerate(tensorType(dot.getLhs()).getShape()))
      result.rows.dims.push_back(static_cast<int64_t>(dim) == contracted
                                     ? wholeRange(in, width)
                                     : access.dims[next++]);
    return result;
  }

  bool matchMlp(const Access& access) {
    const auto down = matchLinear(access, kOut, out_, kHidden);
    if (!down) return false;
    term_.down = down->linear;
    const Access h = peel(down->rows);
    const int64_t hidden = tensorType(down->linear.matrix)
                               .getDimSize(down->linear.is_transposed ? 0 : 1);
    std::optional<Product> gate, up;
    if (h.value.getDefiningOp<arith::MulFOp>()) {
      for (unsigned i : {0u, 1u}) {
        const auto activated = matchActivation(h.operand(i).value);
        if (!activated) continue;
        gate = matchLinear({activated->input, h.dims}, kHidden, hidden, kIn);
        up = matchLinear(h.operand(1 - i), kHidden, hidden, kIn);
        term_.activation = activated->activation;
        if (gate && up) break;
      }
    }
    if (!gate || !up) {
      gate.reset();
      const auto activated = matchActivation(h.value);
      if (!activated) return false;
      up = matchLinear({activated->input, h.dims}, kHidden, hidden, kIn);
      term_.activation = activated->activation;
    }
    if (!up) return false;
    term_.up = up->linear;
    const Access x = peel(up->rows);
    if (gate) {
      term_.gate = gate->linear;
      const Access other = peel(gate->rows);
      if (other.value != x.value || other.digits() != x.digits()) return false;
    }
    term_.x = x.value;
    const int64_t in = tensorType(up->linear.matrix)
                           .getDimSize(up->linear.is_transposed ? 0 : 1);
    return hasDigits(x, {rows(), wholeRange(kIn, in)});
  }

  ExpertTerm term_;
  int64_t out_ = 0;
};

}  // namespace

std::optional<ExpertTerm> matchExpertTerm(Value summand) {
  return Matcher().match(summand);
}

}  // namespace partita::simplify
