// Builds the functions of the header, in its notation.
#include "compiler/autodiff/zero_one_adam.h"

#include "compiler/autodiff/update_function.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

// A private function while its body is built.
class Body {
 public:
  Body(const std::string& name, llvm::ArrayRef<Value> operands,
       mlir::TypeRange results)
      : function_(FuncOp::create(
            operands.front().getLoc(), name,
            mlir::FunctionType::get(operands.front().getContext(),
                                    mlir::ValueRange(operands).getTypes(),
                                    results))),
        builder_(mlir::OpBuilder::atBlockBegin(function_.addEntryBlock())),
        math_(builder_, function_.getLoc()) {
    function_.setPrivate();
  }

  nn::MathBuilder& math() { return math_; }
  Value argument(unsigned i) { return function_.getArgument(i); }
  // Argument i in the element type of `like`: parameters may be f64.
  Value number(unsigned i, Value like) {
    return math_.asFloat(argument(i),
                         nn::MathBuilder::typeOf(like).getElementType());
  }
  Value scaled(Value x, Value scalar) {
    return math_.multiply(
        x, math_.broadcast(scalar, nn::MathBuilder::typeOf(x), {}));
  }

  FuncOp finish(mlir::ModuleOp module, mlir::ValueRange results) {
    mlir::func::ReturnOp::create(builder_, function_.getLoc(), results);
    mlir::SymbolTable(module).insert(function_);
    return function_;
  }

 private:
  FuncOp function_;
  mlir::OpBuilder builder_;
  nn::MathBuilder math_;
};

// (1 - decay d) P - U / (sqrt(V) + epsilon)
Value moved(Body& body, const Optimizer& optimizer, Value p, Value u, Value v,
            Value d, Value second_correction) {
  nn::MathBuilder& math = body.math();
  const auto type = nn::MathBuilder::typeOf(v);
  Value zero = math.constant(type, 0);
  Value denominator =
      math.add(body.scaled(math.sqrt(v), second_correction), optimizer.epsilon);
  Value step =
      math.select(math.compare(mlir::arith::CmpFPredicate::OGT, v, zero),
                  math.divide(u, denominator), zero);
  Value kept = p;
  if (optimizer.weight_decay != 0) {
    Value share =
        math.multiply(d, optimizer.weight_decay * optimizer.rate_scale);
    kept = math.subtract(p, body.scaled(p, share));
  }
  Value result = math.subtract(kept, step);
  return optimizer.keeps_zeros ? zeroWhereZero(math, p, result) : result;
}

}  // namespace

FuncOp makeOwnParameter(mlir::ModuleOp module, const Optimizer& optimizer,
                        llvm::ArrayRef<Value> operands, mlir::Type stored) {
  Body body("zero_one_own_parameter", operands, stored);
  Value p = body.argument(0);
  Value x = moved(body, optimizer, p, body.argument(1), body.argument(2),
                  body.number(3, p), body.number(4, p));
  if (stored != p.getType())
    x = body.math().narrow(x, llvm::cast<RankedTensorType>(stored));
  return body.finish(module, x);
}

FuncOp makeLocalStep(mlir::ModuleOp module, const Optimizer& optimizer,
                     llvm::ArrayRef<Value> operands) {
  Body body("zero_one_local_step", operands,
            {operands[0].getType(), operands[2].getType()});
  nn::MathBuilder& math = body.math();
  Value gradient = math.widen(body.argument(1));
  if (optimizer.keeps_zeros)
    gradient = zeroWhereZero(math, body.argument(4), gradient);
  Value m = buildMomentum(math, optimizer, body.argument(0), gradient);
  Value rate = math.multiply(body.number(3, m), optimizer.rate_scale);
  return body.finish(module,
                     {m, math.add(body.argument(2), body.scaled(m, rate))});
}

FuncOp makeExchangeStep(mlir::ModuleOp module, const Optimizer& optimizer,
                        llvm::ArrayRef<Value> operands, mlir::Type stored) {
  mlir::Type type = operands[0].getType();
  SmallVector<mlir::Type> results(3, type);
  if (stored != type) results.insert(results.begin(), stored);
  Body body("zero_one_exchange_step", operands, results);
  nn::MathBuilder& math = body.math();
  Value p = body.argument(0), u = body.argument(1);
  Value next = moved(body, optimizer, p, u, body.argument(2), body.number(3, p),
                     body.number(5, p));
  // Without a rate there is no sum, and the momentum begins anew.
  Value r = math.multiply(body.number(4, p), optimizer.rate_scale);
  const auto scalar = nn::MathBuilder::typeOf(r);
  Value zero = math.constant(scalar, 0);
  Value share =
      math.select(math.compare(mlir::arith::CmpFPredicate::OGT, r, zero),
                  math.divide(math.constant(scalar, 1), r), zero);
  SmallVector<Value> values = {next, body.scaled(u, share),
                               math.constant(nn::MathBuilder::typeOf(u), 0)};
  if (stored != type)
    values.insert(values.begin(),
                  math.narrow(next, llvm::cast<RankedTensorType>(stored)));
  return body.finish(module, values);
}

}  // namespace partita::autodiff
