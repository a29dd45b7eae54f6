// Activations are the other operands of products with weights.
#include "compiler/quantize/activations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::quantize {
namespace {

using llvm::ArrayRef;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
namespace arith = mlir::arith;

constexpr double kSteps = 255;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

void inlineCall(CallOp call, FuncOp callee) {
  OpBuilder builder(call);
  mlir::IRMapping mapping;
  mapping.map(callee.getArguments(), call.getOperands());
  for (mlir::Operation& op : callee.front().without_terminator())
    builder.clone(op, mapping);
  auto results = callee.front().getTerminator()->getOperands();
  for (auto [result, value] : llvm::zip_equal(call.getResults(), results))
    result.replaceAllUsesWith(mapping.lookup(value));
  call.erase();
}

// Collects the products and convolutions that read a weight, through transposes
// and reshapes.
void findProducts(Value weight,
                  llvm::SmallVectorImpl<mlir::OpOperand*>& operands) {
  for (mlir::OpOperand& use : weight.getUses()) {
    if (auto transpose = llvm::dyn_cast<nn::TransposeOp>(use.getOwner()))
      findProducts(transpose.getResult(), operands);
    else if (auto reshape = llvm::dyn_cast<nn::ReshapeOp>(use.getOwner()))
      findProducts(reshape.getResult(), operands);
    else if (llvm::isa<nn::DotGeneralOp, nn::ConvOp>(use.getOwner()))
      operands.push_back(
          &use.getOwner()->getOpOperand(1 - use.getOperandNumber()));
  }
}

// The activations that products with `weight` read, in the order of @main: a
// value's uses have an order that a copy of the module may not have.
llvm::SmallVector<mlir::OpOperand*> operandsOfProducts(Value weight) {
  llvm::SmallVector<mlir::OpOperand*> operands;
  findProducts(weight, operands);
  llvm::sort(operands, [](mlir::OpOperand* a, mlir::OpOperand* b) {
    if (a->getOwner() == b->getOwner())
      return a->getOperandNumber() < b->getOperandNumber();
    return a->getOwner()->isBeforeInBlock(b->getOwner());
  });
  return operands;
}

// The first of `weight`_1, `weight`_2, ... that is not in `names`; adds it.
std::string unusedName(const std::string& weight,
                       std::set<std::string>& names) {
  std::string name;
  int number = 0;
  do name = weight + "_" + std::to_string(++number);
  while (!names.insert(name).second);
  return name;
}

// The only dimension of the operand that its product sums over, or -1.
int64_t contractedBy(mlir::OpOperand& operand) {
  auto dot = llvm::dyn_cast<nn::DotGeneralOp>(operand.getOwner());
  if (!dot) return -1;
  const ArrayRef<int64_t> dims = operand.getOperandNumber() == 0
                                     ? dot.getLhsContract()
                                     : dot.getRhsContract();
  return dims.size() == 1 ? dims[0] : -1;
}

// One number for each channel of each activation, one after the other: all
// elements, or their squares, combined.
Value combined(OpBuilder& builder, mlir::Location loc,
               const std::vector<Activation>& activations, nn::ReduceKind kind,
               bool squares = false) {
  llvm::SmallVector<Value> parts;
  int64_t total = 0;
  for (const Activation& activation : activations) {
    llvm::SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < typeOf(activation.value).getRank(); ++dim)
      if (dim != activation.channel) dims.push_back(dim);
    Value value = activation.value;
    if (squares) value = arith::MulFOp::create(builder, loc, value, value);
    value = nn::ReduceOp::create(builder, loc, kind, value, dims);
    total += activation.channels();
    parts.push_back(nn::ReshapeOp::create(
        builder, loc,
        typeOf(value).clone(ArrayRef<int64_t>{activation.channels()}), value));
  }
  const auto type = typeOf(parts.front()).clone(ArrayRef<int64_t>{total});
  return nn::ConcatOp::create(builder, loc, type, parts,
                              builder.getI64IntegerAttr(0));
}

