// Operations of the exec dialect; constraints (Cn) are checked in verify.cc.
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
    Of a tensor that begins `offset` bytes into the operand with this number, its dimensions outermost first; `strides` are those of all
    dimensions but the last, in bytes. A box has so many elements along each of them, zeros outside of the tensor, and is swizzled by 128
    bytes.

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
    `kernel` names a private function whose body, on tensors, says what is
    computed. After code generation the launch knows how far the work splits
    over threads: `range` independent pieces, at least `grain` of them a thread,
    and `scratch` bytes of working memory per thread. On a GPU, instead, `blocks`
    blocks of `threads` threads, `scratch` bytes of device memory for all, and
    `shared` bytes of shared memory for each block beyond what its code names,
    and `maps` by which the kernel copies. `operations` is the number of floating-point operations of its matrix products;
    `unread` is the number of bytes of its operands that it leaves alone, below 0 if it reads some again.
    A launch with `into` goes on with the results of an earlier launch: its results are the same memory, part of which the
    earlier one has written. It has no offsets of its own.
    - (C1) `kernel` is a function of the operands' and results' types.
    - (C2) Each of `maps` is of an operand, inside of which it lies, and has 2 to 5 dimensions, with positive sizes, strides and boxes.
    - (C3) `into` is empty, or all results of one `exec.launch` of the same block, in their order, whose types are those of the results.

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
  // Before code is generated.
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::llvm::StringRef":$kernel, "::mlir::ValueRange":$operands), [{
    build($_builder, $_state, results, kernel, operands, /*into=*/{}, /*range=*/nullptr, /*grain=*/nullptr, /*scratch=*/nullptr,
          /*blocks=*/nullptr, /*threads=*/nullptr, /*shared=*/nullptr, /*maps=*/nullptr, /*operations=*/nullptr, /*unread=*/nullptr);
  }]>];
}

def Exec_SymbolsAttr : TypedArrayAttrBase<FlatSymbolRefAttr, "names of functions">;

def Exec_LaunchPiecesOp : Exec_Op<"launch_pieces", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a generated kernel on several lists of operands at once";
  let description = [{
    The kernels share one code, which is `exec.kernel` of each, and differ in their sizes. Piece i runs `kernels[i]` over
    [0, ranges[i]); the pieces run at once, none of them writing what another reads or writes. Operands are those of piece 0,
    of piece 1, and so on, and so are the results. `grain`, `scratch`, `operations` and `unread` are as in `exec.launch`.
    - (C1) Operands and results are those of the kernels, one after the other.
    - (C2) There are at least two kernels, and as many ranges, which are not negative.
    - (C3) A kernel has at most 64 operands and results.

    Example: `%y:2 = exec.launch_pieces [@k_0, @k_1](%a, %b) ranges = [8, 4] {grain = 1 : i64, scratch = 0 : i64} :
    (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)`
  }];
  let arguments = (ins Exec_SymbolsAttr:$kernels, Variadic<Exec_Tensor>:$operands_, DenseI64ArrayAttr:$ranges, I64Attr:$grain,
                       I64Attr:$scratch, OptionalAttr<I64Attr>:$operations, OptionalAttr<I64Attr>:$unread);
  let results = (outs Variadic<Exec_Tensor>:$results_);
  let assemblyFormat = "$kernels `(` $operands_ `)` `ranges` `=` $ranges attr-dict `:` functional-type($operands_, $results_)";
  let extraClassDeclaration = [{
    // The piece that a result is of, and the operands of a piece.
    unsigned getPieceOf(::mlir::OpResult result);
    ::mlir::OperandRange getOperandsOf(unsigned piece);
  }];
}

