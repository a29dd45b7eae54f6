// Grouped products of rows that have been put in order of their matrices. Kernels for GPUs compute them; the passes before
// kernels know `nn.grouped_dot` only.
#ifndef PARTITA_DIALECTS_NN_ORDERED_TD
#define PARTITA_DIALECTS_NN_ORDERED_TD

def NN_RowOrder : StaticShapeTensorOf<[I32]>;
// Elements that tensor cores multiply.
def NN_OrderedTensor : StaticShapeTensorOf<[BF16, F16, F32]>;

def NN_OrderRowsOp : NN_Op<"order_rows"> {
  let summary = "Puts rows in order of their matrices";
  let description = [{
    `ids` is [R]: each row's index of one of `matrices` matrices. Group i has the rows with index i, in ascending order; the last
    group has the rows whose index is of no matrix. The result holds the position at which each of these X + 1 groups begins,
    then R, the end of the last group, and then the rows, group by group.
    - (C1) `ids` has rank 1; `matrices` is at least 1.
    - (C2) The result has X + 2 + R numbers.

    Example: `%o = nn.order_rows %ids matrices = 3 : tensor<6xi64> -> tensor<11xi32>`
  }];
  let arguments = (ins NN_IntTensor:$ids, I64Attr:$matrices);
  let results = (outs NN_RowOrder:$order);
  let assemblyFormat = "$ids `matrices` `=` $matrices attr-dict `:` type($ids) `->` type($order)";
}

def NN_OrderedDotOp : NN_Op<"ordered_dot"> {
  let summary = "`nn.grouped_dot` of rows whose order is known";
  let description = [{
    `x` is [R, K], `order` a result of `nn.order_rows`, `w` [X, N, K], the result [R, N]: row r of group i is w[i] x[r]. With
    `transposed`, `w` is [X, K, N]. Rows of the last group give 0. Products of 16-bit floats are summed in f32.
    - (C1) Shapes are as above; `order` has X + 2 + R numbers; element types of `x`, `w` and the result are equal.

    Example: `%y = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x5xf32>`
  }];
  let arguments = (ins NN_OrderedTensor:$x, NN_RowOrder:$order, NN_OrderedTensor:$w, UnitAttr:$transposed);
  let results = (outs NN_OrderedTensor:$result);
  let assemblyFormat = [{
    $x `[` $order `]` `,` $w (`transposed` $transposed^)? attr-dict `:` type($x) `,` type($order) `,` type($w) `->` type($result)
  }];
}

def NN_OrderedDotWeightGradOp : NN_Op<"ordered_dot_weight_grad"> {
  let summary = "`nn.grouped_dot_weight_grad` of rows whose order is known";
  let description = [{
    `x` is [R, K], `order` a result of `nn.order_rows`, `result_grad` [R, N], the result [X, N, K]: matrix i is the sum of the
    outer products result_grad[r] x[r]^T of the rows of group i. Products of 16-bit floats are summed in f32.
    - (C1) Shapes are as above; `order` has X + 2 + R numbers; element types of `x`, `result_grad` and the result are equal.

    Example: `%d = nn.ordered_dot_weight_grad %x[%o], %g : tensor<6x4xf32>, tensor<11xi32>, tensor<6x5xf32> -> tensor<3x5x4xf32>`
  }];
  let arguments = (ins NN_OrderedTensor:$x, NN_RowOrder:$order, NN_OrderedTensor:$result_grad);
  let results = (outs NN_OrderedTensor:$result);
  let assemblyFormat = [{
    $x `[` $order `]` `,` $result_grad attr-dict `:` type($x) `,` type($order) `,` type($result_grad) `->` type($result)
  }];
}

#endif  // PARTITA_DIALECTS_NN_ORDERED_TD
