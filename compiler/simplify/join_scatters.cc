// Adds the rows that microbatches scatter into a large tensor in one scatter;
// see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/stored_values.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::simplify {

#define GEN_PASS_DEF_JOINSCATTERSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// Returns the scatter into zeros that a function returns; null if none.
nn::ScatterOp scatterIntoZeros(FuncOp function, unsigned result) {
  Value value = function.front().getTerminator()->getOperand(result);
  auto scatter = value.getDefiningOp<nn::ScatterOp>();
  if (!scatter || !value.hasOneUse() || scatter.getBatchDims() != 0 ||
      scatter.getKind() != nn::ScatterKind::add ||
      typeOf(scatter.getIndices()).getRank() < 2 ||
      !mlir::matchPattern(scatter.getInput(), mlir::m_AnyZeroFloat()) ||
      mlir::matchPattern(scatter.getIndices(), mlir::m_Constant()))
    return nullptr;
  return scatter;
}

class JoinScattersPass : public impl::JoinScattersPassBase<JoinScattersPass> {
 public:
  void runOnOperation() override {
    sums_.clear();  // of an earlier run, on another module
    built_.clear();
    main_ = getOperation().lookupSymbol<FuncOp>("main");
    if (!main_ || main_.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    CallGraph graph(main_);
    for (FuncOp function : graph.functions)
      if (function != main_ && graph.isOnlyCalled(function))
        takeOut(function, graph.calls[function]);
    if (sums_.empty()) return;
    SmallVector<mlir::arith::AddFOp> adds(
        main_.front().getOps<mlir::arith::AddFOp>());
    for (mlir::arith::AddFOp add : adds) join(add);
    for (mlir::arith::AddFOp add : adds)
      if (sums_.count(add.getResult())) build(add);
    for (mlir::arith::AddFOp add : llvm::reverse(adds))
      if (add->use_empty()) add.erase();
  }

 private:
  // base plus the rows of `updates`.
  struct Sum {
    Value base;  // null: zeros
    SmallVector<Value> indices, updates;
    nn::ScatterOp like;  // one of the scatters
  };

  // True if each call's result is only added to something, and all updates
  // together are at most as large as one result.
  bool isWorthwhile(unsigned result, nn::ScatterOp scatter,
                    llvm::ArrayRef<CallOp> calls) {
    const int64_t count = static_cast<int64_t>(calls.size());
    return typeOf(scatter.getUpdates()).getNumElements() * count <=
               typeOf(scatter.getResult()).getNumElements() &&
           llvm::all_of(calls, [&](CallOp call) {
             Value value = call.getResult(result);
             return call->getBlock() == &main_.front() && value.hasOneUse() &&
                    llvm::isa<mlir::arith::AddFOp>(*value.user_begin());
           });
  }

  // Makes the function also return the scatter's operands.
  void takeOut(FuncOp function, llvm::MutableArrayRef<CallOp> calls) {
    const unsigned count = function.getNumResults();
    SmallVector<std::pair<unsigned, nn::ScatterOp>> found;
    for (unsigned i = 0; i < count; ++i)
      if (nn::ScatterOp scatter = scatterIntoZeros(function, i))
        if (isWorthwhile(i, scatter, calls)) found.push_back({i, scatter});
    if (found.empty()) return;
    mlir::Operation* terminator = function.front().getTerminator();
    for (auto [i, scatter] : found)
      terminator->insertOperands(terminator->getNumOperands(),
                                 {scatter.getIndices(), scatter.getUpdates()});
    function.setType(mlir::FunctionType::get(&getContext(),
                                             function.getArgumentTypes(),
                                             terminator->getOperandTypes()));
    for (CallOp& call : calls) {
      call = withMoreResults(call, function);
      unsigned next = count;
      for (auto [i, scatter] : found) {
        Sum& sum = sums_[call.getResult(i)];
        sum.like = scatter;
        sum.indices = {call.getResult(next)};
        sum.updates = {call.getResult(next + 1)};
        next += 2;
      }
    }
    scatters += found.size();
  }

  static CallOp withMoreResults(CallOp call, FuncOp function) {
    mlir::OpBuilder builder(call);
    auto wide =
        CallOp::create(builder, call.getLoc(), function, call.getOperands());
    for (mlir::NamedAttribute attribute : call->getDiscardableAttrs())
      if (attribute.getName() != "nn.dims")  // of the previous results
        wide->setAttr(attribute.getName(), attribute.getValue());
    call->replaceAllUsesWith(
        wide.getResults().take_front(call.getNumResults()));
    call.erase();
    return wide;
  }

  bool isSum(Value value) const {
    return sums_.count(value) && value.hasOneUse();
  }

  // True if the rows of both sums can form one list. Sequences of different
  // lengths (an encoder's and a decoder's) cannot.
  static bool fits(const Sum& whole, const Sum& part) {
    if (whole.indices.empty()) return true;
    const auto rowsAgree = [](Value a, Value b) {
      return typeOf(a).getElementType() == typeOf(b).getElementType() &&
             typeOf(a).getShape().drop_front() ==
                 typeOf(b).getShape().drop_front();
    };
    nn::ScatterOp a = whole.like, b = part.like;
    return a.getAxes() == b.getAxes() &&
           rowsAgree(whole.indices.front(), part.indices.front()) &&
           rowsAgree(whole.updates.front(), part.updates.front());
  }

  // Joins a sum into the next if nothing else uses it.
  void join(mlir::arith::AddFOp add) {
    if (!isSum(add.getLhs()) && !isSum(add.getRhs())) return;
    mlir::OpBuilder builder(add);
    Sum whole;
    for (Value operand : {add.getLhs(), add.getRhs()}) {
      Value base = operand;
      if (isSum(operand) && fits(whole, sums_[operand])) {
        Sum part = std::move(sums_[operand]);
        sums_.erase(operand);
        base = part.base;
        llvm::append_range(whole.indices, part.indices);
        llvm::append_range(whole.updates, part.updates);
        whole.like = part.like;
      }
      if (base && whole.base)
        whole.base = mlir::arith::AddFOp::create(builder, add.getLoc(),
                                                 whole.base, base);
      else if (base)
        whole.base = base;
    }
    sums_[add.getResult()] = std::move(whole);
  }

  void build(mlir::arith::AddFOp add) {
    Sum& sum = sums_[add.getResult()];
    mlir::OpBuilder builder(add);
    Value base = built_.count(sum.base) ? built_[sum.base] : sum.base;
    if (!base)
      base = mlir::arith::ConstantOp::create(
          builder, add.getLoc(),
          llvm::cast<mlir::TypedAttr>(builder.getZeroAttr(add.getType())));
    auto scatter = nn::ScatterOp::create(
        builder, add.getLoc(), add.getType(), base,
        concat(builder, sum.indices), concat(builder, sum.updates),
        sum.like.getAxesAttr(), sum.like.getBatchDimsAttr(),
        sum.like.getKindAttr());
    add.getResult().replaceAllUsesWith(scatter.getResult());
    built_[add.getResult()] = scatter.getResult();
  }

  static Value concat(mlir::OpBuilder& builder, mlir::ValueRange values) {
    if (values.size() == 1) return values[0];
    SmallVector<int64_t> shape(typeOf(values[0]).getShape());
    shape[0] = 0;
    for (Value value : values) shape[0] += typeOf(value).getDimSize(0);
    return nn::ConcatOp::create(builder, values[0].getLoc(),
                                typeOf(values[0]).clone(shape), values,
                                /*axis=*/0);
  }

  FuncOp main_;
  llvm::DenseMap<Value, Sum> sums_;
  llvm::DenseMap<Value, Value> built_;  // by the sum's value
};

}  // namespace
}  // namespace partita::simplify
