// RUN: partita-opt %s | partita-opt | FileCheck %s

func.func private @kernel(%x: tensor<2x50x96xbf16>) -> tensor<4xbf16> {
  %0 = arith.constant dense<0.0> : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// CHECK-LABEL: @maps
// CHECK: exec.launch @kernel(%{{.*}}) {maps = [#exec.tensor_map<operand 0 offset 64 shape[2, 50, 64] strides[9600, 192] box[1, 64, 64]>]}
func.func @maps(%x: tensor<2x50x96xbf16>) -> tensor<4xbf16> {
  %0 = exec.launch @kernel(%x) {maps = [#exec.tensor_map<operand 0 offset 64 shape [2, 50, 64] strides [9600, 192] box [1, 64, 64]>]} : (tensor<2x50x96xbf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
