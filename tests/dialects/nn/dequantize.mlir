// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @dequantize
// CHECK: nn.dequantize %arg0 scale(%arg1) : (tensor<6x4x16xi8>, tensor<6x4xf32>) -> tensor<6x4x32xf32>
// CHECK: nn.dequantize %arg0 scale(%arg1) zero(%arg2) : (tensor<6x4x16xi8>, tensor<6x4xf32>, tensor<6x4xi8>) -> tensor<6x4x32xf32>
func.func @dequantize(%q: tensor<6x4x16xi8>, %s: tensor<6x4xf32>, %z: tensor<6x4xi8>) {
  %w = nn.dequantize %q scale(%s) : (tensor<6x4x16xi8>, tensor<6x4xf32>) -> tensor<6x4x32xf32>
  %v = nn.dequantize %q scale(%s) zero(%z) : (tensor<6x4x16xi8>, tensor<6x4xf32>, tensor<6x4xi8>) -> tensor<6x4x32xf32>
  return
}
