// Computes the exchange on whole tensors with one row per device. The shardings
// of these rows produce the collectives.
#include "compiler/sharding/compress_momenta.h"

#include <optional>

#include "compiler/autodiff/device_marks.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/device_rows.h"
#include "compiler/sharding/divide_states.h"
#include "compiler/sharding/one_bit.h"
#include "compiler/sharding/own_states.h"
#include "compiler/sharding/problem.h"
#include "dialects/dist/annotations.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

class Compression {
 public:
  Compression(mlir::ModuleOp module, FuncOp main, const DeviceRows& rows)
      : module_(module), main_(main), rows_(rows), count_(rows.count()) {}

  // Replaces a call that averages a momentum and a gradient.
  void compressMomentum(CallOp call) {
    const std::string name =
        call->getAttrOfType<mlir::StringAttr>(dist::kOneBitAttr).str();
    const double beta = call->getAttrOfType<mlir::FloatAttr>(dist::kBetaAttr)
                            .getValueAsDouble();
    call.getResult(0).replaceAllUsesWith(
        exchanged(call, call.getOperand(1), name + "/",
                  Momentum{call.getOperand(0), beta}));
    auto undivided = module_.lookupSymbol<FuncOp>(call.getCallee());
    call.erase();
    if (mlir::SymbolTable::symbolKnownUseEmpty(undivided, module_))
      undivided.erase();
  }

  // Replaces operand 1 of a call by its mean.
  void compressOperand(CallOp call) {
    const std::string name =
        call->getAttrOfType<mlir::StringAttr>(autodiff::kOneBitMeanAttr).str();
    call.setOperand(
        1, exchanged(call, call.getOperand(1), name + "/sum_", std::nullopt));
  }

 private:
  // The previous momentum and its decay; the compressed value is the next one.
  struct Momentum {
    Value old;
    double beta;
  };

  // Returns the mean of the devices' shares, or the momentum with this mean.
  // Names of compression errors begin with `prefix`.
  Value exchanged(CallOp call, Value value, const std::string& prefix,
                  std::optional<Momentum> momentum) {
    const mlir::Location loc = call.getLoc();
    mlir::OpBuilder builder(call);
    // Errors are of the type in which the parameter is updated.
    const auto type = nn::MathBuilder::typeOf(momentum ? momentum->old : value);
    const int64_t chunk = OneBit::chunkOf(type.getNumElements(), count_);
    Value shares = rows_.sharesOf(builder, value);
    rows_.place(shares, 0);
    const std::string names[] = {prefix + "worker_error",
                                 prefix + "server_error"};
    SmallVector<Value> operands = {
        shares,
        rows_.addState(main_, names[0], type.clone({count_, count_ * chunk})),
        rows_.addState(main_, names[1], type.clone({count_, chunk}))};
    SmallVector<mlir::Type> results = {type, operands[1].getType(),
                                       operands[2].getType()};
    if (momentum) operands.push_back(momentum->old);
    FuncOp exchange =
        FuncOp::create(loc, "one_bit_exchange",
                       builder.getFunctionType(
                           mlir::ValueRange(operands).getTypes(), results));
    exchange.setPrivate();
    buildExchange(exchange, type, momentum ? momentum->beta : 0);
    mlir::SymbolTable(module_).insert(exchange);
    auto fresh = CallOp::create(builder, loc, exchange, operands);
    addUpdate(main_, fresh.getResult(1), names[0]);
    addUpdate(main_, fresh.getResult(2), names[1]);
    return fresh.getResult(0);
  }

