// Operations of mixtures of experts: products with one matrix per row, and the composites of a whole layer.
#ifndef PARTITA_DIALECTS_NN_EXPERTS_TD
#define PARTITA_DIALECTS_NN_EXPERTS_TD

def NN_GroupedDotOp : NN_Composite<"grouped_dot"> {
  let summary = "Multiplies each row by one of several matrices, chosen by the row's index";
  let description = [{
    `x` is [R, K], `ids` [R], `w` [X, N, K], the result [R, N]: row r is w[ids[r]] x[r]. With `transposed`, `w` is [X, K, N].
    A row whose index is outside [0, X) gives 0. Products of 16-bit floats are summed in f32.
    - (C1) Shapes are as above; element types of `x`, `w` and the result are equal.

    Example: `%y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_IntTensor:$ids, NN_FloatTensor:$w, UnitAttr:$transposed);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `[` $ids `]` `,` $w (`transposed` $transposed^)? attr-dict `:` type($x) `,` type($ids) `,` type($w) `->` type($result)
  }];
}

def NN_GroupedDotWeightGradOp : NN_Composite<"grouped_dot_weight_grad"> {
  let summary = "The gradient of `nn.grouped_dot` with respect to its matrices";
  let description = [{
    `x` is [R, K], `ids` [R], `result_grad` [R, N], the result [X, N, K]: matrix i is the sum of the outer products
    result_grad[r] x[r]^T of the rows r whose index is i. Products of 16-bit floats are summed in f32.
    - (C1) Shapes are as above; element types of `x`, `result_grad` and the result are equal.

    Example: `%d = nn.grouped_dot_weight_grad %x[%ids], %g : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<3x5x4xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_IntTensor:$ids, NN_FloatTensor:$result_grad);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `[` $ids `]` `,` $result_grad attr-dict `:` type($x) `,` type($ids) `,` type($result_grad) `->` type($result)
  }];
}

def NN_ExpertsOp : NN_Composite<"experts", [AttrSizedOperandSegments]> {
  let summary = "A mixture of experts: each row goes through the MLPs that its indices choose, and their results are summed";
  let description = [{
    `x` is [..., E], `ids` and `weights` are [..., k], the result [..., E']. For each row t,

      y[t] = sum over j of weights[t, j] * (down[i] h(t, i) + down_bias[i]), where i = ids[t, j],
      h(t, i) = act(gate[i] x[t] + gate_bias[i]) * (up[i] x[t] + up_bias[i]),

    or h(t, i) = act(up[i] x[t] + up_bias[i]) without `gate`. `gate` and `up` are [X, M, E], `down` [X, E', M], `gate_bias`
    and `up_bias` [X, M], `down_bias` [X, E']. An index outside [0, X) contributes 0. The activation is `relu`, `gelu`
    (x * Phi(x)), `gelu_tanh` (its approximation with tanh) or `silu` (x * sigmoid(x)). With 16-bit floats, products are
    summed in f32, products and h are rounded to the element type, and all else is computed in f32.
    - (C1) `ids` and `weights` have the sizes of `x` without the last, and one more, k; `x` has rank 1 or more.
    - (C2) `up`, `gate` and `down` have shapes as above; `gate_bias` requires `gate`; biases have shapes as above.
    - (C3) The result's shape is as above; element types of all floats are equal.

    Example: `%y = nn.experts %x[%ids], %p gate(%g : tensor<3x6x4xf32>) up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = silu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32> -> tensor<2x5x4xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_IntTensor:$ids, NN_FloatTensor:$weights, Optional<NN_FloatTensor>:$gate,
                       NN_FloatTensor:$up, NN_FloatTensor:$down, Optional<NN_FloatTensor>:$gate_bias,
                       Optional<NN_FloatTensor>:$up_bias, Optional<NN_FloatTensor>:$down_bias,
                       NN_ExpertActivationAttr:$activation);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `[` $ids `]` `,` $weights (`gate` `(` $gate^ `:` type($gate) `)`)? `up` `(` $up `:` type($up) `)` `down` `(` $down `:` type($down) `)`
    (`gate_bias` `(` $gate_bias^ `:` type($gate_bias) `)`)? (`up_bias` `(` $up_bias^ `:` type($up_bias) `)`)?
    (`down_bias` `(` $down_bias^ `:` type($down_bias) `)`)? `activation` `=` $activation attr-dict
    `:` type($x) `,` type($ids) `,` type($weights) `->` type($result)
  }];
}

def NN_ExpertsGradOp : NN_Composite<"experts_grad", [AttrSizedOperandSegments]> {
  let summary = "The gradients of `nn.experts` with respect to all its float operands";
  let description = [{
    Operands are those of `nn.experts`, and `result_grad` is the gradient of its result. `parameter_grads` are the gradients of
    `gate`, `up`, `down`, `gate_bias`, `up_bias` and `down_bias`, in this order, without those that are absent. h is computed
    again. 16-bit floats are rounded as in `nn.experts`, as are the gradients of products.
    - (C1) `ids` and `weights` have the sizes of `x` without the last, and one more, k; `x` has rank 1 or more.
    - (C2) `up`, `gate` and `down` have the shapes of `nn.experts`; `gate_bias` requires `gate`; biases have its shapes.
    - (C3) `result_grad` has the shape of the result of `nn.experts`; element types of all floats are equal.
    - (C4) `x_grad` and `weights_grad` have the types of `x` and `weights`; `parameter_grads` have the types of the parameters.

    Example: `%dx, %dp, %du, %dd = nn.experts_grad %x[%ids], %p, %y up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu : tensor<2x5x4xf32>, tensor<2x5x2xi64>, tensor<2x5x2xf32>, tensor<2x5x4xf32> -> tensor<2x5x4xf32>, tensor<2x5x2xf32>, tensor<3x6x4xf32>, tensor<3x4x6xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_IntTensor:$ids, NN_FloatTensor:$weights, NN_FloatTensor:$result_grad,
                       Optional<NN_FloatTensor>:$gate, NN_FloatTensor:$up, NN_FloatTensor:$down,
                       Optional<NN_FloatTensor>:$gate_bias, Optional<NN_FloatTensor>:$up_bias,
                       Optional<NN_FloatTensor>:$down_bias, NN_ExpertActivationAttr:$activation);
  let results = (outs NN_FloatTensor:$x_grad, NN_FloatTensor:$weights_grad, Variadic<NN_FloatTensor>:$parameter_grads);
  let assemblyFormat = [{
    $x `[` $ids `]` `,` $weights `,` $result_grad (`gate` `(` $gate^ `:` type($gate) `)`)? `up` `(` $up `:` type($up) `)`
    `down` `(` $down `:` type($down) `)` (`gate_bias` `(` $gate_bias^ `:` type($gate_bias) `)`)?
    (`up_bias` `(` $up_bias^ `:` type($up_bias) `)`)? (`down_bias` `(` $down_bias^ `:` type($down_bias) `)`)?
    `activation` `=` $activation attr-dict
    `:` type($x) `,` type($ids) `,` type($weights) `,` type($result_grad) `->` type($x_grad) `,` type($weights_grad) `,` type($parameter_grads)
  }];
}

#endif  // PARTITA_DIALECTS_NN_EXPERTS_TD
