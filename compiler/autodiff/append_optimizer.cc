// Gradients become new parameters; see passes.td. The update of a parameter is
// a function, one for all parameters of a type.

#include "compiler/autodiff/glob_list.h"
#include "compiler/autodiff/optimizer.h"
#include "compiler/autodiff/passes.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_APPENDOPTIMIZERPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

constexpr char kGradientPrefix[] = "grad.";
constexpr char kMaster[] = "master";

// The type that a parameter is updated in.
RankedTensorType updatedType(Value parameter) {
  auto type = nn::MathBuilder::typeOf(parameter);
  return type.getElementTypeBitWidth() >= 32
             ? type
             : type.clone(mlir::Float32Type::get(parameter.getContext()));
}

class AppendOptimizer : public impl::AppendOptimizerPassBase<AppendOptimizer> {
 public:
  using AppendOptimizerPassBase::AppendOptimizerPassBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    if (mlir::failed(run(main))) signalPassFailure();
  }

 private:
  // A parameter and its gradient.
  struct Trained {
    std::string name;
    Value parameter, gradient;
    mlir::DictionaryAttr attributes;  // of the parameter's argument
  };

  LogicalResult run(FuncOp main) {
    FailureOr<Optimizer> chosen = chooseOptimizer();
    if (mlir::failed(chosen)) return failure();
    optimizer_ = *chosen;
    takeGradients(main);
    if (trained_.empty())
      return main.emitError(
          "expected results named 'grad.<parameter>', found none; "
          "--partita-differentiate makes them");
    addScalarInputs(main);
    mlir::OpBuilder builder(main.front().getTerminator());
    nn::MathBuilder math(builder, main.getLoc());
    buildCorrections(math, builder, optimizer_, step_, scalars_);
    if (clip_norm > 0) clip(main, builder, math);
    for (const Trained& trained : trained_) update(main, trained);
    return success();
  }

  FailureOr<Optimizer> chooseOptimizer() {
    Optimizer result;
    if (optimizer == "sgd")
      result.kind = OptimizerKind::kSgd;
    else if (optimizer == "adam")
      result.kind = OptimizerKind::kAdam;
    else if (optimizer == "adamw")
      result.kind = OptimizerKind::kAdamW;
    else if (optimizer == "lamb")
      result.kind = OptimizerKind::kLamb;
    else
      return getOperation().emitError(
                 "expected the optimizer to be sgd, adam, adamw or lamb, "
                 "found '")
                 << optimizer << "'",
             failure();
    result.beta1 = beta1, result.beta2 = beta2, result.epsilon = epsilon;
    result.momentum = momentum, result.weight_decay = weight_decay;
    return result;
  }

  // Out of the results, unless they are asked for.
  void takeGradients(FuncOp main) {
    mlir::Operation* terminator = main.front().getTerminator();
    llvm::StringMap<unsigned> arguments;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr))
        arguments[name.getValue()] = i;
    for (unsigned i = 0; i < main.getNumResults();) {
      auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      llvm::StringRef text = name ? name.getValue() : "";
      auto found = text.consume_front(kGradientPrefix) ? arguments.find(text)
                                                       : arguments.end();
      if (found == arguments.end()) {
        ++i;
        continue;
      }
      trained_.push_back({text.str(), main.getArgument(found->second),
                          terminator->getOperand(i),
                          main.getArgAttrDict(found->second)});
      if (keep_gradients) {
        showAsInModel(main, i++, trained_.back());
      } else {
        (void)main.eraseResult(i);
        terminator->eraseOperand(i);
      }
    }
  }

  // Who asks for a gradient knows the parameter as the model has it.
  static void showAsInModel(FuncOp main, unsigned result,
                            const Trained& trained) {
    auto viewed = llvm::dyn_cast_if_present<mlir::TypeAttr>(
        trained.attributes.get(nn::kViewOfAttr));
    if (!viewed) return;
    mlir::Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    Value shown = nn::ReshapeOp::create(builder, trained.gradient.getLoc(),
                                        viewed.getValue(), trained.gradient);
    terminator->setOperand(result, shown);
    SmallVector<mlir::Type> results(main.getResultTypes());
    results[result] = shown.getType();
    main.setType(mlir::FunctionType::get(main.getContext(),
                                         main.getArgumentTypes(), results));
  }

  void addScalarInputs(FuncOp main) {
    mlir::Builder builder(main.getContext());
    auto rate = RankedTensorType::get({}, builder.getF32Type()),
         count = RankedTensorType::get({}, builder.getI64Type());
    scalars_.learning_rate = addInput(main, "lr", "learning_rate", rate);
    step_ = optimizer_.kind == OptimizerKind::kSgd
                ? Value()
                : addInput(main, "step", "step", count);
  }

  // Behind the other inputs.
  static Value addInput(FuncOp main, llvm::StringRef name, llvm::StringRef role,
                        RankedTensorType type) {
    unsigned index = 0;
    while (index < main.getNumArguments()) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(index, nn::kKindAttr);
      if (kind && kind.getValue() != "input") break;
      ++index;
    }
    mlir::Builder builder(main.getContext());
    const auto named = [&](llvm::StringRef key, llvm::StringRef value) {
      return builder.getNamedAttr(key, builder.getStringAttr(value));
    };
    (void)main.insertArgument(
        index, type,
        builder.getDictionaryAttr({named(nn::kKindAttr, "input"),
                                   named(nn::kNameAttr, name),
                                   named(nn::kRoleAttr, role)}),
        main.getLoc());
    return main.getArgument(index);
  }

  // The state of a parameter lies as the parameter does. It is zero at first,
  // but for the master copy.
  static Value addState(FuncOp main, const Trained& trained,
                        const std::string& state, mlir::Type type) {
    mlir::Builder builder(main.getContext());
    mlir::NamedAttrList attributes(trained.attributes);
    attributes.set(nn::kKindAttr, builder.getStringAttr("state"));
    attributes.set(nn::kNameAttr,
                   builder.getStringAttr(trained.name + "/" + state));
    if (state != kMaster)
      attributes.set(nn::kSourceAttr,
                     nn::InitAttr::get(builder.getContext(), "zeros",
                                       builder.getF64FloatAttr(0), 0));
    const unsigned index = main.getNumArguments();
    (void)main.insertArgument(index, type,
                              attributes.getDictionary(main.getContext()),
                              trained.parameter.getLoc());
    return main.getArgument(index);
  }

  static void addResult(FuncOp main, Value value, llvm::StringRef attribute,
                        const std::string& text, unsigned index) {
    mlir::Builder builder(main.getContext());
    (void)main.insertResult(index, value.getType(),
                            builder.getDictionaryAttr(builder.getNamedAttr(
                                attribute, builder.getStringAttr(text))));
    main.front().getTerminator()->insertOperands(index, value);
  }

  // All gradients times min(1, clip_norm / their norm), as PyTorch's
  // clip_grad_norm_ does.
  void clip(FuncOp main, mlir::OpBuilder& builder, nn::MathBuilder& math) {
    Value total;
    for (const Trained& trained : trained_) {
      Value gradient = math.widen(trained.gradient);
      Value sum = math.multiply(gradient, gradient);
      SmallVector<int64_t> dims;
      for (int64_t i = 0; i < nn::MathBuilder::typeOf(sum).getRank(); ++i)
        dims.push_back(i);
      if (!dims.empty()) sum = math.reduce(nn::ReduceKind::sum, sum, dims);
      total = total ? math.add(total, sum) : sum;
    }
    Value norm = math.sqrt(total);
    Value limit = math.constant(nn::MathBuilder::typeOf(norm), clip_norm);
    Value factor = mlir::arith::MinimumFOp::create(
        builder, main.getLoc(), math.divide(limit, math.add(norm, 1e-6)),
        math.constant(nn::MathBuilder::typeOf(norm), 1));
    for (Trained& trained : trained_) {
      Value wide = math.widen(trained.gradient);
      trained.gradient = math.narrow(
          math.multiply(wide, math.broadcast(factor, math.typeOf(wide), {})),
          math.typeOf(trained.gradient));
    }
    unsigned index = 0;  // behind the loss, in front of updates
    while (index < main.getNumResults() &&
           !main.getResultAttr(index, nn::kUpdatesAttr))
      ++index;
    addResult(main, norm, nn::kNameAttr, "grad_norm", index);
  }

  void update(FuncOp main, const Trained& trained) {
    mlir::OpBuilder builder(main.front().getTerminator());
    Optimizer own = optimizer_;
    if (GlobList(no_decay).matches(trained.name)) own.weight_decay = 0;
    const RankedTensorType type = updatedType(trained.parameter);
    Value updated = trained.parameter;
    SmallVector<std::string> names = {trained.name};
    if (updated.getType() != type) {
      updated = addState(main, trained, kMaster, type);
      names.push_back(trained.name + "/" + kMaster);
    }
    SmallVector<Value> operands = {updated, trained.gradient};
    for (const std::string& state : own.states()) {
      operands.push_back(addState(main, trained, state, type));
      names.push_back(trained.name + "/" + state);
    }
    for (Value scalar : {scalars_.learning_rate, scalars_.first_correction,
                         scalars_.second_correction})
      if (scalar) operands.push_back(scalar);
    auto call = mlir::func::CallOp::create(builder, trained.parameter.getLoc(),
                                           functionOf(own, operands), operands);
    for (auto [name, value] : llvm::zip_equal(names, call.getResults()))
      addResult(main, value, nn::kUpdatesAttr, name, main.getNumResults());
  }

  // One for each parameter: dimensions of parameters of one shape are not one.
  // Those that are still equal when the program is divided become one then.
  FuncOp functionOf(const Optimizer& own, llvm::ArrayRef<Value> operands) {
    const size_t states = own.states().size();
    mlir::Type type = operands[0].getType(), gradient = operands[1].getType();
    const mlir::Location loc = operands[0].getLoc();
    SmallVector<mlir::Type> inputs, results(1 + states, type);
    for (Value operand : operands) inputs.push_back(operand.getType());
    if (gradient != type) results.insert(results.begin(), gradient);
    FuncOp function =
        FuncOp::create(loc, optimizer + "_update",
                       mlir::FunctionType::get(&getContext(), inputs, results));
    function.setPrivate();
    mlir::OpBuilder body =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    nn::MathBuilder math(body, loc);
    SmallVector<Value> given(function.getArguments());
    StepScalars scalars;
    scalars.learning_rate = given[2 + states];
    if (scalars_.first_correction) {
      scalars.first_correction = given[3 + states];
      scalars.second_correction = given[4 + states];
    }
    SmallVector<Value> updated =
        buildUpdate(math, own, given[0], math.widen(given[1]),
                    llvm::ArrayRef(given).slice(2, states), scalars);
    if (gradient != type)  // a gradient has the type of its parameter
      updated.insert(
          updated.begin(),
          math.narrow(updated[0], llvm::cast<RankedTensorType>(gradient)));
    mlir::func::ReturnOp::create(body, loc, updated);
    mlir::SymbolTable(getOperation()).insert(function);
    return function;
  }

  Optimizer optimizer_;
  StepScalars scalars_;
  Value step_;
  SmallVector<Trained> trained_;
};

}  // namespace
}  // namespace partita::autodiff
