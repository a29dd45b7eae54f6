// The soundness checker divides one factor after the other, evaluates the
// innermost parts with the shard reference, and merges the parts on the way
// back.
#include "dialects/nn/rule_soundness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>

#include "dialects/nn/dialect.h"
#include "dialects/nn/shard_reference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::Operation;
using mlir::SmallVector;

constexpr char kNoMeaning[] =
    "expected an operation with a reference that has a meaning for the "
    "operands, found none";

constexpr char kNoTensors[] = "expected operands and results that are tensors";

// The tolerance for rounding, relative to the largest number: half a unit in
// the last place for each of up to eight partial results, and the same again
// for the reference's own rounding. The unit is that of the coarsest type,
// because operands are rounded too.
double toleranceOf(Operation* op) {
  double tolerance = 0;
  const auto widen = [&](mlir::Type type) {
    const auto element = mlir::dyn_cast<mlir::FloatType>(
        mlir::cast<mlir::RankedTensorType>(type).getElementType());
    if (!element) return;
    const int precision =
        llvm::APFloat::semanticsPrecision(element.getFloatSemantics());
    tolerance = std::max(tolerance, 8 * std::ldexp(1.0, 1 - precision));
  };
  llvm::for_each(op->getOperandTypes(), widen);
  llvm::for_each(op->getResultTypes(), widen);
  return tolerance;
}

std::string numberAt(const Tensor& tensor, int64_t i) {
  if (!tensor.isFloat()) return std::to_string(tensor.getInt(i));
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.9g", tensor.getFloat(i));
  return text.data();
}

// Integers must be equal; floats may differ by at most `slack`.
bool areClose(const Tensor& a, int64_t i, const Tensor& b, int64_t j,
              double slack) {
  if (!a.isFloat()) return a.getInt(i) == b.getInt(j);
  const double x = a.getFloat(i), y = b.getFloat(j);
  return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= slack;
}

double largestIn(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; tensor.isFloat() && i < tensor.size(); ++i) {
    if (std::isfinite(tensor.getFloat(i)))
      largest = std::max(largest, std::abs(tensor.getFloat(i)));
  }
  return largest;
}

double combineFloats(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kProduct:
      return a * b;
    case Reduction::kMax:
    case Reduction::kAny:
      return std::isnan(a) || a > b ? a : b;
    case Reduction::kMin:
    case Reduction::kAll:
      return std::isnan(a) || a < b ? a : b;
  }
  llvm_unreachable("all reductions are above");
}

int64_t combineInts(Reduction reduction, int64_t a, int64_t b) {
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<uint64_t>(a) + static_cast<uint64_t>(b);
    case Reduction::kProduct:
      return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
    case Reduction::kMax:
    case Reduction::kAny:
      return std::max(a, b);
    case Reduction::kMin:
    case Reduction::kAll:
      return std::min(a, b);
  }
  llvm_unreachable("all reductions are above");
}

void combine(Reduction reduction, Tensor& into, const Tensor& from, int64_t i) {
  if (into.isFloat()) {
    into.setFloat(i,
                  combineFloats(reduction, into.getFloat(i), from.getFloat(i)));
  } else {
    into.setInt(i, combineInts(reduction, into.getInt(i), from.getInt(i)));
  }
}

// The part of one result that some of the shards hold.
struct Partial {
  Tensor tensor;
  std::vector<bool> is_known;

  explicit Partial(mlir::Type type)
      : tensor(mlir::cast<mlir::RankedTensorType>(type)),
        is_known(tensor.size(), false) {}
};
using Partials = std::vector<Partial>;

class DividedRun {
 public:
  DividedRun(Operation* op, const ShardingRule& rule,
             ArrayRef<FactorDivision> divisions, ArrayRef<Tensor> operands)
      : op_(op),
        rule_(rule),
        divisions_(divisions),
        operands_(operands),
        tolerance_(toleranceOf(op)) {
    for (const Factor& factor : rule.factors)
      ranges_.push_back({0, factor.size});
  }

  std::string compareWith(ArrayRef<Tensor> expected) {
    for (const Tensor& tensor : expected)
      magnitude_ = std::max(magnitude_, largestIn(tensor));
    const Partials found = run(0);
    for (size_t i = 0; i < expected.size() && error_.empty(); ++i) {
      for (int64_t at = 0; at < expected[i].size() && error_.empty(); ++at) {
        if (!found[i].is_known[at]) {
          error_ = place(i, at) + ": no shard computes it";
        } else if (!areClose(found[i].tensor, at, expected[i], at, slack())) {
          error_ = place(i, at) + ": expected " + numberAt(expected[i], at) +
                   ", found " + numberAt(found[i].tensor, at);
        }
      }
    }
    return error_;
  }

 private:
  double slack() const { return tolerance_ * magnitude_; }

