// Operations of the exec dialect; constraints (Cn) are checked in dialect.cc.
#ifndef PARTITA_DIALECTS_EXEC_OPS_TD
#define PARTITA_DIALECTS_EXEC_OPS_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/exec/dialect.td"
include "dialects/terms/activation.td"
include "dialects/terms/collective_kind.td"
include "dialects/terms/conv_direction.td"
include "dialects/terms/reduction.td"

def Exec_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

def Exec_ActivationAttr : EnumAttr<Exec_Dialect, Terms_Activation, "activation"> {
  let cppNamespace = "::partita::exec";
  let assemblyFormat = "$value";
}

def Exec_TensorMapAttr : AttrDef<Exec_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "How a kernel copies boxes of an operand to a GPU's shared memory";
  let description = [{
    The tensor begins `offset` bytes into operand number `operand`. `shape` lists its dimensions, outermost first; `strides` are the
    strides in bytes of all dimensions but the last. `box` is the number of elements copied along each dimension; elements outside of
    the tensor are 0. Boxes are swizzled by 128 bytes.

    Example: `#exec.tensor_map<operand 1 offset 0 shape [2, 100, 64] strides [12800, 128] box [1, 64, 64]>`
  }];
  let parameters = (ins "int64_t":$operand, "int64_t":$offset, ArrayRefParameter<"int64_t">:$shape,
                        ArrayRefParameter<"int64_t">:$strides, ArrayRefParameter<"int64_t">:$box);
  let assemblyFormat = [{
    `<` `operand` $operand `offset` $offset `shape` `[` $shape `]` `strides` `[` $strides `]` `box` `[` $box `]` `>`
  }];
}
def Exec_TensorMapsAttr : TypedArrayAttrBase<Exec_TensorMapAttr, "tensor maps">;

