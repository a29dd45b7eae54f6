// RUN: partita-opt %s --partita-differentiate | FileCheck %s

// A dist.constraint also applies to the gradient of its value.

dist.mesh @mesh <["d"=2]>

// CHECK-LABEL: @segment_backward
// CHECK: %[[G:.*]] = dist.constraint %{{.*}} <[{"d"}, {}]>
// CHECK: nn.dot_general
func.func @main(%x: tensor<4x4xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = dist.constraint %0 <[{"d"}, {} ]> : tensor<4x4xf32>
  %2 = dist.barrier %1 forward : tensor<4x4xf32>
  %3 = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %3 : tensor<f32>
}
