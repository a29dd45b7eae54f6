// Computes the exchange on whole tensors with one row per device. The shardings
// of these rows produce the collectives.
#include "compiler/sharding/compress_momenta.h"

#include <algorithm>
#include <cmath>

#include "compiler/sharding/convert.h"
#include "compiler/sharding/divide_states.h"
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

constexpr int64_t kWordBits = 32;

// The axes that divide the rows of an exchange, and shardings along them.
class Rows {
 public:
  Rows(mlir::MLIRContext* context, const core::Mesh& mesh,
       std::vector<core::AxisRef> axes)
      : context_(context), mesh_(mesh), axes_(std::move(axes)) {}

  int64_t count() const { return core::SizeOf(axes_); }
  // A closed sharding with the rows along `dim` divided; -1: replicated.
  dist::ShardingAttr along(int dim, int64_t rank) const {
    core::Sharding sharding = core::Replicated(static_cast<int>(rank));
    for (core::DimSharding& closed : sharding.dims) closed.open = false;
    if (dim >= 0) sharding.dims[dim].axes = axes_;
    return toAttr(context_, sharding, mesh_);
  }
  void place(Value value, int dim) const {
    setSharding(value, along(dim, nn::MathBuilder::typeOf(value).getRank()));
  }
  Value moved(mlir::OpBuilder& builder, Value value, int dim) const {
    return dist::ConstraintOp::create(
        builder, value.getLoc(), value,
        along(dim, nn::MathBuilder::typeOf(value).getRank()));
  }

 private:
  mlir::MLIRContext* context_;
  const core::Mesh& mesh_;
  const std::vector<core::AxisRef> axes_;
};

// Signs and scales of tensors [..., chunk, element].
class OneBit {
 public:
  // `elements` is the total number, divided into `count` chunks.
  OneBit(mlir::OpBuilder& builder, mlir::Location loc, int64_t elements,
         int64_t count)
      : builder_(builder),
        loc_(loc),
        math_(builder, loc),
        elements_(elements),
        count_(count),
        chunk_(chunkOf(elements, count)) {}

  // Returns the elements per chunk, rounded up to whole words.
  static int64_t chunkOf(int64_t elements, int64_t count) {
    return llvm::divideCeil(elements, count * kWordBits) * kWordBits;
  }
  int64_t chunk() const { return chunk_; }

  struct Packed {
    Value words;  // [..., chunk, word], i32; a set bit is a value >= 0
    Value scale;  // [..., chunk]
  };

  // Packs x; sets `error` to x minus its compressed value. x must be 0 in the
  // padding.
  Packed pack(Value x, Value& error) {
    const auto type = nn::MathBuilder::typeOf(x);
    const int64_t last = type.getRank() - 1;
    Value zero = math_.constant(type, 0);
    Value positive = math_.compare(mlir::arith::CmpFPredicate::OGE, x, zero);
    Value size = math_.select(positive, x, math_.subtract(zero, x));
    Value sum = math_.reduce(nn::ReduceKind::sum, size, {last});
    const auto scales = nn::MathBuilder::typeOf(sum);
    Packed packed;
    packed.scale =
        math_.divide(sum, math_.broadcast(sizes(), scales, {last - 1}));
    error = inside(math_.subtract(x, signedScale(positive, packed.scale)));
    const auto bits = bitsOf(type);
    Value set = math_.select(math_.reshape(positive, bits.getShape()),
                             powers(bits), math_.constantInt(bits, 0));
    packed.words = math_.reduce(nn::ReduceKind::sum, set, {bits.getRank() - 1});
    return packed;
  }

  Value unpack(const Packed& packed) {
    const auto words = nn::MathBuilder::typeOf(packed.words);
    SmallVector<int64_t> shape(words.getShape());
    shape.back() = chunk_;
    const auto bits = bitsOf(words.clone(shape));
    Value spread = math_.broadcast(packed.words, bits, counting(words));
    Value positive = math_.compare(mlir::arith::CmpIPredicate::ne,
                                   math_.andInt(spread, powers(bits)),
                                   math_.constantInt(bits, 0));
    return signedScale(math_.reshape(positive, shape), packed.scale);
  }

