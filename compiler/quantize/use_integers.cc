// Changes @main's arguments, then the arguments of the functions that get them.
#include "compiler/quantize/use_integers.h"

#include <map>
#include <tuple>
#include <vector>

#include "compiler/quantize/find_weights.h"
#include "compiler/quantize/use_groups.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::quantize {
namespace {

using llvm::ArrayRef;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
namespace arith = mlir::arith;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

class Change {
 public:
  Change(FuncOp main, const std::vector<Weight>& weights)
      : main_(main), symbols_(main->getParentOfType<mlir::ModuleOp>()) {
    for (const Weight& weight : weights)
      if (weight.obstacle.empty()) weights_[weight.argument] = &weight;
  }

  std::map<unsigned, StepArguments> run() {
    splitFunctions();
    std::map<unsigned, StepArguments> steps;
    for (const auto& [argument, weight] : weights_)
      steps[argument] = change(main_, argument, *weight, weight->name);
    for (auto& [function, calls] : callsByFunction()) {
      auto callee = llvm::cast<FuncOp>(function);
      // The operands are equal in all calls; see splitFunctions.
      const std::vector<unsigned> operands = integerOperands(calls.front());
      for (const unsigned operand : operands) {
        const unsigned first = argumentOf(calls.front(), operand);
        change(callee, operand, *weights_[first], {});
        for (CallOp call : calls) {
          const StepArguments& own = steps[argumentOf(call, operand)];
          call->insertOperands(call->getNumOperands(),
                               {main_.getArgument(own.scale)});
          if (own.zero)
            call->insertOperands(call->getNumOperands(),
                                 {main_.getArgument(*own.zero)});
        }
      }
    }
    return steps;
  }

 private:
  static unsigned argumentOf(CallOp call, unsigned operand) {
    return llvm::cast<mlir::BlockArgument>(call.getOperand(operand))
        .getArgNumber();
  }

  std::vector<unsigned> integerOperands(CallOp call) const {
    std::vector<unsigned> operands;
    for (auto [i, operand] : llvm::enumerate(call.getOperands()))
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
          argument && weights_.count(argument.getArgNumber()) > 0)
        operands.push_back(static_cast<unsigned>(i));
    return operands;
  }

  llvm::MapVector<mlir::Operation*, llvm::SmallVector<CallOp>>
  callsByFunction() {
    llvm::MapVector<mlir::Operation*, llvm::SmallVector<CallOp>> calls;
    for (auto call : main_.getOps<CallOp>())
      calls[symbols_.lookup(call.getCallee())].push_back(call);
    return calls;
  }

  // Operand, group, has_zeros and is_float8 of each integer.
  using Operands = std::vector<std::tuple<unsigned, int64_t, bool, bool>>;

  Operands formsOf(CallOp call) const {
    Operands forms;
    for (const unsigned operand : integerOperands(call)) {
      const Weight& weight = *weights_.at(argumentOf(call, operand));
      forms.emplace_back(operand, weight.group, weight.has_zeros,
                         weight.is_float8);
    }
    return forms;
  }

  // Copies functions for calls with other weights, so that each argument of a
  // function is an integer of the same form in all of its calls, or in none.
  void splitFunctions() {
    for (auto& [function, calls] : callsByFunction()) {
      std::map<Operands, llvm::SmallVector<CallOp>> groups;
      for (CallOp call : calls) groups[formsOf(call)].push_back(call);
      for (auto group = std::next(groups.begin()); group != groups.end();
           ++group) {
        auto copy = llvm::cast<FuncOp>(function->clone());
        symbols_.insert(copy);
        for (CallOp call : group->second) call.setCallee(copy.getName());
      }
    }
  }

  // Makes an argument one of bytes and adds its scale, and perhaps its zero, as
  // the last arguments. Calls read the integers. `name` is the weight's; empty:
  // none.
  static StepArguments change(FuncOp function, unsigned number,
                              const Weight& weight, const std::string& name) {
    mlir::OpBuilder builder(function.getContext());
    mlir::BlockArgument argument = function.getArgument(number);
    const RankedTensorType type = typeOf(argument);
    if (!name.empty())
      function.setArgAttr(number, nn::kKindAttr,
                          builder.getStringAttr("buffer"));
    const auto add = [&](RankedTensorType added, const char* suffix) {
      mlir::NamedAttrList attributes;
      if (!name.empty()) {
        attributes.set(nn::kKindAttr, builder.getStringAttr("buffer"));
        attributes.set(nn::kNameAttr, builder.getStringAttr(name + suffix));
      }
      const unsigned place = function.getNumArguments();
      (void)function.insertArgument(
          place, added, attributes.getDictionary(builder.getContext()),
          argument.getLoc());
      return place;
    };
    StepArguments steps;
    if (weight.group > 0) {
      steps.scale =
          add(groupsType(weight, type, type.getElementType()), "_scale");
      if (weight.has_zeros)
        steps.zero =
            add(groupsType(weight, type, builder.getI8Type()), "_zero");
      argument.setType(packedType(weight, type));
    } else {
      llvm::SmallVector<int64_t> sizes;
      for (const int64_t dim : weight.channels)
        sizes.push_back(RankedTensorType(type).getDimSize(dim));
      steps.scale =
          add(RankedTensorType::get(sizes, type.getElementType()), "_scale");
      argument.setType(RankedTensorType::get(
          type.getShape(),
          weight.is_float8
              ? mlir::Type(builder.getType<mlir::Float8E4M3FNType>())
              : builder.getI8Type()));
    }
    function.setType(builder.getFunctionType(
        function.front().getArgumentTypes(), function.getResultTypes()));
    if (weight.group > 0)
      readGroups(function, argument, weight, steps, type);
    else
      readIntegers(function, argument, function.getArgument(steps.scale),
                   weight.channels, type);
    return steps;
  }

