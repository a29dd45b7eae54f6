// Operations of the exec dialect; constraints (Cn) are checked in verify.cc.
#ifndef PARTITA_DIALECTS_EXEC_OPS_TD
#define PARTITA_DIALECTS_EXEC_OPS_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/exec/dialect.td"

def Exec_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

def Exec_Activation : I32EnumAttr<"Activation", "what a library call applies to its result", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>, I32EnumAttrCase<"gelu_erf", 2>, I32EnumAttrCase<"gelu_tanh", 3>,
    I32EnumAttrCase<"silu", 4>, I32EnumAttrCase<"tanh", 5>, I32EnumAttrCase<"sigmoid", 6>]> {
  let cppNamespace = "::partita::exec";
  let genSpecializedAttr = 0;
}
def Exec_ActivationAttr : EnumAttr<Exec_Dialect, Exec_Activation, "activation"> { let assemblyFormat = "$value"; }

def Exec_LaunchOp : Exec_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a generated kernel";
  let description = [{
    `kernel` names a private function whose body, on tensors, says what is
    computed. After code generation the launch knows how far the work splits
    over threads: `range` independent pieces, at least `grain` of them a thread,
    and `scratch` bytes of working memory per thread.
    - (C1) `kernel` is a function of the operands' and results' types.

    Example: `%y = exec.launch @kernel_0(%x) : (tensor<8xf32>) -> tensor<8xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_Tensor>:$operands_, OptionalAttr<I64Attr>:$range,
                       OptionalAttr<I64Attr>:$grain, OptionalAttr<I64Attr>:$scratch);
  let results = (outs Variadic<Exec_Tensor>:$results_);
  let assemblyFormat = "$kernel `(` $operands_ `)` attr-dict `:` functional-type($operands_, $results_)";
  let hasVerifier = 0;
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
                       DefaultValuedAttr<Exec_ActivationAttr, "Activation::none">:$activation);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    `sizes` `=` $sizes `lhs_strides` `=` $lhs_strides `rhs_strides` `=` $rhs_strides (`activation` `=` $activation^)? attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)
  }];
}

def Exec_ConvOp : Exec_Op<"conv", [AttrSizedOperandSegments]> {
  let summary = "Convolution by a library";
  let description = [{
    As `nn.conv`, then + bias[o], activation, + residual.
    - (C1) `strides`, `dilations`, `low`, `high` have rank - 2 entries.
    - (C2) `bias` has one element per output channel, `residual` the result's type; element types are equal.

    Example: `%y = exec.conv %x, %w strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>`
  }];
  let arguments = (ins Exec_Tensor:$input, Exec_Tensor:$weight, Optional<Exec_Tensor>:$bias, Optional<Exec_Tensor>:$residual,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       I64Attr:$groups, UnitAttr:$channels_last, DefaultValuedAttr<Exec_ActivationAttr, "Activation::none">:$activation);
  let results = (outs Exec_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    `strides` `=` $strides `dilations` `=` $dilations `low` `=` $low `high` `=` $high `groups` `=` $groups
    (`channels_last` $channels_last^)? (`activation` `=` $activation^)? attr-dict `:` `(` type($input) `,` type($weight) `)` `->` type($result)
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

#endif  // PARTITA_DIALECTS_EXEC_OPS_TD
