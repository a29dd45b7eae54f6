// What every nn operation knows about itself.
#ifndef PARTITA_DIALECTS_NN_INTERFACES_TD
#define PARTITA_DIALECTS_NN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def NN_ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    The slow, obvious meaning of an operation, in plain loops over
    `partita::nn::Tensor`: the oracle of all tests and the constant folder of
    the importers. `arith` and `math` have it through external models.
  }];
  let methods = [
    InterfaceMethod<[{
        Computes the results from the operands' values. Operands have the
        operands' types; an absent optional operand has no entry. Fails, with
        no diagnostic, where the meaning is undefined (integer division by 0).
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::partita::nn::Tensor>>", "evaluate",
      (ins "::llvm::ArrayRef<::partita::nn::Tensor>":$operands)>
  ];
}

def NN_DecompositionOpInterface : OpInterface<"DecompositionOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    A composite operation written with simpler ones: other `nn` operations that
    are not composites, `arith` and `math`.
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
    How an operation may be divided: its dimensions as factors, and of which
    kind each is. See `sharding_rule.h`. `arith` and `math` have it through
    external models. Ask `shardingRuleOf`, which knows the user's rules too.
  }];
  let methods = [
    InterfaceMethod<"The rule for the operation's own types and attributes.",
      "::partita::nn::ShardingRule", "getShardingRule", (ins)>
  ];
}

#endif  // PARTITA_DIALECTS_NN_INTERFACES_TD