  // E.g. "result 0 at [1, 2]".
  std::string place(size_t result, int64_t at) const {
    const auto type =
        mlir::cast<mlir::RankedTensorType>(op_->getResult(result).getType());
    return "result " + std::to_string(result) + " at [" +
           llvm::join(
               llvm::map_range(indexAt(type.getShape(), at),
                               [](int64_t i) { return std::to_string(i); }),
               ", ") +
           "]";
  }

  // Divides the factors from index `level` on, within the ranges chosen so far.
  Partials run(size_t level) {
    if (level == divisions_.size()) return runShard();
    const FactorDivision& division = divisions_[level];
    const int64_t size = rule_.factors[division.factor].size;
    Partials whole = nothing();
    for (int64_t shard = 0; shard < division.shards && error_.empty();
         ++shard) {
      ranges_[division.factor] = {std::min(shard * division.block, size),
                                  std::min((shard + 1) * division.block, size)};
      merge(division.factor, run(level + 1), whole);
    }
    ranges_[division.factor] = {0, size};
    return whole;
  }

  Partials nothing() const {
    Partials partials;
    for (mlir::Type type : op_->getResultTypes()) partials.emplace_back(type);
    return partials;
  }

  Partials runShard() {
    Partials partials = nothing();
    const ShardResults shard = evaluateShard(op_, rule_, ranges_, operands_);
    if (!shard.error.empty()) {
      error_ = shard.error;
      return partials;
    }
    for (auto [partial, result] : llvm::zip_equal(partials, shard.results)) {
      magnitude_ = std::max(magnitude_, largestIn(result.tensor));
      for (int64_t i = 0; i < result.tensor.size(); ++i) {
        SmallVector<int64_t> index = result.tensor.index(i);
        for (auto [at, rows] : llvm::zip_equal(index, result.rows))
          at = rows[at];
        const int64_t position = partial.tensor.position(index);
        partial.tensor.copyFrom(position, result.tensor, i);
        partial.is_known[position] = true;
      }
    }
    return partials;
  }

  // Merges the part of one shard of `factor` with the parts of the shards
  // before it.
  void merge(int factor, const Partials& part, Partials& whole) {
    for (size_t i = 0; i < whole.size() && error_.empty(); ++i) {
      for (int64_t at = 0; at < whole[i].tensor.size(); ++at) {
        if (!part[i].is_known[at]) continue;
        if (!whole[i].is_known[at]) {
          whole[i].tensor.copyFrom(at, part[i].tensor, at);
          whole[i].is_known[at] = true;
        } else if (IsPartial(rule_, factor, i)) {
          combine(rule_.factors[factor].reduction, whole[i].tensor,
                  part[i].tensor, at);
        } else if (!areClose(whole[i].tensor, at, part[i].tensor, at,
                             slack())) {
          error_ = place(i, at) + ": shards of the factor " +
                   terms::FactorName(factor) +
                   ", which is not reduced, compute " +
                   numberAt(whole[i].tensor, at) + " and " +
                   numberAt(part[i].tensor, at);
          return;
        }
      }
    }
  }

  Operation* op_;
  const ShardingRule& rule_;
  ArrayRef<FactorDivision> divisions_;
  ArrayRef<Tensor> operands_;
  std::vector<FactorRange> ranges_;
  double tolerance_, magnitude_ = 0;
  std::string error_;
};

FailureOr<SmallVector<Tensor>> evaluate(Operation* op,
                                        ArrayRef<Tensor> operands) {
  auto reference = mlir::dyn_cast<ReferenceOpInterface>(op);
  if (!reference) return mlir::failure();
  return reference.evaluate(operands);
}

// Floats from a normal distribution, integers from `lowest` to 9.
SmallVector<Tensor> randomOperands(Operation* op, int64_t lowest,
                                   std::mt19937_64& generator) {
  SmallVector<Tensor> operands;
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> digit(lowest, 9);
  for (mlir::Type type : op->getOperandTypes()) {
    Tensor& tensor =
        operands.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.isFloat()) tensor.setFloat(i, normal(generator));
      if (!tensor.isFloat()) tensor.setInt(i, digit(generator));
    }
  }
  return operands;
}

bool allAreTensors(Operation* op) {
  const auto is_tensor = [](mlir::Type type) {
    return mlir::isa<mlir::RankedTensorType>(type);
  };
  return llvm::all_of(op->getOperandTypes(), is_tensor) &&
         llvm::all_of(op->getResultTypes(), is_tensor);
}

bool mayBeDivided(const Factor& factor) {
  return factor.kind == FactorKind::kCarried || IsReduced(factor.kind) ||
         IsHalo(factor.kind);
}

int64_t evenBlock(const Factor& factor, int64_t shards) {
  return std::max<int64_t>(1, (factor.size + shards - 1) / shards);
}

// E.g. "with k=5 in 3 blocks of 2: ".
std::string describe(const ShardingRule& rule,
                     ArrayRef<FactorDivision> divisions) {
  std::string text = "with ";
  for (const FactorDivision& division : divisions) {
    if (&division != divisions.data()) text += " and ";
    text += terms::FactorName(division.factor) + "=" +
            std::to_string(rule.factors[division.factor].size) + " in " +
            std::to_string(division.shards) + " blocks of " +
            std::to_string(division.block);
  }
  return text + ": ";
}