def Exec_CopyOp : Exec_Op<"copy", [AllTypesMatch<["input", "result"]>]> {
  let summary = "The same values in memory of their own";
  let description = [{
    Example: `%y = exec.copy %x : tensor<8xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input);
  let results = (outs Exec_Tensor:$result);
  let hasVerifier = 0;
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Exec_GemmOp : Exec_Op<"gemm", [AttrSizedOperandSegments]> {
  let summary = "Matrix product by a library";
  let description = [{
    out[b, m, n] = activation(sum over k of lhs[b, m, k] * rhs[b, k, n] + bias[n]) + residual[b, m, n] with
    `sizes` = [batch, m, n, k] and operands read through strides in elements: `lhs_strides` [batch, m, k],
    `rhs_strides` [batch, k, n]. The result and `residual` are dense.
    - (C1) `sizes` has 4 positive entries; stride arrays have 3 non-negative entries; `rhs_strides`' last two are not both 0.
    - (C2) The result has batch * m * n elements, `bias` n and `residual` as many as the result; element types are equal.
    - (C3) The last element that the strides reach lies inside `lhs` and `rhs`.

    Example: `%y = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>`
  }];
  let arguments = (ins Exec_Tensor:$lhs, Exec_Tensor:$rhs, Optional<Exec_Tensor>:$bias, Optional<Exec_Tensor>:$residual,
                       DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$lhs_strides, DenseI64ArrayAttr:$rhs_strides,
                       DefaultValuedAttr<Exec_ActivationAttr, "::partita::terms::Activation::kNone">:$activation);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    `sizes` `=` $sizes `lhs_strides` `=` $lhs_strides `rhs_strides` `=` $rhs_strides (`activation` `=` $activation^)? attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)
  }];
}

def Exec_ConvDirectionAttr : EnumAttr<Exec_Dialect, Terms_ConvDirection, "conv_direction"> {
  let cppNamespace = "::partita::exec";
  let assemblyFormat = "$value";
}

def Exec_ConvOp : Exec_Op<"conv", [AttrSizedOperandSegments]> {
  let summary = "Convolution by a library";
  let description = [{
    As `nn.conv`, then + bias[o], activation, + residual; with `direction` input_grad as `nn.conv_input_grad` of `input`,
    which is then the result's gradient, and `weight`; with weight_grad as `nn.conv_weight_grad` of `input` and `weight`,
    which is then the result's gradient.
    - (C1) `strides`, `dilations`, `low`, `high` have rank - 2 entries.
    - (C2) `bias` has one element per output channel, `residual` the result's type; element types are equal.
    - (C3) A gradient has neither `bias` nor `residual` nor an activation.

    Example: `%y = exec.conv %x, %w strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input, Exec_Tensor:$weight, Optional<Exec_Tensor>:$bias, Optional<Exec_Tensor>:$residual,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       I64Attr:$groups, UnitAttr:$channels_last, DefaultValuedAttr<Exec_ConvDirectionAttr, "::partita::terms::ConvDirection::kForward">:$direction,
                       DefaultValuedAttr<Exec_ActivationAttr, "::partita::terms::Activation::kNone">:$activation);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high `groups` `=` $groups
    (`channels_last` $channels_last^)? (`direction` `=` $direction^)? (`activation` `=` $activation^)? attr-dict `:` `(` type($input) `,` type($weight) `)` `->` type($result)
  }];
}