// A constant with one number for each channel, along an activation.
Value alongChannel(OpBuilder& builder, mlir::Location loc,
                   const Activation& activation,
                   const std::vector<float>& numbers) {
  const auto type = RankedTensorType::get(
      {static_cast<int64_t>(numbers.size())}, builder.getF32Type());
  const Value vector = arith::ConstantOp::create(
      builder, loc,
      mlir::DenseElementsAttr::get(type, ArrayRef<float>(numbers)));
  return nn::BroadcastOp::create(builder, loc, activation.value.getType(),
                                 vector, ArrayRef<int64_t>{activation.channel});
}

// Counts the elements of a value in equal bins from range.low to range.high.
Value countBins(OpBuilder& builder, mlir::Location loc,
                const Activation& activation, const Range& range) {
  Value value = activation.value;
  if (!range.factors.empty())
    value = arith::DivFOp::create(
        builder, loc, value,
        alongChannel(builder, loc, activation, range.factors));
  RankedTensorType type =
      typeOf(value).clone(ArrayRef<int64_t>{typeOf(value).getNumElements()});
  const auto splat = [&](RankedTensorType of, double number) -> Value {
    return arith::ConstantOp::create(
        builder, loc,
        mlir::DenseElementsAttr::get(
            of, builder.getFloatAttr(of.getElementType(), number)));
  };
  const double width = range.high > range.low ? range.high - range.low : 1;
  Value place = nn::ReshapeOp::create(builder, loc, type, value);
  place = arith::SubFOp::create(builder, loc, place, splat(type, range.low));
  place = arith::MulFOp::create(
      builder, loc, place, splat(type, static_cast<double>(kBins) / width));
  place = arith::MaximumFOp::create(builder, loc, place, splat(type, 0));
  place = arith::MinimumFOp::create(
      builder, loc, place, splat(type, static_cast<double>(kBins - 1)));
  const auto index =
      RankedTensorType::get({type.getNumElements(), 1}, builder.getI64Type());
  const Value bins = nn::ReshapeOp::create(
      builder, loc, index,
      arith::FPToSIOp::create(
          builder, loc,
          RankedTensorType::get(type.getShape(), builder.getI64Type()), place));
  const auto counts = RankedTensorType::get({kBins}, builder.getF32Type());
  return nn::ScatterOp::create(builder, loc, counts, splat(counts, 0), bins,
                               splat(type, 1), ArrayRef<int64_t>{0}, 0,
                               nn::ScatterKind::add);
}

// Makes `results` the results of @main.
void returnOnly(FuncOp main, ArrayRef<Value> results,
                ArrayRef<llvm::StringRef> names) {
  OpBuilder builder(main.getContext());
  main.front().getTerminator()->setOperands(results);
  llvm::SmallVector<mlir::Attribute> attributes;
  for (const llvm::StringRef name : names)
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name))));
  main.setType(builder.getFunctionType(main.front().getArgumentTypes(),
                                       mlir::ValueRange(results).getTypes()));
  main.setResAttrsAttr(builder.getArrayAttr(attributes));
}