// All divisions of one factor, then of each pair.
std::vector<SmallVector<FactorDivision>> divisionsOf(const ShardingRule& rule,
                                                     int64_t max_shards) {
  std::vector<SmallVector<FactorDivision>> alone, pairs;
  const int count = static_cast<int>(rule.factors.size());
  for (int i = 0; i < count; ++i) {
    if (!mayBeDivided(rule.factors[i])) continue;
    for (int64_t n = 2; n <= max_shards; ++n) {
      const FactorDivision division = {i, n, evenBlock(rule.factors[i], n)};
      alone.push_back({division});
      alone.push_back({{i, n, division.block + 1}});
      for (int j = i + 1; j < count; ++j) {
        if (!mayBeDivided(rule.factors[j])) continue;
        for (int64_t m = 2; n * m <= max_shards; ++m)
          pairs.push_back({division, {j, m, evenBlock(rule.factors[j], m)}});
      }
    }
  }
  llvm::append_range(alone, pairs);
  return alone;
}

// Checks f(a + b) = f(a) + f(b): `operands` are split, the others unchanged.
std::string findNonlinearity(Operation* op, ArrayRef<int> operands,
                             std::mt19937_64& generator) {
  SmallVector<Tensor> a = randomOperands(op, 1, generator), b = a, sum = a;
  const SmallVector<Tensor> other = randomOperands(op, 1, generator);
  for (int operand : operands) {
    b[operand] = other[operand];
    for (int64_t i = 0; i < sum[operand].size(); ++i)
      combine(Reduction::kSum, sum[operand], b[operand], i);
  }
  const auto of_a = evaluate(op, a), of_b = evaluate(op, b),
             of_sum = evaluate(op, sum);
  if (mlir::failed(of_a) || mlir::failed(of_b) || mlir::failed(of_sum))
    return kNoMeaning;
  for (size_t i = 0; i < of_a->size(); ++i) {
    Tensor total = (*of_a)[i];
    const double slack =
        toleranceOf(op) * std::max({largestIn(total), largestIn((*of_b)[i]),
                                    largestIn((*of_sum)[i])});
    for (int64_t at = 0; at < total.size(); ++at) {
      combine(Reduction::kSum, total, (*of_b)[i], at);
      if (!areClose(total, at, (*of_sum)[i], at, slack))
        return "not linear in the operands given as such: of a sum it gives " +
               numberAt((*of_sum)[i], at) + ", of the summands " +
               numberAt(total, at);
    }
  }
  return "";
}

}  // namespace

std::string findUnsoundness(Operation* op, const ShardingRule& rule,
                            ArrayRef<FactorDivision> divisions,
                            ArrayRef<Tensor> operands) {
  const auto expected = evaluate(op, operands);
  if (mlir::failed(expected)) return kNoMeaning;
  return DividedRun(op, rule, divisions, operands).compareWith(*expected);
}

std::string findNonlinearity(Operation* op, const ShardingRule& rule,
                             uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::string found;
  if (!rule.linear.empty())
    found = findNonlinearity(op, rule.linear, generator);
  for (int operand : rule.multilinear) {
    if (found.empty()) found = findNonlinearity(op, {operand}, generator);
  }
  return found;
}

std::string findUnsoundness(Operation* op, const ShardingRule& rule,
                            int64_t max_shards, uint64_t seed) {
  std::string found =
      findFlaw(rule, op->getOperandTypes(), op->getResultTypes());
  if (!found.empty()) return found;
  if (!allAreTensors(op)) return kNoTensors;
  std::mt19937_64 generator(seed);
  SmallVector<Tensor> operands = randomOperands(op, 0, generator);
  auto expected = evaluate(op, operands);
  if (mlir::failed(expected)) {  // a division by 0
    operands = randomOperands(op, 1, generator);
    expected = evaluate(op, operands);
  }
  if (mlir::failed(expected)) return kNoMeaning;
  for (const auto& divisions : divisionsOf(rule, max_shards)) {
    found = DividedRun(op, rule, divisions, operands).compareWith(*expected);
    if (!found.empty()) return describe(rule, divisions) + found;
  }
  return findNonlinearity(op, rule, seed);
}

std::string findUnsoundnessShrunken(Operation* op, const ShardingRule& rule,
                                    int64_t max_shards, uint64_t seed) {
  constexpr int64_t kMaxSize = 5;  // not divisible by two, three or four
  std::string flaw =
      findFlaw(rule, op->getOperandTypes(), op->getResultTypes());
  if (!flaw.empty()) return flaw;
  if (!allAreTensors(op)) return kNoTensors;
  const ShrunkenOp shrunken = shrink(op, rule, kMaxSize);
  if (!shrunken.error.empty()) return shrunken.error;
  return findUnsoundness(shrunken.op, shrunken.rule, max_shards, seed);
}

}  // namespace partita::nn