  static void readGroups(FuncOp function, mlir::BlockArgument argument,
                         const Weight& weight, const StepArguments& steps,
                         RankedTensorType type) {
    const GroupValues values = {
        argument, function.getArgument(steps.scale),
        steps.zero ? function.getArgument(*steps.zero) : Value()};
    for (mlir::Operation* user :
         llvm::make_early_inc_range(argument.getUsers()))
      if (auto gather = llvm::dyn_cast<nn::GatherOp>(user))
        lookUpGroups(gather, values);
    const auto reads = [](mlir::OpOperand& use) {
      return !llvm::isa<CallOp, nn::GatherOp>(use.getOwner());
    };
    if (!llvm::any_of(argument.getUses(), reads)) return;
    mlir::OpBuilder builder(function.getContext());
    builder.setInsertionPointToStart(&function.front());
    const Value wide =
        widenGroups(builder, argument.getLoc(), weight, values, type);
    argument.replaceUsesWithIf(wide, [&](mlir::OpOperand& use) {
      return reads(use) && !llvm::isa<nn::DequantizeOp>(use.getOwner());
    });
  }

  static Value widened(mlir::OpBuilder& builder, mlir::Location loc,
                       RankedTensorType type, Value bytes) {
    if (typeOf(bytes).getElementType().isInteger(8))
      return arith::SIToFPOp::create(builder, loc, type, bytes);
    return arith::ExtFOp::create(builder, loc, type, bytes);
  }

  static void readIntegers(FuncOp function, mlir::BlockArgument argument,
                           Value scale, ArrayRef<int64_t> channels,
                           RankedTensorType type) {
    mlir::OpBuilder builder(function.getContext());
    builder.setInsertionPointToStart(&function.front());
    const mlir::Location loc = argument.getLoc();
    for (mlir::Operation* user :
         llvm::make_early_inc_range(argument.getUsers()))
      if (auto gather = llvm::dyn_cast<nn::GatherOp>(user))
        changeTable(gather, argument, scale);
      else if (auto reshape = llvm::dyn_cast<nn::ReshapeOp>(user))
        changeReshape(reshape, argument, scale, channels);
    const auto reads = [](mlir::OpOperand& use) {
      return !llvm::isa<CallOp, nn::GatherOp, nn::ReshapeOp>(use.getOwner());
    };
    if (!llvm::any_of(argument.getUses(), reads)) return;
    const Value wide = widened(builder, loc, type, argument);
    const Value repeated =
        nn::BroadcastOp::create(builder, loc, type, scale, channels);
    const Value weight = arith::MulFOp::create(builder, loc, wide, repeated);
    argument.replaceUsesWithIf(weight, [&](mlir::OpOperand& use) {
      return reads(use) && use.getOwner() != wide.getDefiningOp();
    });
  }

  // Reshapes integers and their scales, so that products read the integers.
  static void changeReshape(nn::ReshapeOp reshape, Value weight, Value scale,
                            ArrayRef<int64_t> channels) {
    mlir::OpBuilder builder(reshape);
    const mlir::Location loc = reshape.getLoc();
    RankedTensorType type = reshape.getType();
    llvm::SmallVector<int64_t> dims, sizes;
    for (auto [i, dim] : llvm::enumerate(keptDims(reshape))) {
      if (!llvm::is_contained(channels, dim)) continue;
      dims.push_back(static_cast<int64_t>(i));
      sizes.push_back(type.getDimSize(static_cast<int64_t>(i)));
    }
    const Value integers = nn::ReshapeOp::create(
        builder, loc, type.clone(typeOf(weight).getElementType()), weight);
    const Value scales = nn::ReshapeOp::create(
        builder, loc, RankedTensorType::get(sizes, type.getElementType()),
        scale);
    const Value wide = widened(builder, loc, type, integers);
    reshape.replaceAllUsesWith(
        arith::MulFOp::create(
            builder, loc, wide,
            nn::BroadcastOp::create(builder, loc, type, scales, dims))
            .getResult());
    reshape.erase();
  }

  // Looks up integers and their rows' scales.
  static void changeTable(nn::GatherOp gather, Value table, Value scale) {
    mlir::OpBuilder builder(gather);
    const mlir::Location loc = gather.getLoc();
    const RankedTensorType type = gather.getType();
    const ArrayRef<int64_t> rows =
        typeOf(gather.getIndices()).getShape().drop_back();
    const Value integers = nn::GatherOp::create(
        builder, loc,
        RankedTensorType::get(type.getShape(), typeOf(table).getElementType()),
        table, gather.getIndices(), gather.getAxesAttr(),
        gather.getBatchDimsAttr());
    const Value scales = nn::GatherOp::create(
        builder, loc, RankedTensorType::get(rows, type.getElementType()), scale,
        gather.getIndices(), gather.getAxesAttr(), gather.getBatchDimsAttr());
    const auto dims = llvm::to_vector(
        llvm::seq<int64_t>(0, static_cast<int64_t>(rows.size())));
    const Value wide = widened(builder, loc, type, integers);
    gather.replaceAllUsesWith(
        arith::MulFOp::create(
            builder, loc, wide,
            nn::BroadcastOp::create(builder, loc, type, scales, dims))
            .getResult());
    gather.erase();
  }

  FuncOp main_;
  mlir::SymbolTable symbols_;
  std::map<unsigned, const Weight*> weights_;  // by argument of @main
};

}  // namespace

std::map<unsigned, StepArguments> useIntegers(
    FuncOp main, const std::vector<Weight>& weights) {
  return Change(main, weights).run();
}

}  // namespace partita::quantize