// Builds round(x / divisor) + zero in [0, 255], and scale * (that - zero).
Value roundTrip(OpBuilder& builder, const Activation& activation, Value divisor,
                Value scale, Value zero) {
  const Value x = activation.value;
  const mlir::Location loc = x.getLoc();
  RankedTensorType type = typeOf(x);
  const auto repeated = [&](Value value) -> Value {
    const ArrayRef<int64_t> channel(activation.channel);
    return nn::BroadcastOp::create(
        builder, loc, type.clone(typeOf(value).getElementType()), value,
        typeOf(value).getRank() == 0 ? ArrayRef<int64_t>() : channel);
  };
  const auto splat = [&](double number) -> Value {
    return arith::ConstantOp::create(
        builder, loc,
        mlir::DenseElementsAttr::get(
            type, builder.getFloatAttr(type.getElementType(), number)));
  };
  const auto integers = type.clone(builder.getI32Type());
  Value steps = arith::DivFOp::create(builder, loc, x, repeated(divisor));
  steps = mlir::math::RoundEvenOp::create(builder, loc, steps);
  const Value offset =
      repeated(arith::SIToFPOp::create(builder, loc, typeOf(scale), zero));
  steps = arith::AddFOp::create(builder, loc, steps, offset);
  steps = arith::MaximumFOp::create(builder, loc, steps, splat(0));
  steps = arith::MinimumFOp::create(builder, loc, steps, splat(kSteps));
  const Value stored = arith::FPToUIOp::create(
      builder, loc, type.clone(builder.getI8Type()), steps);
  const Value wide = arith::ExtUIOp::create(builder, loc, integers, stored);
  const Value centred =
      arith::SubIOp::create(builder, loc, wide, repeated(zero));
  const Value numbers = arith::SIToFPOp::create(builder, loc, type, centred);
  return arith::MulFOp::create(builder, loc, numbers, repeated(scale));
}

}  // namespace

void inlineLayers(FuncOp main) {
  mlir::SymbolTable symbols(main->getParentOfType<mlir::ModuleOp>());
  // A function may call others.
  for (;;) {
    auto calls = llvm::to_vector(main.getOps<CallOp>());
    if (calls.empty()) break;
    for (CallOp call : calls)
      inlineCall(call, symbols.lookup<FuncOp>(call.getCallee()));
  }
  auto module = main->getParentOfType<mlir::ModuleOp>();
  for (FuncOp function : llvm::make_early_inc_range(module.getOps<FuncOp>()))
    if (function.isPrivate()) function.erase();
}

int64_t Activation::channels() const {
  return channel < 0 ? 1 : typeOf(value).getDimSize(channel);
}

std::vector<Activation> findActivations(FuncOp main,
                                        const std::vector<Weight>& weights) {
  llvm::MapVector<Value, Activation> found;
  std::map<unsigned, std::set<mlir::detail::ValueImpl*>> activations_of;
  std::set<unsigned> tables;
  std::set<std::string> names;
  for (const Weight& weight : weights) names.insert(weight.name);
  for (const Weight& weight : weights) {
    if (!weight.obstacle.empty()) continue;
    if (weight.is_table) tables.insert(weight.argument);
    bool is_named = false;  // an activation, after this weight
    for (mlir::OpOperand* operand :
         operandsOfProducts(main.getArgument(weight.argument))) {
      Activation& activation = found[operand->get()];
      const int64_t channel = contractedBy(*operand);
      if (activation.uses.empty()) {
        activation.channel = channel;
        activation.name =
            is_named ? unusedName(weight.name, names) : weight.name;
        is_named = true;
      } else if (activation.channel != channel) {
        activation.channel = -1;
      }
      activation.value = operand->get();
      activation.uses.push_back(operand);
      activation.weights.push_back(weight.argument);
      activations_of[weight.argument].insert(operand->get().getImpl());
    }
  }
  std::vector<Activation> activations;
  for (auto& [value, activation] : found) {
    // The factors of a weight's rows must be those of one activation.
    for (const unsigned weight : activation.weights)
      if (tables.count(weight) > 0 || activations_of[weight].size() > 1)
        activation.channel = -1;
    activations.push_back(std::move(activation));
  }
  return activations;
}

