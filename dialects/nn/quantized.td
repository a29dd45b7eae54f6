// Numbers stored as small integers.
#ifndef PARTITA_DIALECTS_NN_QUANTIZED_TD
#define PARTITA_DIALECTS_NN_QUANTIZED_TD

def NN_DequantizeOp : NN_Composite<"dequantize"> {
  let summary = "Numbers from unsigned integers of 4 bits with a scale per group";
  let description = [{
    result[..., i] = scale[...] * (q[..., i] - zero[...]), where byte j of a group holds q[..., 2 j] in its four low
    bits and q[..., 2 j + 1] in its four high bits. Without `zero`, 8 is subtracted. This is the layout of ONNX's
    MatMulNBits. Rounded once to the result's type.
    - (C1) `packed` is [..., H], `scale` and `zero` have its sizes without the last, and the result is [..., 2 H].
    - (C2) `packed` and `zero` are of i8; `scale` and the result have the same element type.

    Example: `%w = nn.dequantize %q scale(%s) : (tensor<6x4x16xi8>, tensor<6x4xf32>) -> tensor<6x4x32xf32>`

    Example: `%w = nn.dequantize %q scale(%s) zero(%z) : (tensor<6x4x16xi8>, tensor<6x4xf32>, tensor<6x4xi8>) -> tensor<6x4x32xf32>`
  }];
  let arguments = (ins NN_IntTensor:$packed, NN_FloatTensor:$scale, Optional<NN_IntTensor>:$zero);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $packed `scale` `(` $scale `)` (`zero` `(` $zero^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif  // PARTITA_DIALECTS_NN_QUANTIZED_TD
