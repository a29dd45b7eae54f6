// Checks and converts the names and hyperparameters of the options.
#include "compiler/autodiff/choose_optimizer.h"

#include "compiler/autodiff/loss_scale.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::autodiff {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

// Refuses options that need whole gradients if only momenta are exchanged.
LogicalResult checkOneBit(mlir::ModuleOp module,
                          const AppendOptimizerPassOptions& options,
                          OptimizerKind kind) {
  const std::string& name = options.optimizer;
  if (isZeroOne(kind) && options.zero_one_step != "variance" &&
      options.zero_one_step != "exchange" && options.zero_one_step != "local")
    return module.emitError(
               "expected the step of 0/1-adam to be variance, exchange or "
               "local, found '")
           << options.zero_one_step << "'";
  if (kind == OptimizerKind::kOneBitAdam
          ? options.onebit_warmup <= 0
          : options.onebit_warmup > 0 && kind != OptimizerKind::kOneBitLamb)
    return module.emitError(
               "expected --train 1bit-adam and --onebit-warmup, the steps "
               "that --train adamw has made before, together, or --train "
               "1bit-lamb; found ")
           << name << " and " << options.onebit_warmup << " steps";
  if (!exchangesMomenta(kind) && !isZeroOne(kind)) return success();
  if (options.clip_norm > 0)
    return module.emitError("expected no --clip-norm with --train ")
           << name
           << ": the norm needs whole gradients, but devices exchange momenta "
              "instead";
  if (LossScale::find(module.lookupSymbol<mlir::func::FuncOp>("main")))
    return module.emitError("expected --precision f32 or bf16 with --train ")
           << name
           << ", found f16: its loss scale needs whole gradients, but devices "
              "exchange momenta instead";
  return success();
}

}  // namespace

FailureOr<Optimizer> chooseOptimizer(
    mlir::ModuleOp module, const AppendOptimizerPassOptions& options) {
  const OptimizerKind zero_one =
      options.zero_one_step == "variance" ? OptimizerKind::kZeroOneVariance
      : options.zero_one_step == "local"  ? OptimizerKind::kZeroOneLocal
                                          : OptimizerKind::kZeroOneExchange;
  auto kind =
      llvm::StringSwitch<std::optional<OptimizerKind>>(options.optimizer)
          .Case("sgd", OptimizerKind::kSgd)
          .Case("adam", OptimizerKind::kAdam)
          .Case("adamw", OptimizerKind::kAdamW)
          .Case("lamb", OptimizerKind::kLamb)
          .Case("adafactor", OptimizerKind::kAdafactor)
          .Case("1bit-adam", OptimizerKind::kOneBitAdam)
          .Case("1bit-lamb", options.onebit_warmup > 0
                                 ? OptimizerKind::kOneBitLamb
                                 : OptimizerKind::kOneBitLambWarmup)
          .Case("0/1-adam", zero_one)
          .Default(std::nullopt);
  if (!kind)
    return module.emitError(
               "expected the optimizer to be sgd, adam, adamw, lamb, "
               "adafactor, 1bit-adam, 1bit-lamb or 0/1-adam, found '")
               << options.optimizer << "'",
           failure();
  if (options.momentum > 0 && kind != OptimizerKind::kSgd)
    return module.emitError("expected --momentum with --train sgd, found ")
               << options.optimizer << "; leave it out",
           failure();
  if (options.nesterov &&
      (kind != OptimizerKind::kSgd || options.momentum <= 0))
    return module.emitError(
               "expected --nesterov with --train sgd and --momentum above 0, "
               "found ")
               << options.optimizer << " and "
               << (options.momentum > 0 ? "some" : "no") << " momentum",
           failure();
  if (mlir::failed(checkOneBit(module, options, *kind))) return failure();
  Optimizer result;
  result.kind = *kind;
  result.beta1 = options.beta1, result.beta2 = options.beta2;
  result.epsilon = options.epsilon;
  result.momentum = options.momentum, result.nesterov = options.nesterov;
  result.weight_decay = options.weight_decay;
  result.warmup = options.onebit_warmup;
  return result;
}

}  // namespace partita::autodiff
