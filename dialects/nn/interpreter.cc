// Interprets functions with a table from values to tensors. Operations fill the
// table in order; a value is removed after its last use.
#include "dialects/nn/interpreter.h"

#include <unordered_map>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::SmallVector;
using mlir::Value;
namespace func = mlir::func;

constexpr int kMaxCallDepth = 1000;

class Interpreter {
 public:
  FailureOr<SmallVector<Tensor>> run(func::FuncOp function,
                                     SmallVector<Tensor> arguments) {
    if (!function.getBody().hasOneBlock()) {
      return function.emitOpError()
             << "expected a function with one block to interpret, found "
             << function.getBody().getBlocks().size();
    }
    if (++depth_ > kMaxCallDepth) {
      return function.emitOpError()
             << "expected calls at most " << kMaxCallDepth
             << " deep, found more: a recursion";
    }
    Frame frame;
    for (auto [value, tensor] :
         llvm::zip_equal(function.getArguments(), arguments)) {
      frame.define(value, std::move(tensor));
    }
    for (Operation& op : function.front().without_terminator()) {
      FailureOr<SmallVector<Tensor>> results = evaluate(&op, frame.take(&op));
      if (failed(results)) return failure();
      for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
        frame.define(value, std::move(tensor));
    }
    --depth_;
    return frame.take(function.front().getTerminator());
  }

 private:
  // The live tensors, with the number of remaining uses.
  class Frame {
   public:
    void define(Value value, Tensor tensor) {
      const int64_t uses = llvm::range_size(value.getUses());
      if (uses > 0)
        entries_.try_emplace(value.getAsOpaquePointer(),
                             Entry{std::move(tensor), uses});
    }

    // Takes the operands of an operation. A value is removed from the table at
    // its last use.
    SmallVector<Tensor> take(Operation* op) {
      SmallVector<Tensor> operands;
      for (Value operand : op->getOperands()) {
        const auto entry = entries_.find(operand.getAsOpaquePointer());
        if (--entry->second.uses_left > 0) {
          operands.push_back(entry->second.tensor);
        } else {
          operands.push_back(std::move(entry->second.tensor));
          entries_.erase(entry);
        }
      }
      return operands;
    }

   private:
    struct Entry {
      Tensor tensor;
      int64_t uses_left;
    };
    std::unordered_map<void*, Entry> entries_;
  };

  FailureOr<SmallVector<Tensor>> evaluate(Operation* op,
                                          SmallVector<Tensor> operands) {
    if (auto call = mlir::dyn_cast<func::CallOp>(op)) {
      auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          op, call.getCalleeAttr());
      if (callee && !callee.isExternal())
        return run(callee, std::move(operands));
      return op->emitOpError()
             << "expected a callee with a body to interpret, found @"
             << call.getCallee();
    }
    auto reference = mlir::dyn_cast<ReferenceOpInterface>(op);
    if (!reference)
      return op->emitOpError() << "expected an operation with a reference "
                                  "implementation to interpret";
    FailureOr<SmallVector<Tensor>> results = reference.evaluate(operands);
    if (failed(results))
      return op->emitOpError()
             << "has no meaning for the values of its operands";
    return results;
  }

  int depth_ = 0;
};

}  // namespace

FailureOr<SmallVector<Tensor>> interpret(func::FuncOp function,
                                         ArrayRef<Tensor> arguments) {
  const SmallVector<mlir::Type> types = llvm::map_to_vector(
      arguments,
      [](const Tensor& tensor) -> mlir::Type { return tensor.type(); });
  if (ArrayRef(types) != function.getArgumentTypes()) {
    return function.emitOpError()
           << "expected arguments of types (" << function.getArgumentTypes()
           << "), found (" << types << ")";
  }
  return Interpreter().run(function, SmallVector<Tensor>(arguments));
}

}  // namespace partita::nn