  // Sets the padding to zero.
  Value inside(Value x) {
    if (elements_ == count_ * chunk_) return x;
    const auto type = nn::MathBuilder::typeOf(x);
    const int64_t last = type.getRank() - 1;
    const auto indices = RankedTensorType::get({count_, chunk_}, math_.i64());
    Value index =
        math_.addInt(math_.multiplyInt(math_.iota(indices, 0), chunk_),
                     math_.iota(indices, 1));
    Value inside = math_.compare(mlir::arith::CmpIPredicate::slt, index,
                                 math_.constantInt(indices, elements_));
    return math_.select(
        math_.broadcast(inside,
                        RankedTensorType::get(type.getShape(), math_.i1()),
                        {last - 1, last}),
        x, math_.constant(type, 0));
  }

 private:
  static SmallVector<int64_t> counting(RankedTensorType type) {
    return llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  }

  // Returns the type [..., chunk, word, bit].
  RankedTensorType bitsOf(RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = chunk_ / kWordBits;
    shape.push_back(kWordBits);
    return RankedTensorType::get(shape, builder_.getI32Type());
  }

  Value powers(RankedTensorType bits) {
    SmallVector<int32_t> values;
    for (int64_t i = 0; i < kWordBits; ++i)
      values.push_back(static_cast<int32_t>(uint32_t{1} << i));
    Value each = mlir::arith::ConstantOp::create(
        builder_, loc_,
        mlir::DenseElementsAttr::get(
            RankedTensorType::get({kWordBits}, builder_.getI32Type()),
            llvm::ArrayRef<int32_t>(values)));
    return math_.broadcast(each, bits, {bits.getRank() - 1});
  }

  // Returns the number of elements per chunk; 1 for chunks of padding alone, to
  // avoid a division by zero.
  Value sizes() {
    SmallVector<float> values;
    for (int64_t i = 0; i < count_; ++i)
      values.push_back(static_cast<float>(
          std::clamp<int64_t>(elements_ - i * chunk_, 1, chunk_)));
    return mlir::arith::ConstantOp::create(
        builder_, loc_,
        mlir::DenseElementsAttr::get(
            RankedTensorType::get({count_}, builder_.getF32Type()),
            llvm::ArrayRef<float>(values)));
  }

  Value signedScale(Value positive, Value scale) {
    const auto type = nn::MathBuilder::typeOf(positive).clone(
        mlir::Type(builder_.getF32Type()));
    Value spread =
        math_.broadcast(scale, type, counting(nn::MathBuilder::typeOf(scale)));
    return math_.select(positive, spread,
                        math_.subtract(math_.constant(type, 0), spread));
  }

  mlir::OpBuilder& builder_;
  const mlir::Location loc_;
  nn::MathBuilder math_;
  const int64_t elements_, count_, chunk_;
};

class Compression {
 public:
  Compression(mlir::ModuleOp module, FuncOp main, const Rows& rows)
      : module_(module), main_(main), rows_(rows), count_(rows.count()) {}

  void compress(CallOp call) {
    const mlir::Location loc = call.getLoc();
    const std::string name =
        call->getAttrOfType<mlir::StringAttr>(dist::kOneBitAttr).str();
    const auto type = nn::MathBuilder::typeOf(call.getOperand(0));
    const int64_t chunk = OneBit::chunkOf(type.getNumElements(), count_);
    mlir::OpBuilder builder(call);
    SmallVector<Value> operands = {
        call.getOperand(0), sharesOf(call.getOperand(1), builder),
        addState(name + "/worker_error", type.clone({count_, count_ * chunk})),
        addState(name + "/server_error", type.clone({count_, chunk}))};
    SmallVector<mlir::Type> results = {type, operands[2].getType(),
                                       operands[3].getType()};
    FuncOp exchange =
        FuncOp::create(loc, "one_bit_exchange",
                       builder.getFunctionType(
                           mlir::ValueRange(operands).getTypes(), results));
    exchange.setPrivate();
    buildExchange(exchange,
                  call->getAttrOfType<mlir::FloatAttr>(dist::kBetaAttr)
                      .getValueAsDouble());
    mlir::SymbolTable(module_).insert(exchange);
    auto fresh = CallOp::create(builder, loc, exchange, operands);
    call.getResult(0).replaceAllUsesWith(fresh.getResult(0));
    addUpdate(fresh.getResult(1), name + "/worker_error");
    addUpdate(fresh.getResult(2), name + "/server_error");
    auto undivided = module_.lookupSymbol<FuncOp>(call.getCallee());
    call.erase();
    if (mlir::SymbolTable::symbolKnownUseEmpty(undivided, module_))
      undivided.erase();
  }

