// RUN: partita-opt %s --partita-differentiate=recompute=none | FileCheck %s

// The backward function receives frozen weights as integers, not the floats that the forward function multiplies by.
// CHECK-LABEL: func.func @main
// CHECK: call @layer_backward{{.*}}tensor<4x2x2xi8>
// CHECK-LABEL: func.func private @layer_forward
// CHECK-SAME: -> tensor<3x4xf32> {
// CHECK-LABEL: func.func private @layer_backward
// CHECK: arith.sitofp
// CHECK: nn.dequantize
// CHECK: return
func.func @main(%x: tensor<3x8xf32> {nn.kind = "input", nn.name = "x"},
                %a: tensor<8xf32> {nn.kind = "parameter", nn.name = "a"},
                %q: tensor<4x2x2xi8> {nn.kind = "buffer", nn.name = "q"},
                %s: tensor<4x2xf32> {nn.kind = "buffer", nn.name = "q_scale"},
                %w: tensor<4x4xi8> {nn.kind = "buffer", nn.name = "w"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = call @layer(%x, %a, %q, %s, %w) : (tensor<3x8xf32>, tensor<8xf32>, tensor<4x2x2xi8>, tensor<4x2xf32>, tensor<4x4xi8>) -> tensor<3x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

func.func private @layer(%x: tensor<3x8xf32>, %a: tensor<8xf32>, %q: tensor<4x2x2xi8>, %s: tensor<4x2xf32>, %w: tensor<4x4xi8>) -> tensor<3x4xf32> {
  %0 = nn.broadcast %a dims = [1] : tensor<8xf32> -> tensor<3x8xf32>
  %1 = arith.mulf %x, %0 : tensor<3x8xf32>
  %2 = nn.dequantize %q scale(%s) : (tensor<4x2x2xi8>, tensor<4x2xf32>) -> tensor<4x2x4xf32>
  %3 = nn.reshape %2 : tensor<4x2x4xf32> -> tensor<4x8xf32>
  %4 = nn.dot_general %1, %3 contract = [1] x [1] : tensor<3x8xf32>, tensor<4x8xf32> -> tensor<3x4xf32>
  %5 = arith.sitofp %w : tensor<4x4xi8> to tensor<4x4xf32>
  %6 = nn.dot_general %4, %5 contract = [1] x [1] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}
