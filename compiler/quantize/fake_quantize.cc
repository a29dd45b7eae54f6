// Builds the rounding of each weight and activation from existing operations.
// A copy of the bits hides a value from differentiation: rounding reads the
// copy, and the value less its copy, 0, carries the gradient.
#include "compiler/quantize/fake_quantize.h"

#include <algorithm>
#include <optional>

#include "compiler/quantize/activations.h"
#include "compiler/quantize/find_weights.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "runtime/base/range_names.h"

namespace partita::quantize {
namespace {

using llvm::StringRef;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::arith::CmpFPredicate;
using mlir::func::FuncOp;
using nn::ReduceKind;
namespace arith = mlir::arith;

constexpr double kLargestWeight = 127, kLargestInput = 255;
constexpr int64_t kSignBit = -(int64_t{1} << 31);

absl::Status refuse(const std::string& expected, StringRef found) {
  return absl::InvalidArgumentError("--fake-quantize: expected " + expected +
                                    ", found '" + found.str() + "'");
}

absl::Status takeYes(StringRef key, StringRef value, bool& is_set) {
  if (value != "y" && value != "n") return refuse(key.str() + "=y or n", value);
  is_set = value == "y";
  return absl::OkStatus();
}

absl::Status take(StringRef key, StringRef value, FakeOptions& options) {
  if (key == "bits")
    return value == "8" ? absl::OkStatus() : refuse("bits=8", value);
  if (key == "inputs") return takeYes(key, value, options.rounds_inputs);
  if (key == "embeddings") return takeYes(key, value, options.embeddings);
  if (key == "convolutions") return takeYes(key, value, options.convolutions);
  if (key == "averaging") {
    if (value.getAsDouble(options.averaging) || !(options.averaging > 0) ||
        options.averaging > 1)
      return refuse("averaging=X with X above 0 and up to 1", value);
    return absl::OkStatus();
  }
  if (key == "ranges") {
    if (value != "moving" && value != "fixed")
      return refuse("ranges=moving or fixed", value);
    options.moves_ranges = value == "moving";
    options.names_ranges = true;
    return absl::OkStatus();
  }
  if (key != "keep")
    return refuse(
        "bits=, averaging=, ranges=, inputs=, embeddings=, convolutions= or "
        "keep=, separated "
        "by ';', as in \"bits=8; keep=*.head\"",
        key);
  llvm::SmallVector<StringRef> patterns;
  value.split(patterns, ',', -1, /*KeepEmpty=*/false);
  for (const StringRef pattern : patterns)
    if (!pattern.trim().empty()) options.keep.push_back(pattern.trim().str());
  if (options.keep.empty())
    return refuse("keep=PATTERN, with others behind commas", value);
  return absl::OkStatus();
}

// Operations on tensors of f32.
class Rounding {
 public:
  Rounding(mlir::OpBuilder& builder, mlir::Location loc, bool training)
      : builder_(builder),
        loc_(loc),
        math_(builder, loc),
        training_(training) {}

  // The weight's numbers as quantizeModel stores them.
  Value weight(Value w, llvm::ArrayRef<int64_t> channels) {
    const RankedTensorType type = nn::MathBuilder::typeOf(w);
    const Value hidden = hide(w);
    llvm::SmallVector<int64_t> summed;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(channels, dim)) summed.push_back(dim);
    const Value magnitude = mlir::math::AbsFOp::create(builder_, loc_, hidden);
    const Value scale = scaleOf(math_.divide(
        math_.reduce(ReduceKind::max, magnitude, summed), kLargestWeight));
    const Value scales = math_.broadcast(scale, type, channels);
    const Value rounded =
        math_.multiply(roundEven(math_.divide(hidden, scales)), scales);
    return training_ ? math_.add(rounded, math_.subtract(w, hidden)) : rounded;
  }

  struct Ends {
    Value low, high;
  };

