// One rule for sums, one for products, one for all other operations.
#include "compiler/driver/verify/rounding_bounds.h"

#include <algorithm>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::driver {
namespace {

using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

constexpr double kCancelled = 10;

struct Magnitude {
  double largest = 0, bound = 0;
};
using Magnitudes = llvm::DenseMap<Value, Magnitude>;

bool isFloat(Value value) {
  return llvm::isa<mlir::FloatType>(
      mlir::getElementTypeOrSelf(value.getType()));
}

double boundOf(Operation* op, double largest, const Magnitudes& values) {
  double sum = 0, product = 1, relative = 1;
  unsigned floats = 0;
  for (Value operand : op->getOperands()) {
    if (!isFloat(operand)) continue;
    ++floats;
    const Magnitude magnitude = values.lookup(operand);
    sum = std::max(sum, magnitude.bound);
    product *= magnitude.bound;
    if (magnitude.largest > 0)
      relative = std::max(relative, magnitude.bound / magnitude.largest);
  }
  double bound = largest * relative;
  if (auto ruled = llvm::dyn_cast<nn::ShardingRuleOpInterface>(op)) {
    const nn::ShardingRule rule = ruled.getShardingRule();
    if (!rule.multilinear.empty()) bound = std::max(bound, product);
    if (floats > 0 && rule.linear.size() == floats) bound = sum;
  }
  return bound > kCancelled * largest ? bound : largest;
}

}  // namespace

std::vector<double> boundRoundings(FuncOp function,
                                   llvm::ArrayRef<double> arguments,
                                   LargestOf largest_of, TakeBounds take) {
  Magnitudes values;
  for (auto [argument, largest] :
       llvm::zip_equal(function.getArguments(), arguments))
    values[argument] = {largest, largest};
  for (Operation& op : function.front().without_terminator()) {
    std::vector<double> bounds;
    if (auto call = llvm::dyn_cast<CallOp>(op)) {
      std::vector<double> given;
      for (Value operand : op.getOperands())
        given.push_back(values.lookup(operand).bound);
      bounds =
          boundRoundings(mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
                             call, call.getCalleeAttr()),
                         given, largest_of, take);
      for (auto [result, bound] : llvm::zip_equal(op.getResults(), bounds))
        values[result] = {bound, bound};
      continue;
    }
    const std::vector<double> largest = largest_of(&op);
    for (auto [i, result] : llvm::enumerate(op.getResults())) {
      const double l = i < largest.size() ? largest[i] : 0;
      bounds.push_back(isFloat(result) ? boundOf(&op, l, values) : l);
      values[result] = {l, bounds.back()};
    }
    take(&op, bounds);
  }
  std::vector<double> returned;
  for (Value value : function.front().getTerminator()->getOperands())
    returned.push_back(values.lookup(value).bound);
  return returned;
}

}  // namespace partita::driver
