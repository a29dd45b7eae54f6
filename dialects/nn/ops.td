// Operations of the nn dialect. Each constraint (Cn) is checked in verify*.cc and violated by one test in
// tests/dialects/nn/<op>_invalid.mlir.
#ifndef PARTITA_DIALECTS_NN_OPS_TD
#define PARTITA_DIALECTS_NN_OPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/nn/attrs.td"
include "dialects/nn/interfaces.td"

def NN_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def NN_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def NN_IntTensor : StaticShapeTensorOf<[AnySignlessInteger]>;

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<NN_ReferenceOpInterface>,
                                   DeclareOpInterfaceMethods<NN_ShardingRuleOpInterface>], traits)> {
  let hasVerifier = 1;
}

// An operation with a decomposition. It stays whole because its implementation as a whole is faster than its parts.
class NN_Composite<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<NN_DecompositionOpInterface>], traits)>;

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

def NN_BroadcastOp : NN_Op<"broadcast"> {
  let summary = "Repeats a tensor along new or size-1 dimensions";
  let description = [{
    Dimension i of `input` becomes dimension `dims[i]` of the result.
    - (C1) `dims` has one entry per dimension of `input`, strictly increasing, each a dimension of the result.
    - (C2) `input`'s size i is 1 or the result's size `dims[i]`.
    - (C3) Element types are equal.

    Example: `%y = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<2x4xf32>`
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `dims` `=` $dims attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_ReshapeOp : NN_Op<"reshape"> {
  let summary = "Changes the shape and keeps the elements in row-major order";
  let description = [{
    - (C1) `input` and the result have the same number of elements and element type.

    Example: `%y = nn.reshape %x : tensor<2x6xf32> -> tensor<3x4xf32>`
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_TransposeOp : NN_Op<"transpose"> {
  let summary = "Permutes dimensions";
  let description = [{
    Dimension i of the result is dimension `perm[i]` of `input`.
    - (C1) `perm` is a permutation of `input`'s dimensions.
    - (C2) The result's size i is `input`'s size `perm[i]`; element types are equal.

    Example: `%y = nn.transpose %x perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>`
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs NN_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$perm)>];
  let assemblyFormat = "$input `perm` `=` $perm attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_SliceOp : NN_Op<"slice"> {
  let summary = "Takes every `strides`-th element, beginning at `starts`";
  let description = [{
    Element [i...] of the result is element [starts + i * strides ...] of `input`; strides may be negative.
    - (C1) `starts` and `strides` have one entry per dimension; no stride is 0.
    - (C2) Ranks and element types are equal, and the first and last element taken lie inside `input`
      (a result without elements takes none).

    Example: `%y = nn.slice %x starts = [0, 2] strides = [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>`
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$strides);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input `starts` `=` $starts `strides` `=` $strides attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_PadOp : NN_Op<"pad"> {
  let summary = "Adds elements before and after each dimension";
  let description = [{
    `constant` fills the padding with the scalar `value`. The other modes repeat elements of `input`: `edge` its outermost
    element, `reflect` its mirror image without the outermost element, `wrap` the elements of its opposite end.
    - (C1) `low` and `high` have one non-negative entry per dimension.
    - (C2) The result's size is low + size + high; element types are equal; `value` is a scalar of that type.
    - (C3) With `reflect`, the padding is less than the size. With `edge`, `reflect` and `wrap`, a padded dimension has a size of at
      least 1.

    Example: `%y = nn.pad %x, %zero low = [0, 1] high = [0, 1] : tensor<2x4xf32>, tensor<f32> -> tensor<2x6xf32>`
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<NN_PadModeAttr, "PadMode::constant">:$mode);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $value `low` `=` $low `high` `=` $high (`mode` `=` $mode^)? attr-dict `:` type($input) `,` type($value) `->` type($result)
  }];
  let hasFolder = 1;
}

def NN_ConcatOp : NN_Op<"concat"> {
  let summary = "Joins tensors along one dimension";
  let description = [{
    - (C1) At least one input; `axis` is a dimension of all of them.
    - (C2) Inputs and result agree in rank, element type and all sizes except that of `axis`; the result's size there is the sum.

    Example: `%y = nn.concat %a, %b axis = 1 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>`
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$inputs `axis` `=` $axis attr-dict `:` functional-type($inputs, $result)";
  let hasFolder = 1;
}

def NN_GatherOp : NN_Op<"gather"> {
  let summary = "Takes slices of a tensor at indices held in another";
  let description = [{
    The last dimension of `indices` holds index vectors: entry k selects along dimension `axes[k]` of `input`.
    The first `batch_dims` dimensions are common to both. The result's dimensions are: the batch dimensions, the
    remaining dimensions of `indices` but the last, then the dimensions of `input` that are neither batch nor in
    `axes`, in order. An index outside its dimension is clamped into it.
    - (C1) `axes` are distinct dimensions of `input`, none of them a batch dimension.
    - (C2) `indices` has rank batch_dims + 1 or more, its last size is the number of `axes`, and batch sizes agree.
    - (C3) The result's shape is as above; its element type is `input`'s.

    Example, an embedding: `%y = nn.gather %table[%ids] axes = [0] : tensor<100x8xf32>, tensor<2x5x1xi64> -> tensor<2x5x8xf32>`
  }];
  let arguments = (ins NN_Tensor:$input, NN_IntTensor:$indices, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `[` $indices `]` `axes` `=` $axes (`batch_dims` `=` $batch_dims^)? attr-dict `:` type($input) `,` type($indices) `->` type($result)
  }];
}

def NN_ScatterOp : NN_Op<"scatter"> {
  let summary = "Combines updates into a tensor at indices held in another";
  let description = [{
    The inverse of `nn.gather`: `updates` has the shape that a gather of `input` at `indices` would have, and each
    of its elements is combined (`set`, `add`, `mul`, `max`, `min`) into the element that the gather would read.
    Updates with an index outside its dimension are dropped. If several updates have the same target, `set` keeps the last
    in row-major order.
    - (C1) `axes` are distinct dimensions of `input`, none of them a batch dimension.
    - (C2) `indices` has rank batch_dims + 1 or more, its last size is the number of `axes`, and batch sizes agree.
    - (C3) `updates` has the shape of the corresponding gather; input, updates and result share the element type,
      input and result the shape.

    Example: `%y = nn.scatter %x[%i], %u axes = [0] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x4xf32>`
  }];
  let arguments = (ins NN_Tensor:$input, NN_IntTensor:$indices, NN_Tensor:$updates, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<I64Attr, "0">:$batch_dims, NN_ScatterKindAttr:$kind);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `[` $indices `]` `,` $updates `axes` `=` $axes (`batch_dims` `=` $batch_dims^)? `kind` `=` $kind attr-dict
    `:` type($input) `,` type($indices) `,` type($updates) `->` type($result)
  }];
}

def NN_IotaOp : NN_Op<"iota"> {
  let summary = "Counts 0, 1, 2 ... along one dimension";
  let description = [{
    - (C1) `dim` is a dimension of the result.

    Example: `%y = nn.iota dim = 0 : tensor<4xi64>`
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
}

def NN_TopKOp : NN_Op<"top_k"> {
  let summary = "The k largest (or smallest) elements of the last dimension and their indices";
  let description = [{
    The elements are sorted. Among equal elements the lower index comes first, and NaN counts as the largest. If k is the
    whole size, the operation is a sort.
    - (C1) `input` has a last dimension and 1 <= k <= its size, k being the results' last size.
    - (C2) The other sizes of both results are `input`'s; `values` has its element type.

    Example: `%v, %i = nn.top_k %x largest = true : tensor<2x9xf32> -> tensor<2x3xf32>, tensor<2x3xi64>`
  }];
  let arguments = (ins NN_Tensor:$input, BoolAttr:$largest);
  let results = (outs NN_Tensor:$values, NN_IntTensor:$indices);
  let assemblyFormat = "$input `largest` `=` $largest attr-dict `:` type($input) `->` type($values) `,` type($indices)";
}

//===----------------------------------------------------------------------===//
// Contraction and reduction
//===----------------------------------------------------------------------===//

def NN_DotGeneralOp : NN_Op<"dot_general"> {
  let summary = "Sums products over contracted dimensions, for each batch";
  let description = [{
    The result's dimensions are the batch dimensions (in `lhs_batch` order), then the free dimensions of `lhs`,
    then the free dimensions of `rhs`. Products of 16-bit floats are summed in f32.
    - (C1) `lhs_batch`/`rhs_batch` and `lhs_contract`/`rhs_contract` have equal lengths; the dimensions of each side are distinct and in range.
    - (C2) Paired dimensions have equal sizes; element types are equal.
    - (C3) The result's shape is as above.

    Example: `%y = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>`
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lhs_batch, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rhs_batch,
                       DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs NN_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::llvm::ArrayRef<int64_t>":$lhs_batch,
                                 "::llvm::ArrayRef<int64_t>":$rhs_batch, "::llvm::ArrayRef<int64_t>":$lhs_contract,
                                 "::llvm::ArrayRef<int64_t>":$rhs_contract)>];
  let assemblyFormat = [{
    $lhs `,` $rhs (`batch` `=` $lhs_batch^ `x` $rhs_batch)? `contract` `=` $lhs_contract `x` $rhs_contract attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

def NN_ConvOp : NN_Op<"conv"> {
  let summary = "Convolution over 1, 2 or 3 spatial dimensions (cross-correlation: the kernel is not flipped)";
  let description = [{
    `input` is [N, C, spatial...], or [N, spatial..., C] with `channels_last`, and so is the result; `weight` is
    [O, C / groups, kernel...] in either case. 16-bit floats are summed in f32.
    - (C1) `input`, `weight` and the result have the same rank, 3 to 5, and element type.
    - (C2) `strides`, `dilations`, `low` and `high` have one entry per spatial dimension; strides and dilations are positive, padding is not negative.
    - (C3) `groups` is positive and divides C and O; `weight`'s second size is C / groups.
    - (C4) The result is [N, O, spatial...] (or channels last) with spatial size
      floor((low + size + high - dilation * (kernel - 1) - 1) / stride) + 1.

    Example: `%y = nn.conv %x, %w strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x4x4xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, I64Attr:$groups, UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high `groups` `=` $groups
    (`channels_last` $channels_last^)? attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
}

def NN_ConvInputGradOp : NN_Op<"conv_input_grad"> {
  let summary = "The gradient of `nn.conv` with respect to its input";
  let description = [{
    `result_grad` is the gradient of the result of a convolution with `weight` and these attributes. The result is the
    gradient of that convolution's input; the result's type gives the input's sizes. 16-bit floats are summed in f32.
    - (C1) `result_grad`, `weight` and the result have the same rank, 3 to 5, and element type.
    - (C2) `strides`, `dilations`, `low` and `high` have one entry per spatial dimension; strides and dilations are positive, padding is not negative.
    - (C3) `groups` is positive and divides the result's channels and `weight`'s first size; `weight`'s second size is the channels / groups.
    - (C4) `result_grad` has the shape that `nn.conv` gives for an input of the result's shape.

    Example: `%d = nn.conv_input_grad %g, %w strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<1x4x4x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$result_grad, NN_FloatTensor:$weight, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, I64Attr:$groups, UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $result_grad `,` $weight `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high `groups` `=` $groups
    (`channels_last` $channels_last^)? attr-dict `:` type($result_grad) `,` type($weight) `->` type($result)
  }];
}

def NN_ConvWeightGradOp : NN_Op<"conv_weight_grad"> {
  let summary = "The gradient of `nn.conv` with respect to its weight";
  let description = [{
    `result_grad` is the gradient of the result of a convolution of `input` with these attributes. The result is the
    gradient of that convolution's weight; the result's type gives the weight's sizes. 16-bit floats are summed in f32.
    - (C1) `input`, `result_grad` and the result have the same rank, 3 to 5, and element type.
    - (C2) `strides`, `dilations`, `low` and `high` have one entry per spatial dimension; strides and dilations are positive, padding is not negative.
    - (C3) `groups` is positive and divides the channels of `input` and the result's first size; the result's second size is the channels / groups.
    - (C4) `result_grad` has the shape that `nn.conv` gives for a weight of the result's shape.

    Example: `%d = nn.conv_weight_grad %x, %g strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<1x3x8x8xf32>, tensor<1x4x4x4xf32> -> tensor<4x3x3x3xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$result_grad, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, I64Attr:$groups, UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $result_grad `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high `groups` `=` $groups
    (`channels_last` $channels_last^)? attr-dict `:` type($input) `,` type($result_grad) `->` type($result)
  }];
}

def NN_ReduceOp : NN_Op<"reduce"> {
  let summary = "Combines all elements along some dimensions, and drops those dimensions";
  let description = [{
    16-bit floats are summed in f32. On i1, `max` is logical or and `min` is logical and; other integers compare as signed.
    If an element is NaN, the result is NaN. An empty reduction gives 0 for `sum`, 1 for `prod`, the lowest value for `max`
    (floats: -inf) and the highest value for `min` (floats: inf).
    - (C1) `dims` are distinct dimensions of `input`, strictly increasing.
    - (C2) The result has the remaining sizes in order, and `input`'s element type.

    Example: `%y = nn.reduce sum %x dims = [1] : tensor<2x3xf32> -> tensor<2xf32>`
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$result);
  let builders = [OpBuilder<(ins "::partita::nn::ReduceKind":$kind, "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$dims)>];
  let assemblyFormat = "$kind $input `dims` `=` $dims attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def NN_ReduceWindowOp : NN_Op<"reduce_window"> {
  let summary = "Combines the elements under a sliding window";
  let description = [{
    All arrays have one entry per dimension of `input`. Padding holds the neutral element of `kind`.
    - (C1) `window`, `strides`, `dilations` are positive and `low`, `high` non-negative, one entry per dimension.
    - (C2) The result's sizes are floor((low + size + high - dilation * (window - 1) - 1) / stride) + 1; element types are equal.

    Example: `%y = nn.reduce_window max %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : tensor<2x8xf32> -> tensor<2x4xf32>`
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_Tensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `window` `=` $window `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high attr-dict
    `:` type($input) `->` type($result)
  }];
}

def NN_ReduceWindowGradOp : NN_Composite<"reduce_window_grad"> {
  let summary = "The gradient of `nn.reduce_window` with respect to its input";
  let description = [{
    Each element of the result is a sum of elements of `result_grad`, one per window. For `sum`, it adds every window that
    covers the element. For `max` and `min`, it adds the windows in which the element of `input` is the first extreme
    element in row-major order (a NaN is more extreme than any number). Padding receives no gradient. 16-bit floats are
    summed in f32.
    - (C1) `kind` is `sum`, `max` or `min`; `input` is present for the latter two and has the result's type.
    - (C2) `window`, `strides`, `dilations` are positive and `low`, `high` non-negative, one entry per dimension.
    - (C3) `result_grad` has the type that `nn.reduce_window` gives for an input of the result's type.

    Example: `%d = nn.reduce_window_grad max %g, %x window = [1, 2] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>`
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_FloatTensor:$result_grad, Optional<NN_FloatTensor>:$input,
                       DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $kind $result_grad (`,` $input^)? `window` `=` $window `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high attr-dict
    `:` functional-type(operands, $result)
  }];
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

def NN_RandomOp : NN_Composite<"random"> {
  let summary = "Random numbers that depend only on a seed and the element's position";
  let description = [{
    Counter-based (Philox 4x32-10): element i of the row-major result is a function of `seed` and i, however the
    tensor is divided. `uniform` is in [0, 1), `normal` has mean 0 and standard deviation 1.

    Let w0 and w1 be the first two of the four 32-bit words that Philox 4x32-10 (Salmon et al., 2011) computes from the
    counter (i mod 2^32, i / 2^32, 0, 0) and the key (seed mod 2^32, seed / 2^32), both least significant word
    first. With a = w0 / 2^8 and b = w1 / 2^8 (integer division), `uniform` is a * 2^-24, exactly, and `normal` is
    sqrt(-2 ln((a + 1) * 2^-24)) * cos(2 pi b * 2^-24) (Box and Muller, 1958).
    - (C1) `seed` is a scalar i64; the result is of f32.

    Example: `%r = nn.random uniform %seed : tensor<i64> -> tensor<4x4xf32>`
  }];
  let arguments = (ins NN_DistributionAttr:$distribution, NN_IntTensor:$seed);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$distribution $seed attr-dict `:` type($seed) `->` type($result)";
}

def NN_SoftmaxOp : NN_Composite<"softmax", [AllTypesMatch<["input", "result"]>]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along one dimension, or its logarithm";
  let description = [{
    Computed in f32 for 16-bit floats. A row of -inf gives NaN.
    - (C1) `axis` is a dimension of `input`.
    - (C2) The result has `input`'s type.

    Example: `%y = nn.softmax %x axis = 1 : tensor<2x3xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$input, I64Attr:$axis, UnitAttr:$log);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "(`log` $log^)? $input `axis` `=` $axis attr-dict `:` type($input)";
}

def NN_LayerNormOp : NN_Composite<"layer_norm", [AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias over the dimensions from `axis` on";
  let description = [{
    Population variance; statistics in f32 for 16-bit floats (Ba et al., 2016).
    - (C1) `axis` is a dimension of `input`; the result has `input`'s type.
    - (C2) `scale` and `bias`, where present, have the sizes of `input` from `axis` on and its element type.

    Example: `%y = nn.layer_norm %x scale(%g : tensor<8xf32>) bias(%b : tensor<8xf32>) axis = 1 epsilon = 1.0e-5 : tensor<2x8xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$input, Optional<NN_FloatTensor>:$scale, Optional<NN_FloatTensor>:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`scale` `(` $scale^ `:` type($scale) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)? `axis` `=` $axis `epsilon` `=` $epsilon attr-dict
    `:` type($input)
  }];
}

def NN_RmsNormOp : NN_Composite<"rms_norm", [AllTypesMatch<["input", "result"]>]> {
  let summary = "x / sqrt(mean(x * x) + epsilon) * scale over the dimensions from `axis` on";
  let description = [{
    Statistics in f32 for 16-bit floats (Zhang and Sennrich, 2019).
    - (C1) `axis` is a dimension of `input`; the result has `input`'s type.
    - (C2) `scale`, where present, has the sizes of `input` from `axis` on and its element type.

    Example: `%y = nn.rms_norm %x scale(%g : tensor<8xf32>) axis = 1 epsilon = 1.0e-6 : tensor<2x8xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$input, Optional<NN_FloatTensor>:$scale, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`scale` `(` $scale^ `:` type($scale) `)`)? `axis` `=` $axis `epsilon` `=` $epsilon attr-dict
    `:` type($input)
  }];
}

def NN_BatchNormOp : NN_Composite<"batch_norm"> {
  let summary = "Normalisation per feature, with stored statistics or the batch's statistics";
  let description = [{
    y = (x - mean) / sqrt(variance + epsilon) * scale + bias for each index of dimension `feature`. Without
    `training`, the statistics are the operands `mean` and `variance`. With `training`, they are the mean and population
    variance of the batch, and two more results are the running statistics after the step: (1 - momentum) * old + momentum *
    batch. There, the batch's sum of squared deviations is divided by max(n - 1, 1) with `unbiased` (PyTorch's definition)
    and by n without it (ONNX's definition).
    - (C1) `feature` is a dimension of `input`; `scale`, `bias`, `mean`, `variance` are vectors of its size; element types are equal.
    - (C2) `result` has `input`'s type. With `training` there are two more, typed as `mean`; without it none.

    Example: `%y = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$scale, NN_FloatTensor:$bias, NN_FloatTensor:$mean, NN_FloatTensor:$variance,
                       I64Attr:$feature, F64Attr:$epsilon, UnitAttr:$training, DefaultValuedAttr<F64Attr, "0.1">:$momentum, UnitAttr:$unbiased);
  let results = (outs NN_FloatTensor:$result, Variadic<NN_FloatTensor>:$new_statistics);
  let assemblyFormat = [{
    $input `,` $scale `,` $bias `,` $mean `,` $variance `feature` `=` $feature `epsilon` `=` $epsilon (`training` $training^)?
    (`momentum` `=` $momentum^)? (`unbiased` $unbiased^)? attr-dict `:` functional-type(operands, results)
  }];
}

// Which blocks of keys a block of queries sees.
def NN_BlocksAttr : SignlessIntElementsAttr<1>;

def NN_AttentionOp : NN_Composite<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(scale * q k^T + bias) v for each batch and head";
  let description = [{
    `q` is [B, N, L, h], `k` [B, G, S, h], `v` [B, G, S, hv], `result` [B, N, L, hv]; query head n uses key-value
    head n / (N / G). `bias` is added to the scores. With `softcap` s > 0 scores become s * tanh(score / s) before bias
    and mask. Masks limit the keys that query i sees:
    - with `causal_offset`, keys j <= i + c only, where c is `causal_offset` plus the operand `shift`, if there is one;
    - with `window` w, keys j > i + c - w only. So |i - j| <= r is `causal_offset` r and `window` 2r + 1. With `sinks` s,
      keys j < s remain visible beside the window (Xiao et al., 2024);
    - with `blocks`, a table [H, rows, columns] of i1, keys with blocks[n, (i + shift) / b, j / b] only, where b is
      `block_size`. H is the number of query heads, or 1 for all heads. Positions outside of the table take its nearest row.
      With the operand `first_head`, head n of q is head n + `first_head` of the table, which may then have more heads;
    - with segments, keys of the query's own segment only: those with `k_segments`[b, j] = `q_segments`[b, i].

    Computed in f32 for 16-bit floats; a query that sees no key gives 0. The L x S matrix is never stored (Dao et al.,
    2022). `lse` is log(sum(exp(score))) over the keys that a query sees, with biased scores; -inf if it sees none.
    - (C1) Shapes are as above, with G dividing N; element types are equal.
    - (C2) `bias`, where present, has rank 4, and each size is 1 or the size in [B, N, L, S].
    - (C3) `window` is at least 1 and requires `causal_offset`; `shift` is a scalar of i64 and requires `causal_offset` or `blocks`.
    - (C4) `q_segments` is [B, L] and `k_segments` [B, S], of the same element type; each requires the other.
    - (C5) `lse`, where present, is [B, N, L] of f32.
    - (C6) `sinks` is at least 1 and requires `window`.
    - (C7) `blocks` requires `block_size` of at least 1, and the other way. It has as many columns as blocks cover S, rows that
      cover L without `shift` and at least one with it, and N heads or 1. With `first_head`, a scalar of i64, it has at least N heads.

    Example: `%y = nn.attention %q, %k, %v scale = 1.25e-1 causal_offset = 0 window = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>`

    Example: `%y, %lse = nn.attention %q, %k, %v shift(%s) segments(%i, %j) scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>, tensor<1x4xi32>, tensor<1x4xi32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4xf32>)`
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, Optional<NN_FloatTensor>:$bias,
                       Optional<NN_IntTensor>:$shift, Optional<NN_IntTensor>:$q_segments, Optional<NN_IntTensor>:$k_segments,
                       Optional<NN_IntTensor>:$first_head, F64Attr:$scale, OptionalAttr<I64Attr>:$causal_offset,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<I64Attr>:$sinks, OptionalAttr<NN_BlocksAttr>:$blocks,
                       OptionalAttr<I64Attr>:$block_size, DefaultValuedAttr<F64Attr, "0.0">:$softcap);
  let results = (outs NN_FloatTensor:$result, Optional<NN_FloatTensor>:$lse);
  // Without shift, segments, sinks, blocks and lse.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v, "::mlir::Value":$bias,
                                 "::mlir::FloatAttr":$scale, "::mlir::IntegerAttr":$causal_offset, "::mlir::FloatAttr":$softcap,
                                 CArg<"::mlir::IntegerAttr", "{}">:$window)>];
  let assemblyFormat = [{
    $q `,` $k `,` $v (`,` $bias^)? (`shift` `(` $shift^ `)`)? (`segments` `(` $q_segments^ `,` $k_segments `)`)?
    (`first_head` `(` $first_head^ `)`)? `scale` `=` $scale (`causal_offset` `=` $causal_offset^)? (`window` `=` $window^)?
    (`sinks` `=` $sinks^)? (`blocks` `=` $blocks^)? (`block_size` `=` $block_size^)? (`softcap` `=` $softcap^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_AttentionGradOp : NN_Composite<"attention_grad", [AttrSizedOperandSegments]> {
  let summary = "The gradients of `nn.attention` with respect to q, k, v and optionally the bias";
  let description = [{
    `result` is the result of `nn.attention` for q, k, v and `bias` with these attributes and masks, and `result_grad` is its
    gradient. Let P be the softmax (0 for a query that sees no key) and s = scale * q k^T. Then:
    - v_grad = P^T result_grad;
    - the gradient of the biased scores is d = P * (result_grad v^T - sum(result_grad * result)), summed over each row;
    - `bias_grad` is d summed over the dimensions in which `bias` has size 1;
    - d' = d * (1 - tanh(s / softcap)^2) with a softcap, else d;
    - q_grad = scale * d' k and k_grad = scale * d'^T q.

    k_grad and v_grad are summed over the query heads of each key-value head. Computed in f32 for 16-bit floats.

    With `lse`, P = exp(score - lse) of the biased and masked scores. `k` and `v` may then be a part of the keys over which
    `result` and `lse` were computed: q_grad is that part's summand, k_grad and v_grad are the part's rows.

    - (C1) q, k, v, `result` and `result_grad` have shapes as in `nn.attention`; element types are equal.
    - (C2) `bias`, where present, has rank 4, and each size is 1 or the size in [B, N, L, S].
    - (C3) `window` is at least 1 and requires `causal_offset`; `shift` is a scalar of i64 and requires `causal_offset` or `blocks`.
    - (C4) `q_segments` is [B, L] and `k_segments` [B, S], of the same element type; each requires the other.
    - (C5) `lse`, where present, is [B, N, L] of f32.
    - (C6) `sinks` is at least 1 and requires `window`.
    - (C7) `blocks`, `block_size` and `first_head` are as in `nn.attention`.
    - (C8) `q_grad`, `k_grad`, `v_grad` have the types of q, k and v; `bias_grad` has the type of `bias` and requires it.

    Example: `%dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 causal_offset = 0 window = 2 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)`

    Example: `%dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %g shift(%s) segments(%i, %j) lse(%lse) scale = 1.25e-1 causal_offset = 0 : (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<i64>, tensor<1x4xi32>, tensor<1x4xi32>, tensor<1x2x4xf32>) -> (tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>)`
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, NN_FloatTensor:$result, NN_FloatTensor:$result_grad,
                       Optional<NN_FloatTensor>:$bias, Optional<NN_IntTensor>:$shift, Optional<NN_IntTensor>:$q_segments,
                       Optional<NN_IntTensor>:$k_segments, Optional<NN_FloatTensor>:$lse, Optional<NN_IntTensor>:$first_head,
                       F64Attr:$scale, OptionalAttr<I64Attr>:$causal_offset, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<I64Attr>:$sinks, OptionalAttr<NN_BlocksAttr>:$blocks, OptionalAttr<I64Attr>:$block_size,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap);
  let results = (outs NN_FloatTensor:$q_grad, NN_FloatTensor:$k_grad, NN_FloatTensor:$v_grad, Optional<NN_FloatTensor>:$bias_grad);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $result `,` $result_grad (`,` $bias^)? (`shift` `(` $shift^ `)`)?
    (`segments` `(` $q_segments^ `,` $k_segments `)`)? (`lse` `(` $lse^ `)`)? (`first_head` `(` $first_head^ `)`)?
    `scale` `=` $scale (`causal_offset` `=` $causal_offset^)? (`window` `=` $window^)? (`sinks` `=` $sinks^)?
    (`blocks` `=` $blocks^)? (`block_size` `=` $block_size^)? (`softcap` `=` $softcap^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_CrossEntropyOp : NN_Composite<"cross_entropy"> {
  let summary = "-log softmax(logits)[target], one loss per position";
  let description = [{
    With `label_smoothing` a, the target distribution is (1 - a) * onehot + a / V. A position whose target is
    `ignore_index` has loss 0; other targets are clamped into [0, V). Losses are f32.
    - (C1) `logits` is [..., V]; `targets` and the result have its sizes without the last; the result is of f32.
    - (C2) 0 <= label_smoothing <= 1.

    Example: `%l = nn.cross_entropy %z, %t ignore_index = -100 : tensor<2x5x9xf32>, tensor<2x5xi64> -> tensor<2x5xf32>`
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$targets, DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $targets (`ignore_index` `=` $ignore_index^)? (`label_smoothing` `=` $label_smoothing^)? attr-dict
    `:` type($logits) `,` type($targets) `->` type($result)
  }];
}

include "dialects/nn/experts.td"
include "dialects/nn/loop.td"
include "dialects/nn/ordered.td"
include "dialects/nn/quantized.td"

#endif  // PARTITA_DIALECTS_NN_OPS_TD