  // Numbers of the grid that gridOf finds for the range. With `averaging`, for
  // the range after a step that reads `x`, which then replaces `ends`.
  //
  // Operations are made in the order in which their results need them: only
  // then are all layers equal to the pass that outlines them.
  Value input(Value x, Ends& ends, std::optional<double> averaging) {
    const RankedTensorType type = nn::MathBuilder::typeOf(x);
    const auto repeated = [&](Value number) {
      return math_.broadcast(number, type, {});
    };
    const Value hidden = hide(x);
    Value share;
    if (averaging) share = shareOf(ends, *averaging);
    if (share) ends.high = moved(ReduceKind::max, hidden, ends.high, share);
    const Value high =
        arith::MaximumFOp::create(builder_, loc_, ends.high, zeros(ends.high));
    if (share) ends.low = moved(ReduceKind::min, hidden, ends.low, share);
    const Value low =
        arith::MinimumFOp::create(builder_, loc_, ends.low, zeros(ends.low));
    const Value scale =
        scaleOf(math_.divide(math_.subtract(high, low), kLargestInput));
    const Value scales = repeated(scale);
    Value steps = roundEven(math_.divide(hidden, scales));
    const Value zero = repeated(
        clamp(roundEven(math_.divide(math_.subtract(zeros(low), low), scale))));
    steps = math_.add(steps, zero);
    const Value rounded =
        math_.multiply(math_.subtract(clamp(steps), zero), scales);
    if (!training_) return rounded;
    const Value not_below =
        math_.compare(CmpFPredicate::OGE, steps, zeros(steps));
    const Value inside = math_.andInt(
        not_below, math_.compare(CmpFPredicate::OLE, steps,
                                 math_.constant(type, kLargestInput)));
    return math_.add(rounded,
                     math_.select(inside, math_.subtract(x, hidden), zeros(x)));
  }

 private:
  // The same numbers, through which no gradient flows. Two halves of the bits,
  // because a cast there and back would be removed.
  Value hide(Value x) {
    if (!training_) return x;
    const RankedTensorType type = nn::MathBuilder::typeOf(x),
                           integers = RankedTensorType::get(
                               type.getShape(), builder_.getI32Type());
    const Value bits = arith::BitcastOp::create(builder_, loc_, integers, x);
    const Value magnitude = math_.andInt(bits, ~kSignBit),
                sign = math_.andInt(bits, kSignBit),
                joined = arith::OrIOp::create(builder_, loc_, magnitude, sign);
    return arith::BitcastOp::create(builder_, loc_, type, joined);
  }
  // The share of a step in a range: all of it if no step has recorded one.
  Value shareOf(const Ends& ends, double averaging) {
    const auto isZero = [&](Value number) {
      return math_.compare(CmpFPredicate::OEQ, number, zeros(number));
    };
    const Value is_low_zero = isZero(ends.low);
    const Value is_first = math_.andInt(is_low_zero, isZero(ends.high));
    const RankedTensorType type = nn::MathBuilder::typeOf(ends.low);
    return math_.select(is_first, math_.constant(type, 1),
                        math_.constant(type, averaging));
  }
  Value moved(ReduceKind kind, Value x, Value before, Value share) {
    const auto all = llvm::to_vector(
        llvm::seq<int64_t>(0, nn::MathBuilder::typeOf(x).getRank()));
    const Value now = math_.reduce(kind, x, all);
    return math_.add(before,
                     math_.multiply(math_.subtract(now, before), share));
  }
  Value zeros(Value like) {
    return math_.constant(nn::MathBuilder::typeOf(like), 0);
  }
  // A range of zeros has a scale, too.
  Value scaleOf(Value scale) {
    return math_.select(math_.compare(CmpFPredicate::OGT, scale, zeros(scale)),
                        scale,
                        math_.constant(nn::MathBuilder::typeOf(scale), 1));
  }
  Value roundEven(Value x) {
    return mlir::math::RoundEvenOp::create(builder_, loc_, x);
  }
  Value clamp(Value steps) {
    const Value positive =
        arith::MaximumFOp::create(builder_, loc_, steps, zeros(steps));
    return arith::MinimumFOp::create(
        builder_, loc_, positive,
        math_.constant(nn::MathBuilder::typeOf(steps), kLargestInput));
  }

  mlir::OpBuilder& builder_;
  mlir::Location loc_;
  nn::MathBuilder math_;
  const bool training_;
};

class FakeQuantization {
 public:
  FakeQuantization(FuncOp main, const FakeOptions& options, bool training)
      : main_(main), options_(options), training_(training) {}