  // Arguments: shares, worker error, server error, and perhaps a momentum.
  void buildExchange(FuncOp function, RankedTensorType type, double beta) {
    const mlir::Location loc = function.getLoc();
    mlir::OpBuilder builder =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    nn::MathBuilder math(builder, loc);
    const int64_t elements = type.getNumElements();
    OneBit one_bit(builder, loc, elements, count_);
    const SmallVector<int64_t> rows = {count_, elements};
    Value share = math.reshape(math.widen(function.getArgument(0)), rows);
    if (function.getNumArguments() > 3) {
      Value old = math.multiply(
          math.reshape(function.getArgument(3), {elements}), beta);
      share = math.add(math.broadcast(old, type.clone(rows), {1}),
                       math.multiply(share, 1 - beta));
    }
    Value own = math.add(padded(builder, share, count_ * one_bit.chunk()),
                         function.getArgument(1));
    Value worker_error, server_error;
    OneBit::Packed sent = one_bit.pack(
        math.reshape(own, {count_, count_, one_bit.chunk()}), worker_error);
    Value sum = math.reduce(nn::ReduceKind::sum,
                            one_bit.unpack(moved(builder, sent, 0, 1)), {0});
    // The padding was sent as signs too; set it to zero again.
    Value mean =
        one_bit.inside(math.add(math.divide(sum, static_cast<double>(count_)),
                                function.getArgument(2)));
    OneBit::Packed served = one_bit.pack(mean, server_error);
    Value all = math.reshape(one_bit.unpack(moved(builder, served, 0, -1)),
                             {count_ * one_bit.chunk()});
    Value fresh = nn::SliceOp::create(builder, loc, type.clone({elements}), all,
                                      llvm::ArrayRef<int64_t>{0},
                                      llvm::ArrayRef<int64_t>{1});
    mlir::func::ReturnOp::create(
        builder, loc,
        mlir::ValueRange{
            math.reshape(fresh, type.getShape()),
            math.reshape(worker_error, {count_, count_ * one_bit.chunk()}),
            server_error});
  }

  OneBit::Packed moved(mlir::OpBuilder& builder, const OneBit::Packed& packed,
                       int from, int to) {
    rows_.place(packed.words, from);
    rows_.place(packed.scale, from);
    return {rows_.moved(builder, packed.words, to),
            rows_.moved(builder, packed.scale, to)};
  }

  // Pads [rows, n] with zeros to [rows, elements].
  static Value padded(mlir::OpBuilder& builder, Value x, int64_t elements) {
    const auto type = nn::MathBuilder::typeOf(x);
    const int64_t missing = elements - type.getDimSize(1);
    if (missing == 0) return x;
    nn::MathBuilder math(builder, x.getLoc());
    return nn::PadOp::create(
        builder, x.getLoc(), type.clone({type.getDimSize(0), elements}), x,
        math.constant(type.clone(llvm::ArrayRef<int64_t>()), 0),
        llvm::ArrayRef<int64_t>{0, 0}, llvm::ArrayRef<int64_t>{0, missing},
        nn::PadMode::constant);
  }

  mlir::ModuleOp module_;
  FuncOp main_;
  const DeviceRows& rows_;
  const int64_t count_;
};

}  // namespace

LogicalResult compressMomenta(mlir::ModuleOp module, const plan::Plan& plan) {
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main) return success();
  SmallVector<CallOp> momenta, means;
  for (CallOp call : main.getOps<CallOp>()) {
    if (call->hasAttr(dist::kOneBitAttr)) momenta.push_back(call);
    if (call->hasAttr(autodiff::kOneBitMeanAttr)) means.push_back(call);
  }
  if (momenta.empty() && !hasOwnStates(main)) return success();
  constexpr char kWith[] = " with --train 1bit-adam, 1bit-lamb or 0/1-adam";
  if (plan.zero > 0)
    return module.emitError("expected no ZeRO")
           << kWith << ", found zero: " << plan.zero
           << "; error feedback needs whole momenta on every device";
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& division : entry.dimensions)
      if (division.dimension == "D")
        return module.emitError("expected no pipeline (D)")
               << kWith
               << ", found one; their exchanges are not divided between stages";
  const DeviceRows rows(module.getContext(), plan.mesh, axesOfBatch(plan));
  if (rows.count() == 1) return success();
  if (hasOwnStates(main) && mlir::failed(checkEntriesOfOwnStates(module, plan)))
    return failure();
  // Shardings refer to the mesh, so it must exist first.
  setMesh(module, plan.mesh);
  giveOwnStates(main, rows);
  Compression compression(module, main, rows);
  for (CallOp call : momenta) compression.compressMomentum(call);
  for (CallOp call : means) compression.compressOperand(call);
  return success();
}

}  // namespace partita::sharding
