// Gradients become new parameters; see passes.td. The update of a parameter is
// a function.

#include "compiler/autodiff/glob_list.h"
#include "compiler/autodiff/loss_scale.h"
#include "compiler/autodiff/microbatches.h"
#include "compiler/autodiff/optimizer.h"
#include "compiler/autodiff/passes.h"
#include "compiler/autodiff/rate_scale.h"
#include "dialects/dist/annotations.h"
#include "llvm/ADT/StringSwitch.h"
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

constexpr char kMaster[] = "master", kMomentum[] = "exp_avg";

// The type that a parameter is updated in.
RankedTensorType updatedType(Value parameter) {
  auto type = nn::MathBuilder::typeOf(parameter);
  return type.getElementTypeBitWidth() >= 32
             ? type
             : type.clone(mlir::Float32Type::get(parameter.getContext()));
}

// Without some of its dimensions.
SmallVector<int64_t> shapeWithout(llvm::ArrayRef<int64_t> shape,
                                  llvm::ArrayRef<int64_t> gone) {
  SmallVector<int64_t> result;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(gone, static_cast<int64_t>(dim)))
      result.push_back(size);
  return result;
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

  // A parameter's, as the model has it.
  static llvm::ArrayRef<int64_t> modelShape(const Trained& trained) {
    auto viewed = llvm::dyn_cast_if_present<mlir::TypeAttr>(
        trained.attributes.get(nn::kViewOfAttr));
    return llvm::cast<RankedTensorType>(viewed ? viewed.getValue()
                                               : trained.parameter.getType())
        .getShape();
  }

  LogicalResult run(FuncOp main) {
    FailureOr<Optimizer> chosen = chooseOptimizer();
    if (mlir::failed(chosen)) return failure();
    optimizer_ = *chosen;
    loss_scale_ = LossScale::find(main);
    takeGradients(main);
    if (trained_.empty())
      return main.emitError(
          "expected results named 'grad.<parameter>', found none; "
          "--partita-differentiate makes them");
    if (mlir::failed(checkNoDecay(main)) || mlir::failed(readRateScales(main)))
      return failure();
    addScalarInputs(main);
    mlir::OpBuilder builder(main.front().getTerminator());
    nn::MathBuilder math(builder, main.getLoc());
    // Steps that were skipped are none.
    if (loss_scale_ && step_)
      step_ = mlir::arith::SubIOp::create(builder, main.getLoc(), step_,
                                          loss_scale_->skipped);
    buildCorrections(math, builder, optimizer_, step_, scalars_);
    if (clip_norm > 0 || loss_scale_) measure(main, math);
    if (loss_scale_) skipOverflows(main, math);
    for (const Trained& trained : trained_) update(main, trained);
    return success();
  }

  FailureOr<Optimizer> chooseOptimizer() {
    Optimizer result;
    const auto kind =
        llvm::StringSwitch<std::optional<OptimizerKind>>(optimizer)
            .Case("sgd", OptimizerKind::kSgd)
            .Case("adam", OptimizerKind::kAdam)
            .Case("adamw", OptimizerKind::kAdamW)
            .Case("lamb", OptimizerKind::kLamb)
            .Case("adafactor", OptimizerKind::kAdafactor)
            .Case("1bit-adam", OptimizerKind::kOneBitAdam)
            .Default(std::nullopt);
    if (!kind)
      return getOperation().emitError(
                 "expected the optimizer to be sgd, adam, adamw, lamb, "
                 "adafactor or 1bit-adam, found '")
                 << optimizer << "'",
             failure();
    if (nesterov && (kind != OptimizerKind::kSgd || momentum <= 0))
      return getOperation().emitError(
                 "expected --nesterov with --train sgd and --momentum above 0, "
                 "found ")
                 << optimizer << " and momentum " << momentum,
             failure();
    if (mlir::failed(checkOneBit(*kind))) return failure();
    result.warmup = onebit_warmup;
    result.kind = *kind;
    result.nesterov = nesterov;
    result.beta1 = beta1, result.beta2 = beta2, result.epsilon = epsilon;
    result.momentum = momentum, result.weight_decay = weight_decay;
    return result;
  }

  // What needs whole gradients cannot be had where only momenta are exchanged.
  LogicalResult checkOneBit(OptimizerKind kind) {
    const bool one_bit = kind == OptimizerKind::kOneBitAdam;
    if (one_bit != (onebit_warmup > 0))
      return getOperation().emitError(
                 "expected --train 1bit-adam and --onebit-warmup, the steps "
                 "that --train adamw has made before, together; found ")
             << optimizer << " and " << onebit_warmup.getValue() << " steps";
    if (!one_bit) return success();
    if (clip_norm > 0)
      return getOperation().emitError(
          "expected no --clip-norm with --train 1bit-adam: the norm is that of "
          "whole gradients, and momenta are exchanged in their place");
    if (LossScale::find(getOperation().lookupSymbol<FuncOp>("main")))
      return getOperation().emitError(
          "expected --precision f32 or bf16 with --train 1bit-adam, found f16: "
          "whether a gradient overflows is seen in whole gradients, and "
          "momenta are exchanged in their place");
    return success();
  }

  LogicalResult checkNoDecay(FuncOp main) {
    SmallVector<llvm::StringRef> names;
    for (const Trained& trained : trained_) names.push_back(trained.name);
    const std::string pattern = firstUnmatched(no_decay, names);
    if (pattern.empty()) return success();
    return main.emitError("--no-decay: expected '")
           << pattern << "' to match a parameter that is trained, found none; "
           << "one is '" << names.front() << "'";
  }

  // An item that changes nothing is a mistake.
  LogicalResult readRateScales(FuncOp main) {
    const auto error = [&] { return main.emitError("--lr-scale: "); };
    auto scales = parseRateScales(lr_scale, error);
    if (mlir::failed(scales)) return failure();
    for (const RateScale& scale : *scales)
      if (llvm::none_of(trained_, [&](const Trained& trained) {
            return scale.names.matches(trained.name);
          }))
        return error() << "expected '" << scale.text
                       << "' to match a parameter that is trained, found "
                          "none; one is '"
                       << trained_.front().name << "'";
    rate_scales_ = std::move(*scales);
    return success();
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
  void showAsInModel(FuncOp main, unsigned result, const Trained& trained) {
    auto viewed = llvm::dyn_cast_if_present<mlir::TypeAttr>(
        trained.attributes.get(nn::kViewOfAttr));
    if (!viewed && !loss_scale_) return;
    mlir::Operation* terminator = main.front().getTerminator();
    mlir::OpBuilder builder(terminator);
    nn::MathBuilder math(builder, trained.gradient.getLoc());
    Value shown = trained.gradient;
    if (loss_scale_) {  // without the scale it may not be a 16-bit number
      shown = math.widen(shown);
      shown = math.divide(shown,
                          math.broadcast(loss_scale_->scale,
                                         nn::MathBuilder::typeOf(shown), {}));
    }
    if (viewed)
      shown = math.reshape(
          shown, llvm::cast<RankedTensorType>(viewed.getValue()).getShape());
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

  // A state of a parameter's shape lies as the parameter does. It is zero at
  // first, but for the master copy.
  static Value addState(FuncOp main, const Trained& trained,
                        const std::string& state, mlir::Type type) {
    mlir::NamedAttrList attributes(trained.attributes);
    if (state != kMaster)
      attributes.set(nn::kSourceAttr, zeros(main.getContext()));
    return addState(main, trained, state, type, attributes);
  }

  // One of rows or columns.
  static Value addReducedState(FuncOp main, const Trained& trained,
                               const State& state, RankedTensorType type) {
    mlir::NamedAttrList attributes;
    attributes.set(nn::kSourceAttr, zeros(main.getContext()));
    if (trained.attributes.get(nn::kViewOfAttr)) {
      SmallVector<int64_t> shape(modelShape(trained));
      shape.erase(shape.begin() + state.model_without);
      attributes.set(nn::kViewOfAttr, mlir::TypeAttr::get(type.clone(shape)));
    }
    return addState(main, trained, state.name, type, attributes);
  }

  static mlir::Attribute zeros(mlir::MLIRContext* context) {
    return nn::InitAttr::get(context, "zeros",
                             mlir::Builder(context).getF64FloatAttr(0), 0);
  }

  static Value addState(FuncOp main, const Trained& trained,
                        const std::string& state, mlir::Type type,
                        mlir::NamedAttrList& attributes) {
    mlir::Builder builder(main.getContext());
    attributes.set(nn::kKindAttr, builder.getStringAttr("state"));
    attributes.set(nn::kNameAttr,
                   builder.getStringAttr(trained.name + "/" + state));
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

  // What all gradients are multiplied with: back from the loss scale, and to
  // a norm of at most clip_norm, as PyTorch's clip_grad_norm_ does.
  void measure(FuncOp main, nn::MathBuilder& math) {
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
    const auto type = nn::MathBuilder::typeOf(total);
    Value one = math.constant(type, 1);
    if (loss_scale_) {
      // NaN is not less either.
      finite_ = math.compare(
          mlir::arith::CmpFPredicate::OLT, total,
          math.constant(type, std::numeric_limits<double>::infinity()));
      factor_ = math.divide(one, loss_scale_->scale);
    }
    if (clip_norm <= 0) return;
    Value norm = math.sqrt(total);
    if (factor_) norm = math.multiply(norm, factor_);
    mlir::OpBuilder builder(main.front().getTerminator());
    Value clipping = mlir::arith::MinimumFOp::create(
        builder, main.getLoc(),
        math.divide(math.constant(type, clip_norm), math.add(norm, 1e-6)), one);
    factor_ = factor_ ? math.multiply(factor_, clipping) : clipping;
    addResult(main, norm, nn::kNameAttr, "grad_norm", firstUpdate(main));
  }

  // Behind the loss and what else is shown.
  static unsigned firstUpdate(FuncOp main) {
    unsigned index = 0;
    while (index < main.getNumResults() &&
           !main.getResultAttr(index, nn::kUpdatesAttr))
      ++index;
    return index;
  }

  // The next scale; buffers that the model updates itself stay as they were.
  void skipOverflows(FuncOp main, nn::MathBuilder& math) {
    mlir::Operation* terminator = main.front().getTerminator();
    llvm::StringMap<Value> arguments;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr))
        arguments[name.getValue()] = main.getArgument(i);
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (auto name =
              main.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr))
        terminator->setOperand(
            i, chooseFinite(math, finite_, terminator->getOperand(i),
                            arguments.lookup(name.getValue())));
    for (auto& [name, value] :
         loss_scale_->next(math, finite_, growth_interval)) {
      if (name == kSkippedState)
        addResult(main, value, nn::kNameAttr, kSkippedResult,
                  firstUpdate(main));
      addResult(main, value, nn::kUpdatesAttr, name, main.getNumResults());
    }
  }

  static Value chooseFinite(nn::MathBuilder& math, Value finite, Value updated,
                            Value old) {
    const auto type = nn::MathBuilder::typeOf(updated);
    return math.select(
        math.broadcast(finite,
                       RankedTensorType::get(type.getShape(), math.i1()), {}),
        updated, old);
  }

  void update(FuncOp main, const Trained& trained) {
    mlir::OpBuilder builder(main.front().getTerminator());
    Optimizer own = optimizer_;
    if (GlobList(no_decay).matches(trained.name)) own.weight_decay = 0;
    for (const RateScale& scale : rate_scales_)
      if (scale.names.matches(trained.name)) own.rate_scale = scale.factor;
    const RankedTensorType type = updatedType(trained.parameter);
    Value updated = trained.parameter;
    SmallVector<std::string> names = {trained.name};
    if (updated.getType() != type) {
      updated = addState(main, trained, kMaster, type);
      names.push_back(trained.name + "/" + kMaster);
    }
    const Factored factored = factor(type.getShape(), modelShape(trained));
    SmallVector<Value> operands = {updated, trained.gradient};
    if (own.kind == OptimizerKind::kOneBitAdam)
      operands[1] = updateMomentum(main, trained, type);
    for (const State& state : own.states(factored)) {
      operands.push_back(
          state.without.empty()
              ? addState(main, trained, state.name, type)
              : addReducedState(
                    main, trained, state,
                    type.clone(shapeWithout(factored.shape, state.without))));
      if (!state.is_frozen) names.push_back(trained.name + "/" + state.name);
    }
    for (mlir::Value StepScalars::* scalar : kStepScalars)
      if (scalars_.*scalar) operands.push_back(scalars_.*scalar);
    for (Value scalar : {factor_, finite_})
      if (scalar) operands.push_back(scalar);
    auto call = mlir::func::CallOp::create(
        builder, trained.parameter.getLoc(),
        functionOf(own, factored, operands, trained.parameter.getType()),
        operands);
    for (auto [name, value] : llvm::zip_equal(names, call.getResults()))
      addResult(main, value, nn::kUpdatesAttr, name, main.getNumResults());
  }

  // By itself, as it is what devices may exchange.
  Value updateMomentum(FuncOp main, const Trained& trained,
                       RankedTensorType type) {
    const mlir::Location loc = trained.parameter.getLoc();
    Value old = addState(main, trained, kMomentum, type);
    SmallVector<Value> operands = {old, trained.gradient};
    FuncOp function = FuncOp::create(
        loc, optimizer + "_momentum",
        mlir::FunctionType::get(&getContext(),
                                mlir::ValueRange(operands).getTypes(), {type}));
    function.setPrivate();
    mlir::OpBuilder body =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    nn::MathBuilder math(body, loc);
    mlir::func::ReturnOp::create(
        body, loc,
        buildMomentum(math, optimizer_, function.getArgument(0),
                      math.widen(function.getArgument(1))));
    mlir::SymbolTable(getOperation()).insert(function);
    mlir::OpBuilder builder(main.front().getTerminator());
    auto call = mlir::func::CallOp::create(builder, loc, function, operands);
    call->setAttr(dist::kOneBitAttr, builder.getStringAttr(trained.name));
    call->setAttr(dist::kBetaAttr, builder.getF64FloatAttr(beta1));
    addResult(main, call.getResult(0), nn::kUpdatesAttr,
              trained.name + "/" + kMomentum, main.getNumResults());
    return call.getResult(0);
  }

  // One for each parameter: dimensions of parameters of one shape are not one.
  // Those that are still equal when the program is divided become one then.
  FuncOp functionOf(const Optimizer& own, const Factored& factored,
                    llvm::ArrayRef<Value> operands, mlir::Type stored) {
    const SmallVector<State> kept = own.states(factored);
    const size_t states = kept.size();
    mlir::Type type = operands[0].getType();
    const mlir::Location loc = operands[0].getLoc();
    SmallVector<mlir::Type> inputs, results = {type};
    for (Value operand : operands) inputs.push_back(operand.getType());
    for (size_t i = 0; i < states; ++i)
      if (!kept[i].is_frozen) results.push_back(inputs[2 + i]);
    if (stored != type) results.insert(results.begin(), stored);
    FuncOp function =
        FuncOp::create(loc, optimizer + "_update",
                       mlir::FunctionType::get(&getContext(), inputs, results));
    function.setPrivate();
    mlir::OpBuilder body =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    nn::MathBuilder math(body, loc);
    SmallVector<Value> given(function.getArguments());
    auto next = given.begin() + 2 + states;
    const auto take = [&](Value outside) {
      return outside ? *next++ : Value();
    };
    StepScalars scalars;
    for (mlir::Value StepScalars::* scalar : kStepScalars)
      scalars.*scalar = take(scalars_.*scalar);
    Value factor = take(factor_), finite = take(finite_);
    Value wide = math.widen(given[1]);
    if (factor)
      wide = math.multiply(
          wide, math.broadcast(factor, nn::MathBuilder::typeOf(wide), {}));
    SmallVector<Value> old = {given[0]};
    llvm::append_range(old, llvm::ArrayRef(given).slice(2, states));
    SmallVector<Value> updated =
        buildUpdate(math, own, factored, old[0], wide,
                    llvm::ArrayRef(old).drop_front(), scalars);
    if (finite)
      for (auto [value, before] : llvm::zip_equal(updated, old))
        value = chooseFinite(math, finite, value, before);
    if (stored != type)
      updated.insert(
          updated.begin(),
          math.narrow(updated[0], llvm::cast<RankedTensorType>(stored)));
    mlir::func::ReturnOp::create(body, loc, updated);
    mlir::SymbolTable(getOperation()).insert(function);
    return function;
  }

  Optimizer optimizer_;
  StepScalars scalars_;
  Value step_;
  std::optional<LossScale> loss_scale_;
  Value factor_,
      finite_;  // scalars; null where all gradients count as they are
  SmallVector<Trained> trained_;
  SmallVector<RateScale> rate_scales_;
};

}  // namespace
}  // namespace partita::autodiff