def Exec_LaunchOp : Exec_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a generated kernel";
  let description = [{
    `kernel` names a private function; its body, on tensors, defines the computation. Code generation adds the other
    attributes. On a CPU, `range` is the number of independent pieces of work, `grain` the lower bound on pieces per thread,
    and `scratch` the bytes of working memory per thread. On a GPU, the launch has `blocks` blocks of `threads` threads,
    `scratch` bytes of device memory for all blocks together, and `shared` bytes of shared memory per block in addition to
    the shared memory that the code declares; `maps` are the tensor maps for its copies. `operations` is the number of
    floating-point operations of its matrix products. `unread` is the number of bytes of its operands that it does not read,
    negative if it reads some bytes more than once.
    A launch with `into` continues an earlier launch, which has written a part of the results: the results are the same
    memory, and the launch has no offsets.
    - (C1) `kernel` is a function with the types of the operands and results.
    - (C2) Each of `maps` lies inside one operand and has 2 to 5 dimensions, with positive sizes, strides and boxes.
    - (C3) `into` is empty, or lists all results of one `exec.launch` in the same block, in order and with the types of the results.

    Example: `%y = exec.launch @kernel_0(%x) : (tensor<8xf32>) -> tensor<8xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_Tensor>:$operands_, Variadic<Exec_Tensor>:$into,
                       OptionalAttr<I64Attr>:$range, OptionalAttr<I64Attr>:$grain, OptionalAttr<I64Attr>:$scratch,
                       OptionalAttr<I64Attr>:$blocks, OptionalAttr<I64Attr>:$threads, OptionalAttr<I64Attr>:$shared,
                       OptionalAttr<Exec_TensorMapsAttr>:$maps, OptionalAttr<I64Attr>:$operations, OptionalAttr<I64Attr>:$unread);
  let results = (outs Variadic<Exec_Tensor>:$results_);
  let assemblyFormat = [{
    $kernel `(` $operands_ `)` (`into` `(` $into^ `:` type($into) `)`)? attr-dict `:` functional-type($operands_, $results_)
  }];
  // Builds a launch before code generation: no attributes but the kernel.
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::llvm::StringRef":$kernel, "::mlir::ValueRange":$operands), [{
    build($_builder, $_state, results, kernel, operands, /*into=*/{}, /*range=*/nullptr, /*grain=*/nullptr, /*scratch=*/nullptr,
          /*blocks=*/nullptr, /*threads=*/nullptr, /*shared=*/nullptr, /*maps=*/nullptr, /*operations=*/nullptr, /*unread=*/nullptr);
  }]>];
}

def Exec_SymbolsAttr : TypedArrayAttrBase<FlatSymbolRefAttr, "names of functions">;

def Exec_LaunchPiecesOp : Exec_Op<"launch_pieces", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a generated kernel on several lists of operands at once";
  let description = [{
    The kernels share the same machine code, named by `exec.kernel` of each, and differ in their sizes. Piece i runs
    `kernels[i]` over [0, ranges[i]). The pieces run concurrently, and no piece writes memory that another reads or writes.
    The operands of piece 0 come first, then those of piece 1, and so on; the results have the same order. `grain`,
    `scratch`, `blocks`, `threads`, `operations` and `unread` are as in `exec.launch`. On a GPU, which has `blocks`, the code
    reads the buffers and ranges from a table (piece_table.h).
    - (C1) The operands and results have the types of the kernels' arguments and results, concatenated.
    - (C2) There are at least two kernels, or one on a GPU, and one non-negative range per kernel.
    - (C3) A kernel has at most 64 operands and results.
    - (C4) On a GPU, the pieces fit the table, and there is no scratch.

    Example: `%y:2 = exec.launch_pieces [@k_0, @k_1](%a, %b) ranges = [8, 4] {grain = 1 : i64, scratch = 0 : i64} :
    (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)`
  }];
  let arguments = (ins Exec_SymbolsAttr:$kernels, Variadic<Exec_Tensor>:$operands_, DenseI64ArrayAttr:$ranges, I64Attr:$grain,
                       I64Attr:$scratch, OptionalAttr<I64Attr>:$blocks, OptionalAttr<I64Attr>:$threads,
                       OptionalAttr<I64Attr>:$operations, OptionalAttr<I64Attr>:$unread);
  let results = (outs Variadic<Exec_Tensor>:$results_);
  let assemblyFormat = "$kernels `(` $operands_ `)` `ranges` `=` $ranges attr-dict `:` functional-type($operands_, $results_)";
  let extraClassDeclaration = [{
    // The piece that a result belongs to, and the operands of a piece.
    unsigned getPieceOf(::mlir::OpResult result);
    ::mlir::OperandRange getOperandsOf(unsigned piece);
  }];
}

def Exec_CopyOp : Exec_Op<"copy", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Copies a value to separate memory";
  let description = [{
    Example: `%y = exec.copy %x : tensor<8xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input);
  let results = (outs Exec_Tensor:$result);
  let hasVerifier = 0;
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Exec_GemmOp : Exec_Op<"gemm", [AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let summary = "Matrix product by a library";
  let description = [{
    out[b, m, n] = activation(sum over k of lhs[b, m, k] * rhs[b, k, n] + bias[n]) + residual[b, m, n] with
    `sizes` = [batch, m, n, k] and operands read through strides in elements: `lhs_strides` [batch, m, k],
    `rhs_strides` [batch, k, n]. The result and `residual` are dense.

    With `scale`, rhs holds signed integers of 8 bits, and lhs floats or integers of 8 bits (unsigned ones with
    `lhs_unsigned`). Then out[b, m, n] = scale[n] * (sum over k of lhs[b, m, k] * rhs[b, k, n]) + bias[n]; sums of
    integers are exact. Sums of i8 and i8 may also be the result: i32, without `scale` and `bias`.

    With a `scale` and factors of f8E4M3FN, at most one of them of f8E5M2 instead, out[b, m, n] = activation(scale * (sum over
    k of lhs[b, m, k] * rhs[b, k, n]) + bias[n]) with one scale for all.

    For training, the result `kept` is the pre-activation, which is the input of the activation. With the operand
    `preactivation`, the result is the gradient with respect to it: out = (sum over k) * activation'(preactivation).
    `lhs_sums` [m] and `rhs_sums` [n] are the sums over k of one factor; if the product is the gradient of a weight, they
    are that of a bias.
    - (C1) `sizes` has 4 positive entries; stride arrays have 3 non-negative entries; `rhs_strides`' last two are not both 0.
    - (C2) The result and `residual` have batch * m * n elements, `bias` has n; element types are equal, except for rhs of i8.
    - (C3) The last element that the strides address lies inside `lhs` and `rhs`.
    - (C4) With `scale`, the result is f32, `rhs` is i8, `lhs` f32 or i8, `scale` and `bias` have n elements of f32, and
      there is no residual and no activation. `lhs_unsigned` requires an `lhs` of i8.
    - (C5) A result of i32 has i8 operands only: no scale, bias, residual or activation.
    - (C6) `group`, an even number, requires a `scale` and `lhs` of f32. `rhs` then holds two unsigned integers of 4 bits per
      byte, as `nn.dequantize` reads them. With e = b * rhs_strides[0] + k * rhs_strides[1] + n * rhs_strides[2], the factor is
      scale[e / group] * (rhs[e] - zero[e / group]) instead of rhs[e], without a scale per column; without `zero`, 8 is
      subtracted. `scale`, and `zero` of i8, have one element per group of `rhs`. `zero` requires `group`.
    - (C7) `kept` and `preactivation` have the result's type and require the activation gelu_tanh. They exclude each other,
      a residual and a scale; `preactivation` excludes a bias, too.
    - (C8) `lhs_sums` has m elements and `rhs_sums` n, of the result's type of floats. They exclude each other and require a
      batch of 1 without scale, bias, residual and activation.
    - (C9) With factors of f8, C4 does not hold: `scale` has one element of f32, the result is of f32, f16 or bf16, as the
      `bias`, and there is no residual.

    Example: `%y = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`

    Example: `%y = exec.gemm %x, %w scale(%s : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xi8>) -> tensor<2x4xf32>`

    Example: `%y = exec.gemm %x, %w scale(%s : tensor<4x2xf32>) sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 1, 8] group = 4 : (tensor<3x8xf32>, tensor<4x2x2xi8>) -> tensor<3x4xf32>`

    Example: `%y = exec.gemm %x, %w scale(%s : tensor<1xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf8E4M3FN>, tensor<3x4xf8E5M2>) -> tensor<2x4xbf16>`

    Example: `%y, %u = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = gelu_tanh : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> kept tensor<2x4xbf16>`
  }];
  let arguments = (ins Exec_Tensor:$lhs, Exec_Tensor:$rhs, Optional<Exec_Tensor>:$scale, Optional<Exec_Tensor>:$zero,
                       Optional<Exec_Tensor>:$bias, Optional<Exec_Tensor>:$residual, Optional<Exec_Tensor>:$preactivation,
                       UnitAttr:$lhs_unsigned,
                       DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$lhs_strides, DenseI64ArrayAttr:$rhs_strides,
                       OptionalAttr<I64Attr>:$group,
                       DefaultValuedAttr<Exec_ActivationAttr, "::partita::terms::Activation::kNone">:$activation);
  let results = (outs Exec_Tensor:$result, Optional<Exec_Tensor>:$kept, Optional<Exec_Tensor>:$lhs_sums,
                      Optional<Exec_Tensor>:$rhs_sums);
  // A product with one result.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::mlir::Value":$scale,
                                 "::mlir::Value":$zero, "::mlir::Value":$bias, "::mlir::Value":$residual,
                                 "bool":$lhs_unsigned, "::llvm::ArrayRef<int64_t>":$sizes,
                                 "::llvm::ArrayRef<int64_t>":$lhs_strides, "::llvm::ArrayRef<int64_t>":$rhs_strides,
                                 "::mlir::IntegerAttr":$group, "::partita::terms::Activation":$activation)>];
  let assemblyFormat = [{
    $lhs `,` $rhs (`lhs_unsigned` $lhs_unsigned^)? (`scale` `(` $scale^ `:` type($scale) `)`)?
    (`zero` `(` $zero^ `:` type($zero) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`residual` `(` $residual^ `:` type($residual) `)`)? (`preactivation` `(` $preactivation^ `:` type($preactivation) `)`)?
    `sizes` `=` $sizes `lhs_strides` `=` $lhs_strides `rhs_strides` `=` $rhs_strides (`group` `=` $group^)?
    (`activation` `=` $activation^)? attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)
    (`kept` type($kept)^)? (`lhs_sums` type($lhs_sums)^)? (`rhs_sums` type($rhs_sums)^)?
  }];
}