  mlir::LogicalResult run() {
    inlineLayers(main_);
    weights_ = findWeights(main_, /*needs_file=*/false, options_.convolutions);
    const absl::Status kept = keepWeights(
        weights_, options_.keep, options_.embeddings, kFakeOptionNames);
    if (!kept.ok()) return main_.emitError(std::string(kept.message()));
    const auto isFree = [](const Weight& weight) {
      return weight.obstacle.empty();
    };
    if (llvm::none_of(weights_, isFree))
      return main_.emitError(
          "--fake-quantize: expected weights of matrix products, found none");
    // Activations first, because they are found by the weights' readers.
    if (options_.rounds_inputs)
      for (const Activation& activation : findActivations(main_, weights_))
        roundInput(activation);
    for (const Weight& weight : weights_)
      if (isFree(weight)) roundWeight(weight);
    return mlir::success();
  }

 private:
  void roundWeight(const Weight& weight) {
    mlir::BlockArgument argument = main_.getArgument(weight.argument);
    const auto uses = llvm::to_vector(llvm::make_pointer_range(
        llvm::make_range(argument.use_begin(), argument.use_end())));
    mlir::OpBuilder builder(main_.getContext());
    builder.setInsertionPointToStart(&main_.front());
    const Value rounded = Rounding(builder, argument.getLoc(), training_)
                              .weight(argument, weight.channels);
    for (mlir::OpOperand* use : uses) use->set(rounded);
  }

  void roundInput(const Activation& activation) {
    mlir::OpBuilder builder(main_.getContext());
    builder.setInsertionPointAfterValue(activation.value);
    const std::string names[] = {activation.name + base::kRangeLowSuffix,
                                 activation.name + base::kRangeHighSuffix};
    Rounding::Ends ends{addRangeEnd(names[0]), addRangeEnd(names[1])};
    Rounding rounding(builder, activation.value.getLoc(), training_);
    const bool moves = training_ && options_.moves_ranges;
    const Value rounded = rounding.input(
        activation.value, ends,
        moves ? std::optional(options_.averaging) : std::nullopt);
    if (moves) {
      addUpdate(names[0], ends.low);
      addUpdate(names[1], ends.high);
    }
    for (mlir::OpOperand* use : activation.uses) use->set(rounded);
  }

  Value addRangeEnd(const std::string& name) {
    mlir::Builder builder(main_.getContext());
    return main_.getArgument(
        addBuffer(main_, name, RankedTensorType::get({}, builder.getF32Type()),
                  nn::InitAttr::get(builder.getContext(), "zeros",
                                    builder.getF64FloatAttr(1), 0)));
  }

  void addUpdate(const std::string& name, Value value) {
    mlir::Builder builder(main_.getContext());
    const unsigned number = main_.getNumResults();
    (void)main_.insertResult(
        number, value.getType(),
        builder.getDictionaryAttr(builder.getNamedAttr(
            nn::kUpdatesAttr, builder.getStringAttr(name))));
    main_.front().getTerminator()->insertOperands(number, value);
  }

  FuncOp main_;
  const FakeOptions& options_;
  const bool training_;
  std::vector<Weight> weights_;
};

}  // namespace

absl::StatusOr<FakeOptions> parseFakeOptions(const std::string& text) {
  FakeOptions options;
  std::vector<std::string> named;
  llvm::SmallVector<StringRef> fields;
  StringRef(text).split(fields, ';', -1, /*KeepEmpty=*/false);
  for (const StringRef field : fields) {
    const auto [key, value] = field.split('=');
    if (llvm::is_contained(named, key.trim()))
      return refuse("each name once", key.trim());
    named.push_back(key.trim().str());
    if (absl::Status status = take(key.trim(), value.trim(), options);
        !status.ok())
      return status;
  }
  if (named.empty()) return refuse("bits=8", text);
  for (const StringRef key : {"averaging", "ranges"})
    if (llvm::is_contained(named, key) && !options.rounds_inputs)
      return refuse("no " + key.str() + "= with inputs=n, which has no ranges",
                    text);
  if (options.convolutions && !options.rounds_inputs)
    return refuse("no convolutions=y with inputs=n: their inputs are rounded",
                  text);
  if (llvm::is_contained(named, "averaging") && !options.moves_ranges)
    return refuse("no averaging= with ranges=fixed, which stay", text);
  return options;
}

bool isRangeName(StringRef name) {
  return name.ends_with(base::kRangeLowSuffix) ||
         name.ends_with(base::kRangeHighSuffix);
}

mlir::LogicalResult fakeQuantize(mlir::ModuleOp module,
                                 const FakeOptions& options, bool training) {
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main)
    return module.emitError("expected a function named 'main', found none");
  return FakeQuantization(main, options, training).run();
}

}  // namespace partita::quantize