def Exec_ViewOp : Exec_Op<"view"> {
  let summary = "The same memory under another shape";
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
    `axes` is a list of parts of mesh axes, three numbers each: the axis, `pre` and `size`, as program.fbs says. The devices that differ in
    these digits only are a group of n. Along `dim`, b is the size of a block and S that of the whole:

    | kind             | input        | result | also |
    |------------------|--------------|--------|------|
    | `all_reduce`     | any          | same   | `reduction` |
    | `all_gather`     | b            | S      | |
    | `reduce_scatter` | S            | b      | `reduction` |
    | `all_slice`      | S            | b      | |
    | `all_to_all`     | S, and b' of `other_dim` | b, and S' of `other_dim` | |
    | `exchange`       | b            | rows [r * step + offset, ...) on the device of index r | `size` (S), `step`, `offset`, `fill` |
    | `permute`        | any          | that of the device whose index along `source_axes` is ours along `axes` | |
    | `broadcast`      | any          | that of the device of index `root` | |

    - (C1) `axes` and `source_axes` are triples of an axis, not negative, and two positive numbers; `source_axes` numbers as many devices as `axes` in a
      permutation, and is empty otherwise.
    - (C2) `dim` is a dimension, and -1 where the kind has none; so `other_dim`, another one, in `all_to_all`.
    - (C3) The types are equal but for the sizes of `dim` and `other_dim`.
    - (C4) S is at most n * b. In an exchange `step` is not negative.
    - (C5) `token` is not negative. A positive one says that the collective is only started: one `exec.await` with this token, and
      nothing else, uses the result.

    Example: `%y = exec.collective all_gather %x axes = [0, 1, 4] {dim = 1 : i64} : tensor<4x2xf32> -> tensor<4x7xf32>`
  }];
  let arguments = (ins Exec_CollectiveKindAttr:$kind, Exec_Tensor:$input, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<Exec_ReductionAttr, "::partita::terms::Reduction::kSum">:$reduction, DefaultValuedAttr<I64Attr, "-1">:$dim,
                       DefaultValuedAttr<I64Attr, "-1">:$other_dim, DefaultValuedAttr<I64Attr, "0">:$size,
                       DefaultValuedAttr<I64Attr, "0">:$step, DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<F64Attr, "0.0">:$fill, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$source_axes,
                       DefaultValuedAttr<I64Attr, "0">:$root, OptionalAttr<AnyAttr>:$why, DefaultValuedAttr<I64Attr, "0">:$token);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = "$kind $input `axes` `=` $axes (`reduction` `=` $reduction^)? attr-dict `:` type($input) `->` type($result)";
  // What the kind does not need is left out.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "CollectiveKind":$kind, "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$axes), [{
    build($_builder, $_state, result, kind, input, axes, Reduction::kSum, /*dim=*/-1, /*other_dim=*/-1, /*size=*/0, /*step=*/0,
          /*offset=*/0, /*fill=*/::llvm::APFloat(0.0), /*source_axes=*/{}, /*root=*/0, /*why=*/nullptr, /*token=*/0);
  }]>];
  let extraClassDeclaration = [{
    // Devices in each group.
    int64_t getGroupSize();
  }];
}

def Exec_AwaitOp : Exec_Op<"await", [AllTypesMatch<["started", "result"]>]> {
  let summary = "Waits for a collective that was started";
  let description = [{
    `started` is the result of a collective with this token in the same block, and `input` what it moves, which must stay as it is until here. The result
    is the same memory as `started`.
    - (C1) `started` is the result of an `exec.collective` with the same, positive token, whose input is `input`.

    Example: `%y = exec.await %s, %x token = 1 : tensor<4xf32>, tensor<4xf32>` for
    `%s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>`
  }];
  let arguments = (ins Exec_Tensor:$started, Exec_Tensor:$input, I64Attr:$token);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = "$started `,` $input `token` `=` $token attr-dict `:` type($started) `,` type($input)";
}

// Not pure: what one device sends another must receive, in the same order between each two of them.
class Exec_Transfer<string mnemonic> : Op<Exec_Dialect, mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
}

def Exec_SendOp : Exec_Transfer<"send"> {
  let summary = "Gives a tensor to the device at another index along axes";
  let description = [{
    To the device that differs along `axes`, triples as in `exec.collective`, only, and is `peer` there. Does not wait until that has received it.
    - (C1) `axes` are triples of an axis, not negative, and two positive numbers.
    - (C2) `peer` is an index along `axes`.

    Example: `exec.send %x axes = [0, 1, 2] peer = 1 : tensor<4x6xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input, DenseI64ArrayAttr:$axes, I64Attr:$peer, OptionalAttr<AnyAttr>:$why);
  let assemblyFormat = "$input `axes` `=` $axes `peer` `=` $peer attr-dict `:` type($input)";
}

def Exec_ReceiveOp : Exec_Transfer<"receive"> {
  let summary = "Takes a tensor from the device at another index along axes";
  let description = [{
    What the device that differs along `axes`, triples as in `exec.collective`, only, and is `peer` there, sent; waits for it.
    - (C1) `axes` are triples of an axis, not negative, and two positive numbers.
    - (C2) `peer` is an index along `axes`.

    Example: `%x = exec.receive axes = [0, 1, 2] peer = 0 : tensor<4x6xf32>`
  }];
  let arguments = (ins DenseI64ArrayAttr:$axes, I64Attr:$peer, OptionalAttr<AnyAttr>:$why);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = "`axes` `=` $axes `peer` `=` $peer attr-dict `:` type($result)";
}

#endif  // PARTITA_DIALECTS_EXEC_OPS_TD
