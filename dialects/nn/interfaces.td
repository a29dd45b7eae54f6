// Interfaces of nn operations: reference semantics, decomposition, sharding rule.
#ifndef PARTITA_DIALECTS_NN_INTERFACES_TD
#define PARTITA_DIALECTS_NN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def NN_ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    A slow, obvious implementation of an operation: plain loops over
    `partita::nn::Tensor`. It is the oracle of all tests and the constant folder of
    the importers. `arith` and `math` implement it through external models.
  }];
  let methods = [
    InterfaceMethod<[{
        Computes the results from the operands' values. `operands` has one
        tensor of matching type per operand, and no entry for an absent optional
        operand. Fails, without a diagnostic, if the result is undefined (integer
        division by 0).
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::partita::nn::Tensor>>", "evaluate",
      (ins "::llvm::ArrayRef<::partita::nn::Tensor>":$operands)>
  ];
}

def NN_DecompositionOpInterface : OpInterface<"DecompositionOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    Rewrites a composite operation with simpler ones: `nn` operations, `arith` and
    `math`. Simpler composites may be among them (`nn.grouped_dot` in `nn.experts`).
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the decomposition at the builder's insertion point and returns
        a value for each result. Never erases the operation itself.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder)>
  ];
}

def NN_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    Describes how an operation may be divided: its dimensions as factors, and the
    kind of each factor. See `sharding_rule.h`. `arith` and `math` implement it
    through external models. Callers use `shardingRuleOf`, which also handles the
    user's rules.
  }];
  let methods = [
    InterfaceMethod<"The rule for the operation's own types and attributes.",
      "::partita::nn::ShardingRule", "getShardingRule", (ins)>
  ];
}

#endif  // PARTITA_DIALECTS_NN_INTERFACES_TD