def Exec_GroupedGemmOp : Exec_Op<"grouped_gemm"> {
  let summary = "Products of rows with matrices chosen by the rows' indices, by a library";
  let description = [{
    The result [R, N] is `nn.grouped_dot` of the rows of `lhs`, the indices `ids` [R] and the matrices `rhs` [X, N, K], or
    [X, K, N] with `transposed`. With `weight_grad`, the result [X, N, K] is `nn.grouped_dot_weight_grad`, and `rhs` [R, N] is
    the gradient of the rows' results. `lhs` is [R / p, K]: p consecutive rows share one row of `lhs`. A row whose index
    is outside [0, X) gives 0. 16-bit floats are summed in f32.
    - (C1) Shapes are as above, without sizes of 0. `weight_grad` excludes `transposed`.
    - (C2) `ids` are i32 or i64; the other element types are equal.

    Example: `%y = exec.grouped_gemm %x[%ids], %w : (tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32>) -> tensor<6x5xf32>`
  }];
  let arguments = (ins Exec_Tensor:$lhs, Exec_Tensor:$rhs, Exec_Tensor:$ids, UnitAttr:$transposed, UnitAttr:$weight_grad);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $lhs `[` $ids `]` `,` $rhs (`transposed` $transposed^)? (`weight_grad` $weight_grad^)? attr-dict
    `:` `(` type($lhs) `,` type($ids) `,` type($rhs) `)` `->` type($result)
  }];
}