 private:
  // Broadcasts the gradient to one row per device.
  Value sharesOf(Value gradient, mlir::OpBuilder& builder) {
    const auto type = nn::MathBuilder::typeOf(gradient);
    SmallVector<int64_t> shape = {count_};
    llvm::append_range(shape, type.getShape());
    auto shares = nn::BroadcastOp::create(
        builder, gradient.getLoc(), type.clone(shape), gradient,
        llvm::to_vector(llvm::seq<int64_t>(1, type.getRank() + 1)));
    shares->setAttr(kSharesAttr, builder.getUnitAttr());
    rows_.place(shares, 0);
    return shares;
  }

  Value addState(const std::string& name, RankedTensorType type) {
    mlir::Builder builder(module_.getContext());
    mlir::NamedAttrList attributes;
    attributes.set(nn::kKindAttr, builder.getStringAttr("state"));
    attributes.set(nn::kNameAttr, builder.getStringAttr(name));
    attributes.set(nn::kSourceAttr,
                   nn::InitAttr::get(module_.getContext(), "zeros",
                                     builder.getF64FloatAttr(0), 0));
    const unsigned index = main_.getNumArguments();
    (void)main_.insertArgument(index, type,
                               attributes.getDictionary(module_.getContext()),
                               main_.getLoc());
    rows_.place(main_.getArgument(index), 0);
    return main_.getArgument(index);
  }

  void addUpdate(Value value, const std::string& name) {
    mlir::Builder builder(module_.getContext());
    const unsigned index = main_.getNumResults();
    (void)main_.insertResult(
        index, value.getType(),
        builder.getDictionaryAttr(builder.getNamedAttr(
            nn::kUpdatesAttr, builder.getStringAttr(name))));
    main_.front().getTerminator()->insertOperands(index, value);
  }

  void buildExchange(FuncOp function, double beta) {
    const mlir::Location loc = function.getLoc();
    mlir::OpBuilder builder =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    nn::MathBuilder math(builder, loc);
    Value momentum = function.getArgument(0);
    const auto type = nn::MathBuilder::typeOf(momentum);
    const int64_t elements = type.getNumElements();
    OneBit one_bit(builder, loc, elements, count_);
    const SmallVector<int64_t> rows = {count_, elements};
    Value share = math.multiply(
        math.reshape(math.widen(function.getArgument(1)), rows), 1 - beta);
    Value old =
        math.broadcast(math.multiply(math.reshape(momentum, {elements}), beta),
                       type.clone(rows), {1});
    Value own = math.add(
        padded(builder, math.add(old, share), count_ * one_bit.chunk()),
        function.getArgument(2));
    Value worker_error, server_error;
    OneBit::Packed sent = one_bit.pack(
        math.reshape(own, {count_, count_, one_bit.chunk()}), worker_error);
    Value sum = math.reduce(nn::ReduceKind::sum,
                            one_bit.unpack(moved(builder, sent, 0, 1)), {0});
    // The padding was sent as signs too; set it to zero again.
    Value mean =
        one_bit.inside(math.add(math.divide(sum, static_cast<double>(count_)),
                                function.getArgument(3)));
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
  const Rows& rows_;
  const int64_t count_;
};

}  // namespace

LogicalResult compressMomenta(mlir::ModuleOp module, const plan::Plan& plan) {
  auto main = module.lookupSymbol<FuncOp>("main");
  SmallVector<CallOp> calls;
  if (main)
    for (CallOp call : main.getOps<CallOp>())
      if (call->hasAttr(dist::kOneBitAttr)) calls.push_back(call);
  if (calls.empty()) return success();
  if (plan.zero > 0)
    return module.emitError(
               "expected no ZeRO with --train 1bit-adam "
               "or 1bit-lamb, found ")
           << "zero: " << plan.zero
           << "; error feedback needs whole momenta on every device";
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& division : entry.dimensions)
      if (division.dimension == "D")
        return module.emitError(
            "expected no pipeline (D) with --train 1bit-adam or 1bit-lamb, "
            "found one; their exchanges are not divided between stages");
  const Rows rows(module.getContext(), plan.mesh, axesOfBatch(plan));
  if (rows.count() == 1) return success();
  // Shardings refer to the mesh, so it must exist first.
  setMesh(module, plan.mesh);
  Compression compression(module, main, rows);
  for (CallOp call : calls) compression.compress(call);
  return success();
}

}  // namespace partita::sharding
