// Turns gradients into new parameters; see passes.td. Each parameter's update
// is a function. Repeated layers share the functions of their parameters.

#include <cassert>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/autodiff/choose_optimizer.h"
#include "compiler/autodiff/device_marks.h"
#include "compiler/autodiff/loss_scale.h"
#include "compiler/autodiff/microbatches.h"
#include "compiler/autodiff/passes.h"
#include "compiler/autodiff/rate_scale.h"
#include "compiler/autodiff/training_signature.h"
#include "compiler/autodiff/update_function.h"
#include "compiler/autodiff/zero_one_step.h"
#include "dialects/dist/annotations.h"
#include "dialects/nn/glob_list.h"

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

constexpr char kMomentum[] = "exp_avg";

// Returns the type in which a parameter is updated.
RankedTensorType updatedType(Value parameter) {
  auto type = nn::MathBuilder::typeOf(parameter);
  return type.getElementTypeBitWidth() >= 32
             ? type
             : type.clone(mlir::Float32Type::get(parameter.getContext()));
}

// Returns the shape without the dimensions `gone`.
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
  LogicalResult run(FuncOp main) {
    FailureOr<Optimizer> chosen = chooseOptimizer(getOperation(), options());
    if (mlir::failed(chosen)) return failure();
    optimizer_ = *chosen;
    loss_scale_ = LossScale::find(main);
    takeGradients(main);
    if (trained_.empty())
      return main.emitError(
          "expected results named 'grad.<parameter>', found none; "
          "--partita-differentiate makes them");
    if (mlir::failed(checkNoDecay(main)) ||
        mlir::failed(checkKeepZeros(main)) ||
        mlir::failed(readRateScales(main)))
      return failure();
    addScalarInputs(main);
    mlir::OpBuilder builder(main.front().getTerminator());
    nn::MathBuilder math(builder, main.getLoc());
    // Skipped steps do not count.
    if (loss_scale_ && step_)
      step_ = mlir::arith::SubIOp::create(builder, main.getLoc(), step_,
                                          loss_scale_->skipped);
    nn::Signature signature(main);
    Value squares;
    if (isZeroOne(optimizer_.kind)) {
      main->setAttr(kOwnStatesAttr, builder.getUnitAttr());
      squares = addStepState(signature, kVarianceSteps, builder.getI64Type(),
                             main.getLoc());
      if (optimizer_.kind == OptimizerKind::kZeroOneVariance) {
        squares = math.addInt(squares, 1);
        addUpdate(signature, squares, kVarianceSteps);
      } else {
        // The model reads copies of parameters that need the corrections.
        builder.setInsertionPointToStart(&main.front());
      }
    }
    buildCorrections(math, builder, optimizer_, step_, squares,
                     values_.scalars);
    if (movesLocally(optimizer_.kind))
      zero_one_.emplace(main, signature, optimizer_.kind, values_.scalars);
    if (clip_norm > 0 || loss_scale_) measure(main, signature, math);
    if (loss_scale_) skipOverflows(main, signature, math);
    for (const Trained& trained : trained_) update(main, signature, trained);
    return success();
  }

  AppendOptimizerPassOptions options() {
    AppendOptimizerPassOptions result;
    result.optimizer = optimizer;
    result.beta1 = beta1, result.beta2 = beta2, result.epsilon = epsilon;
    result.momentum = momentum, result.nesterov = nesterov;
    result.weight_decay = weight_decay;
    result.clip_norm = clip_norm, result.onebit_warmup = onebit_warmup;
    result.zero_one_step = zero_one_step;
    return result;
  }

  LogicalResult checkNoDecay(FuncOp main) {
    SmallVector<llvm::StringRef> names;
    for (const Trained& trained : trained_) names.push_back(trained.name);
    const std::string pattern = nn::GlobList::firstUnmatched(no_decay, names);
    if (pattern.empty()) return success();
    return main.emitError("--no-decay: expected '")
           << pattern << "' to match a parameter that is trained, found none; "
           << "one is '" << names.front() << "'";
  }

  // Every pattern must match a trained matrix, and one must remain after
  // exclusions.
  LogicalResult checkKeepZeros(FuncOp main) {
    if (keep_zeros.empty()) return success();
    SmallVector<llvm::StringRef> names;
    for (const Trained& trained : trained_)
      if (trained.modelShape().size() > 1) names.push_back(trained.name);
    const std::string pattern = nn::GlobList::firstUnmatched(keep_zeros, names);
    if (pattern.empty() && llvm::any_of(trained_, [&](const Trained& trained) {
          return keepsZeros(trained);
        }))
      return success();
    auto error = main.emitError("--keep-zeros: expected '")
                 << (pattern.empty() ? std::string(keep_zeros) : pattern)
                 << "' to match a matrix that is trained, found none";
    if (!names.empty()) error << "; one is '" << names.front() << "'";
    return error;
  }

  // An item that matches no trained parameter is an error.
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

  // Removes gradients from the results, unless they are requested.
  void takeGradients(FuncOp main) {
    mlir::Operation* terminator = main.front().getTerminator();
    const llvm::StringMap<unsigned> arguments = nn::argumentsByName(main);
    nn::Signature signature(main);
    for (unsigned i = 0; i < signature.numResults();) {
      auto name = llvm::dyn_cast_if_present<mlir::StringAttr>(
          signature.resultAttr(i, nn::kNameAttr));
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
        signature.eraseResult(i);
      }
    }
  }

  // Requested gradients have the parameter's shape in the model.
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
    values_.scalars.learning_rate = addInput(main, "lr", "learning_rate", rate);
    step_ = optimizer_.kind == OptimizerKind::kSgd
                ? Value()
                : addInput(main, "step", "step", count);
  }

  // Computes the factor of all gradients: undoes the loss scale, and clips
  // their norm to clip_norm, as PyTorch's clip_grad_norm_ does.
  void measure(FuncOp main, nn::Signature& signature, nn::MathBuilder& math) {
    Value total;
    for (const Trained& trained : trained_) {
      Value gradient = math.widen(trained.gradient);
      if (keepsZeros(trained))
        gradient = zeroWhereZero(math, trained.parameter, gradient);
      Value sum = math.multiply(gradient, gradient);
      SmallVector<int64_t> dims;
      for (int64_t i = 0; i < nn::MathBuilder::typeOf(sum).getRank(); ++i)
        dims.push_back(i);
      if (!dims.empty()) sum = math.reduce(nn::ReduceKind::sum, sum, dims);
      // A model of f32 and f64 has a sum of f64.
      for (Value* narrow : {&sum, &total})
        for (Value other : {sum, total})
          if (*narrow && other &&
              nn::MathBuilder::typeOf(*narrow).getElementTypeBitWidth() <
                  nn::MathBuilder::typeOf(other).getElementTypeBitWidth())
            *narrow = math.asFloat(
                *narrow, nn::MathBuilder::typeOf(other).getElementType());
      total = total ? math.add(total, sum) : sum;
    }
    const auto type = nn::MathBuilder::typeOf(total);
    Value one = math.constant(type, 1);
    if (loss_scale_) {
      // NaN also compares false.
      values_.finite = math.compare(
          mlir::arith::CmpFPredicate::OLT, total,
          math.constant(type, std::numeric_limits<double>::infinity()));
      values_.factor = math.divide(one, loss_scale_->scale);
    }
    if (clip_norm <= 0) return;
    Value norm = math.sqrt(total);
    if (values_.factor) norm = math.multiply(norm, values_.factor);
    mlir::OpBuilder builder(main.front().getTerminator());
    Value clipping = mlir::arith::MinimumFOp::create(
        builder, main.getLoc(),
        math.divide(math.constant(type, clip_norm), math.add(norm, 1e-6)), one);
    values_.factor =
        values_.factor ? math.multiply(values_.factor, clipping) : clipping;
    addResult(signature, math.asFloat(norm, builder.getF32Type()),
              nn::kNameAttr, "grad_norm", firstUpdate(signature));
  }

  // Computes the next scale. In a skipped step, buffers keep their values.
  void skipOverflows(FuncOp main, nn::Signature& signature,
                     nn::MathBuilder& math) {
    mlir::Operation* terminator = main.front().getTerminator();
    const llvm::StringMap<unsigned> arguments = nn::argumentsByName(main);
    for (unsigned i = 0; i < signature.numResults(); ++i)
      if (auto name = llvm::dyn_cast_if_present<mlir::StringAttr>(
              signature.resultAttr(i, nn::kUpdatesAttr))) {
        const auto old = arguments.find(name.getValue());
        assert(old != arguments.end() && "updates of no argument");
        terminator->setOperand(
            i, chooseFinite(math, values_.finite, terminator->getOperand(i),
                            main.getArgument(old->second)));
      }
    for (auto& [name, value] :
         loss_scale_->next(math, values_.finite, growth_interval)) {
      if (name == kSkippedState)
        addResult(signature, value, nn::kNameAttr, kSkippedResult,
                  firstUpdate(signature));
      addUpdate(signature, value, name);
    }
  }

  void update(FuncOp main, nn::Signature& signature, const Trained& trained) {
    mlir::OpBuilder builder(main.front().getTerminator());
    Optimizer own = optimizer_;
    if (nn::GlobList(no_decay).matches(trained.name)) own.weight_decay = 0;
    own.keeps_zeros = keepsZeros(trained);
    for (const RateScale& scale : rate_scales_)
      if (scale.names.matches(trained.name)) own.rate_scale = scale.factor;
    const RankedTensorType type = updatedType(trained.parameter);
    Value updated = trained.parameter;
    SmallVector<std::string> names = {trained.name};
    if (updated.getType() != type) {
      updated = addState(signature, trained, kMaster, type);
      names.push_back(trained.name + "/" + kMaster);
    }
    const std::set<Place> places = placesOf(trained.parameter);
    const auto functionOf = [&](llvm::StringRef name,
                                llvm::function_ref<FuncOp()> make) {
      return updateOf(name, places, trained, own, make);
    };
    if (zero_one_) {
      zero_one_->update(signature, trained, own, updated, functionOf);
      return;
    }
    const Factored factored = factor(type.getShape(), trained.modelShape());
    SmallVector<Value> operands = {updated, trained.gradient};
    Value momentum;
    if (exchangesMomenta(own.kind)) {
      momentum = addState(signature, trained, kMomentum, type);
      operands[1] = updateMomentum(main, signature, trained, momentum);
    }
    for (const State& state : own.states(factored)) {
      operands.push_back(
          momentum && state.name == kMomentum
              ? momentum
              : addStateOf(signature, trained, state, factored, type));
      if (!state.is_frozen) names.push_back(trained.name + "/" + state.name);
    }
    llvm::append_range(operands, values_.all());
    const auto make = [&] {
      return makeUpdate(getOperation(), optimizer, own, factored, operands,
                        values_, trained.parameter.getType());
    };
    auto call =
        mlir::func::CallOp::create(builder, trained.parameter.getLoc(),
                                   functionOf("update", make), operands);
    for (auto [name, value] : llvm::zip_equal(names, call.getResults()))
      addUpdate(signature, value, name);
  }

  // Biases may be zero without having been pruned.
  bool keepsZeros(const Trained& trained) const {
    return trained.modelShape().size() > 1 &&
           nn::GlobList(keep_zeros).matches(trained.name);
  }

  // An argument of a function: its name and the argument's number.
  using Place = std::pair<std::string, unsigned>;

  // Returns the function `name` of the update of a parameter, and makes it if
  // the same parameter of an equal layer has none yet.
  FuncOp updateOf(llvm::StringRef name, const std::set<Place>& places,
                  const Trained& trained, const Optimizer& own,
                  llvm::function_ref<FuncOp()> make) {
    if (places.empty()) return make();
    const llvm::ArrayRef<int64_t> shape = trained.modelShape();
    const auto [known, is_new] = updates_.try_emplace(
        {name.str(), places, shape.vec(),
         trained.gradient.getType().getAsOpaquePointer(), own.weight_decay,
         own.rate_scale, own.keeps_zeros});
    if (is_new) known->second = make();
    return known->second;
  }

  // The arguments that take the parameter. Empty if @main itself reads it.
  static std::set<Place> placesOf(Value parameter) {
    std::set<Place> places;
    for (mlir::OpOperand& use : parameter.getUses()) {
      auto call = llvm::dyn_cast<mlir::func::CallOp>(use.getOwner());
      if (!call) return {};
      places.insert({call.getCallee().str(), use.getOperandNumber()});
    }
    return places;
  }

  static Value addStateOf(nn::Signature& signature, const Trained& trained,
                          const State& state, const Factored& factored,
                          RankedTensorType type) {
    if (!state.is_scalar && state.without.empty())
      return addState(signature, trained, state.name, type);
    const SmallVector<int64_t> shape =
        state.is_scalar ? SmallVector<int64_t>()
                        : shapeWithout(factored.shape, state.without);
    return addReducedState(signature, trained, state, type.clone(shape));
  }

  // Uses a function of its own, so that devices can exchange the momentum.
  Value updateMomentum(FuncOp main, nn::Signature& signature,
                       const Trained& trained, Value old) {
    const SmallVector<Value> operands = {old, trained.gradient};
    mlir::OpBuilder builder(main.front().getTerminator());
    auto call = mlir::func::CallOp::create(
        builder, trained.parameter.getLoc(),
        makeMomentum(getOperation(), optimizer, optimizer_, operands),
        operands);
    call->setAttr(dist::kOneBitAttr, builder.getStringAttr(trained.name));
    call->setAttr(dist::kBetaAttr, builder.getF64FloatAttr(beta1));
    addUpdate(signature, call.getResult(0), trained.name + "/" + kMomentum);
    return call.getResult(0);
  }

  Optimizer optimizer_;
  StepValues values_;
  Value step_;
  std::optional<LossScale> loss_scale_;
  std::optional<ZeroOneStep> zero_one_;
  SmallVector<Trained> trained_;
  SmallVector<RateScale> rate_scales_;
  // By the function's part, the arguments that take the parameter, its shape in
  // the model, the type of its gradient, its weight decay, its rate's scale,
  // and whether its zeros stay. The same parameter of equal layers has the same
  // names of dimensions and the same sharding.
  std::map<std::tuple<std::string, std::set<Place>, std::vector<int64_t>,
                      const void*, double, double, bool>,
           FuncOp>
      updates_;
};

}  // namespace
}  // namespace partita::autodiff