def Exec_ConvDirectionAttr : EnumAttr<Exec_Dialect, Terms_ConvDirection, "conv_direction"> {
  let cppNamespace = "::partita::exec";
  let assemblyFormat = "$value";
}

def Exec_ConvOp : Exec_Op<"conv", [AttrSizedOperandSegments]> {
  let summary = "Convolution by a library";
  let description = [{
    With `direction` forward, the result is activation(`nn.conv` + bias[o]) + residual, or with `activates_sum`
    activation(`nn.conv` + bias[o] + residual); relu and relu6 may turn NaN into 0. With input_grad, it is
    `nn.conv_input_grad`, and `input` holds the gradient of the convolution's result. With weight_grad, it is
    `nn.conv_weight_grad`, and `weight` holds the gradient of the convolution's result.

    With `scale`, `input` and `weight` hold integers of 8 bits, those of `weight` signed and those of `input` signed unless
    `input_unsigned`. The convolution is of `input` - `zero` and `weight`, with exact sums and with 0 in the padding, and the result
    is activation(scale[o] * convolution + bias[o]) + residual in f32. A result of i8 is
    saturate(round(that / result_scale + result_zero)), unsigned with `result_unsigned`.
    - (C1) `strides`, `dilations`, `low`, `high` have rank - 2 entries.
    - (C2) `bias` has one element per output channel, `residual` the result's type; element types are equal without `scale`.
    - (C3) A gradient has neither `bias` nor `residual` nor an activation nor a `scale`.
    - (C4) `activates_sum` requires a `residual` and an activation.
    - (C5) With `scale`, `input` and `weight` are of i8, the result is of f32 or i8, `scale` and `bias` have one element of f32 per
      output channel, and `zero` has one element of i32. `zero` and `input_unsigned` require a `scale`.
    - (C6) A result of i8 has no `residual` and requires `result_scale`, one element of f32, and `result_zero`, one element of i32;
      these and `result_unsigned` require a result of i8.

    Example: `%y = exec.conv %x, %w strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>`

    Example: `%y = exec.conv %x, %w input_unsigned scale(%s : tensor<4xf32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xi8>, tensor<4x2x3xi8>) -> tensor<1x4x6xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input, Exec_Tensor:$weight, Optional<Exec_Tensor>:$scale, Optional<Exec_Tensor>:$zero,
                       Optional<Exec_Tensor>:$bias, Optional<Exec_Tensor>:$residual, Optional<Exec_Tensor>:$result_scale,
                       Optional<Exec_Tensor>:$result_zero, UnitAttr:$input_unsigned, UnitAttr:$result_unsigned,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       I64Attr:$groups, UnitAttr:$channels_last, DefaultValuedAttr<Exec_ConvDirectionAttr, "::partita::terms::ConvDirection::kForward">:$direction,
                       DefaultValuedAttr<Exec_ActivationAttr, "::partita::terms::Activation::kNone">:$activation, UnitAttr:$activates_sum);
  let results = (outs Exec_Tensor:$result);
  // A convolution of floats.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input, "::mlir::Value":$weight, "::mlir::Value":$bias,
                                 "::mlir::Value":$residual, "::llvm::ArrayRef<int64_t>":$strides,
                                 "::llvm::ArrayRef<int64_t>":$dilations, "::llvm::ArrayRef<int64_t>":$low,
                                 "::llvm::ArrayRef<int64_t>":$high, "int64_t":$groups, "bool":$channels_last,
                                 "::partita::terms::ConvDirection":$direction, "::partita::terms::Activation":$activation), [{
    build($_builder, $_state, result, input, weight, /*scale=*/::mlir::Value(), /*zero=*/::mlir::Value(), bias, residual,
          /*result_scale=*/::mlir::Value(), /*result_zero=*/::mlir::Value(), /*input_unsigned=*/false, /*result_unsigned=*/false,
          strides, dilations, low, high, groups, channels_last, direction, activation);
  }]>];
  let assemblyFormat = [{
    $input `,` $weight (`input_unsigned` $input_unsigned^)? (`scale` `(` $scale^ `:` type($scale) `)`)?
    (`zero` `(` $zero^ `:` type($zero) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`residual` `(` $residual^ `:` type($residual) `)`)? (`result_scale` `(` $result_scale^ `:` type($result_scale) `)`)?
    (`result_zero` `(` $result_zero^ `:` type($result_zero) `)`)? (`result_unsigned` $result_unsigned^)?
    `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high `groups` `=` $groups
    (`channels_last` $channels_last^)? (`direction` `=` $direction^)? (`activation` `=` $activation^)? (`activates_sum` $activates_sum^)? attr-dict `:` `(` type($input) `,` type($weight) `)` `->` type($result)
  }];
}

def Exec_ViewOp : Exec_Op<"view"> {
  let summary = "Reinterprets the same memory with another shape";
  let description = [{
    - (C1) Both types have the same number of elements and element type.

    Example: `%y = exec.view %x : tensor<2x3xf32> -> tensor<6xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Exec_CollectiveKindAttr : EnumAttr<Exec_Dialect, Terms_CollectiveKind, "collective_kind"> {
  let cppNamespace = "::partita::exec";
  let assemblyFormat = "`` $value";
}
def Exec_ReductionAttr : EnumAttr<Exec_Dialect, Terms_Reduction, "reduction"> {
  let cppNamespace = "::partita::exec";
  let assemblyFormat = "`` $value";
}

def Exec_CollectiveOp : Exec_Op<"collective"> {
  let summary = "Moves a tensor among the devices of each group";
  let description = [{
    `axes` is a list of parts of mesh axes, three numbers each: the axis, `pre` and `size`; runtime/program/program.fbs defines them.
    The devices that differ only in their position along `axes` form a group of n devices. Along `dim`, b is the size of a block and S
    the size of the undivided dimension:

    | kind             | input        | result | also |
    |------------------|--------------|--------|------|
    | `all_reduce`     | any          | same   | `reduction` |
    | `all_gather`     | b            | S      | |
    | `reduce_scatter` | S            | b      | `reduction` |
    | `all_slice`      | S            | b      | |
    | `all_to_all`     | S, and b' of `other_dim` | b, and S' of `other_dim` | |
    | `exchange`       | b            | rows [r * step + offset, ...) on the device of index r | `size` (S), `step`, `offset`, `fill` |
    | `permute`        | any          | the input of the device whose index along `source_axes` is this device's along `axes` - `offset`, mod n | `offset` |
    | `broadcast`      | any          | the input of the device with index `root` | |
    | `send_rows`      | [T, W], and `to` [T, k] | [R, W], the rows sent here, then `fill` | `size` (T * k), `fill` |
    | `return_rows`    | [R, W], and `to` of T * k elements | [T * k, W], the rows that came back, 0 where nothing was sent | `size` (T * k) |

    `to` is of i64: row t of `send_rows` goes to the devices with the indices `to`[t, ...]; other numbers send nothing. Rows of
    device 0 arrive first, each device's in the order of `to`. `return_rows` sends what `send_rows` with the same `to` received back.

    - (C1) `axes` and `source_axes` are triples of a non-negative axis number and two positive numbers. In a `permute`, `source_axes`
      has as many devices as `axes`; otherwise it is empty.
    - (C2) `dim` is a dimension (0 in `send_rows` and `return_rows`), or -1 if the kind has none. `other_dim` is a different dimension in `all_to_all`, otherwise -1.
    - (C3) The types are equal but for the sizes of `dim` and `other_dim`.
    - (C4) S is at most n * b.
    - (C5) `token` is not negative. If it is positive, the collective is only started: the only use of its result is one
      `exec.await` with the same token.
    - (C6) `send_rows` and `return_rows` have `to`, of tensors with two dimensions; other kinds have no `to`. `size` is
      the number of elements of `to`: a multiple of the rows of `send_rows`, and the rows that `return_rows` gives.

    Example: `%y = exec.collective all_gather %x axes = [0, 1, 4] {dim = 1 : i64} : tensor<4x2xf32> -> tensor<4x7xf32>`
  }];
  let arguments = (ins Exec_CollectiveKindAttr:$kind, Exec_Tensor:$input, Optional<Exec_Tensor>:$to, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<Exec_ReductionAttr, "::partita::terms::Reduction::kSum">:$reduction, DefaultValuedAttr<I64Attr, "-1">:$dim,
                       DefaultValuedAttr<I64Attr, "-1">:$other_dim, DefaultValuedAttr<I64Attr, "0">:$size,
                       DefaultValuedAttr<I64Attr, "0">:$step, DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<F64Attr, "0.0">:$fill, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$source_axes,
                       DefaultValuedAttr<I64Attr, "0">:$root, OptionalAttr<AnyAttr>:$why, DefaultValuedAttr<I64Attr, "0">:$token);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $kind $input (`to` $to^ `:` type($to))? `axes` `=` $axes (`reduction` `=` $reduction^)? attr-dict `:` type($input) `->` type($result)
  }];
  // Sets the attributes that the kind does not need to their defaults.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "CollectiveKind":$kind, "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$axes), [{
    build($_builder, $_state, result, kind, input, /*to=*/{}, axes, Reduction::kSum, /*dim=*/-1, /*other_dim=*/-1, /*size=*/0, /*step=*/0,
          /*offset=*/0, /*fill=*/::llvm::APFloat(0.0), /*source_axes=*/{}, /*root=*/0, /*why=*/nullptr, /*token=*/0);
  }]>];
  let extraClassDeclaration = [{
    // Number of devices in each group.
    int64_t getGroupSize();
  }];
}

def Exec_AwaitOp : Exec_Op<"await", [AllTypesMatch<["started", "result"]>]> {
  let summary = "Waits for a collective that was started";
  let description = [{
    `started` is the result of a collective with this token in the same block, `input` is its input, and `to` its destinations, if it has
    any. Their memory must not change until the await. The result is the same memory as `started`.
    - (C1) `started` is the result of an `exec.collective` with the same, positive token, whose operands are `input` and `to`.

    Example: `%y = exec.await %s, %x token = 1 : tensor<4xf32>, tensor<4xf32>` for
    `%s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>`
  }];
  let arguments = (ins Exec_Tensor:$started, Exec_Tensor:$input, Optional<Exec_Tensor>:$to, I64Attr:$token);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $started `,` $input (`to` $to^ `:` type($to))? `token` `=` $token attr-dict `:` type($started) `,` type($input)
  }];
}

// Not pure: for each pair of devices, the receives of one must match the sends of the other, in the same order.
class Exec_Transfer<string mnemonic> : Op<Exec_Dialect, mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
}

def Exec_SendOp : Exec_Transfer<"send"> {
  let summary = "Sends a tensor to the device at another index along axes";
  let description = [{
    Sends to the device with index `peer` along `axes` and the same position along all other axes. `axes` are triples as in
    `exec.collective`. The send does not wait until the receiver has the tensor.
    - (C1) `axes` are triples of a non-negative axis number and two positive numbers.
    - (C2) `peer` is an index along `axes`.

    Example: `exec.send %x axes = [0, 1, 2] peer = 1 : tensor<4x6xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input, DenseI64ArrayAttr:$axes, I64Attr:$peer, OptionalAttr<AnyAttr>:$why);
  let assemblyFormat = "$input `axes` `=` $axes `peer` `=` $peer attr-dict `:` type($input)";
}

def Exec_ReceiveOp : Exec_Transfer<"receive"> {
  let summary = "Receives a tensor from the device at another index along axes";
  let description = [{
    Waits for the tensor sent by the device with index `peer` along `axes` and the same position along all other axes. `axes` are
    triples as in `exec.collective`.
    - (C1) `axes` are triples of a non-negative axis number and two positive numbers.
    - (C2) `peer` is an index along `axes`.

    Example: `%x = exec.receive axes = [0, 1, 2] peer = 0 : tensor<4x6xf32>`
  }];
  let arguments = (ins DenseI64ArrayAttr:$axes, I64Attr:$peer, OptionalAttr<AnyAttr>:$why);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = "`axes` `=` $axes `peer` `=` $peer attr-dict `:` type($result)";
}

#endif  // PARTITA_DIALECTS_EXEC_OPS_TD
