// A loop whose number of iterations depends on data.
#ifndef PARTITA_DIALECTS_NN_LOOP_TD
#define PARTITA_DIALECTS_NN_LOOP_TD

include "mlir/IR/SymbolInterfaces.td"

def NN_LoopOp : NN_Op<"loop", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls a function again and again, while its first result is true";
  let description = [{
    The first operands, one per result, are the carried values as they are before the first iteration; the other operands are read by
    every iteration. While the first carried value is true, the carried values become the results of `body`, called with all
    operands:

    ```
    carried = operands[:results]
    while carried[0]: carried = body(carried, operands[results:])
    ```

    All devices of a divided model run the same number of iterations: the first value is a scalar, which is whole everywhere.
    - (C1) The first result is a scalar of i1. There are at least as many operands as results, and the first operands have the types of
      the results.
    - (C2) `body` is a private function with the types of the operands and results.

    Example: `%go, %y = nn.loop @halve(%more, %x, %tolerance) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)`
  }];
  let arguments = (ins FlatSymbolRefAttr:$body, Variadic<NN_Tensor>:$operands_);
  let results = (outs Variadic<NN_Tensor>:$results_);
  let assemblyFormat = "$body `(` $operands_ `)` attr-dict `:` functional-type($operands_, $results_)";
}

#endif  // PARTITA_DIALECTS_NN_LOOP_TD