mlir::OwningOpRef<mlir::ModuleOp> rangeProbe(
    mlir::ModuleOp module, const std::vector<Weight>& weights) {
  mlir::OwningOpRef<mlir::ModuleOp> probe = module.clone();
  auto main = probe->lookupSymbol<FuncOp>("main");
  const std::vector<Activation> activations = findActivations(main, weights);
  OpBuilder builder(main.front().getTerminator());
  llvm::SmallVector<Value> results = {
      combined(builder, main.getLoc(), activations, nn::ReduceKind::min),
      combined(builder, main.getLoc(), activations, nn::ReduceKind::max),
      combined(builder, main.getLoc(), activations, nn::ReduceKind::sum,
               /*squares=*/true)};
  returnOnly(main, results, {kLows, kHighs, kSquares});
  return probe;
}

mlir::OwningOpRef<mlir::ModuleOp> histogramProbe(
    mlir::ModuleOp module, const std::vector<Weight>& weights,
    const std::vector<Range>& ranges) {
  mlir::OwningOpRef<mlir::ModuleOp> probe = module.clone();
  auto main = probe->lookupSymbol<FuncOp>("main");
  const std::vector<Activation> activations = findActivations(main, weights);
  OpBuilder builder(main.front().getTerminator());
  const mlir::Location loc = main.getLoc();
  const auto row = RankedTensorType::get({1, kBins}, builder.getF32Type());
  llvm::SmallVector<Value> rows;
  for (auto [activation, range] : llvm::zip_equal(activations, ranges))
    rows.push_back(nn::ReshapeOp::create(
        builder, loc, row, countBins(builder, loc, activation, range)));
  const auto all = RankedTensorType::get(
      {static_cast<int64_t>(rows.size()), kBins}, builder.getF32Type());
  const Value counts = nn::ConcatOp::create(builder, loc, all, rows,
                                            builder.getI64IntegerAttr(0));
  returnOnly(main, {counts}, {kCounts});
  return probe;
}

Grid gridOf(const Range& range) {
  // In f32, as the steps of training compute it (fake_quantize.cc).
  const float low = static_cast<float>(std::min(range.low, 0.0)),
              high = static_cast<float>(std::max(range.high, 0.0)),
              steps = static_cast<float>(kSteps);
  Grid grid;
  grid.scale = (high - low) / steps;
  if (!(grid.scale > 0)) return {1, 0};  // only zeros were seen
  grid.zero = static_cast<int32_t>(
      std::clamp(std::nearbyint(-low / grid.scale), 0.0f, steps));
  return grid;
}

unsigned addBuffer(FuncOp main, const std::string& name, RankedTensorType type,
                   mlir::Attribute source) {
  OpBuilder builder(main.getContext());
  mlir::NamedAttrList attributes;
  attributes.set(nn::kKindAttr, builder.getStringAttr("buffer"));
  attributes.set(nn::kNameAttr, builder.getStringAttr(name));
  if (source) attributes.set(nn::kSourceAttr, source);
  const unsigned number = main.getNumArguments();
  (void)main.insertArgument(number, type,
                            attributes.getDictionary(main.getContext()),
                            mlir::NameLoc::get(builder.getStringAttr(name)));
  return number;
}

GridArguments roundActivation(FuncOp main, const Activation& activation,
                              bool has_factors) {
  OpBuilder builder(main.getContext());
  const std::string name = activation.name + "_input_";
  GridArguments arguments;
  arguments.scale = addBuffer(main, name + "scale",
                              RankedTensorType::get({}, builder.getF32Type()));
  arguments.zero = addBuffer(main, name + "zero",
                             RankedTensorType::get({}, builder.getI32Type()));
  arguments.divisor = arguments.scale;
  if (has_factors)
    arguments.divisor = addBuffer(
        main, name + "divisor",
        RankedTensorType::get({activation.channels()}, builder.getF32Type()));
  builder.setInsertionPointAfterValue(activation.value);
  const Value rounded = roundTrip(
      builder, activation, main.getArgument(arguments.divisor),
      main.getArgument(arguments.scale), main.getArgument(arguments.zero));
  for (mlir::OpOperand* use : activation.uses) use->set(rounded);
  return arguments;
}

}  // namespace partita::quantize
