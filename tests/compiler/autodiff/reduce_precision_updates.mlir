// RUN: partita-opt %s --partita-reduce-precision | FileCheck %s

// A number that a layer returns for a buffer stays f32, with what is computed
// from it and other exact values. One that a call uses otherwise does not.
// CHECK-LABEL: func.func @main(
// CHECK: call @layer({{.*}} -> (tensor<2x8xbf16>, tensor<f32>, tensor<bf16>)
func.func @main(
    %x: tensor<2x8xf32> {nn.kind = "input", nn.name = "x"},
    %high: tensor<f32> {nn.kind = "buffer", nn.name = "high"})
    -> (tensor<2x8xf32> {nn.name = "y"}, tensor<f32> {nn.updates = "high"}) {
  %y:3 = call @layer(%x, %high) : (tensor<2x8xf32>, tensor<f32>) -> (tensor<2x8xf32>, tensor<f32>, tensor<f32>)
  %b = nn.broadcast %y#2 dims = [] : tensor<f32> -> tensor<2x8xf32>
  %s = arith.addf %y#0, %b : tensor<2x8xf32>
  return %s, %y#1 : tensor<2x8xf32>, tensor<f32>
}

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: tensor<2x8xbf16>, %[[HIGH:.*]]: tensor<f32>) -> (tensor<2x8xbf16>, tensor<f32>, tensor<bf16>)
func.func private @layer(%x: tensor<2x8xf32>, %high: tensor<f32>) -> (tensor<2x8xf32>, tensor<f32>, tensor<f32>) {
  // CHECK: %[[NOW:.*]] = nn.reduce max {{.*}} : tensor<2x8xf32> -> tensor<f32>
  // CHECK-NEXT: %[[NOW16:.*]] = arith.truncf %[[NOW]] : tensor<f32> to tensor<bf16>
  // CHECK: %[[MOVED:.*]] = arith.addf %[[HIGH]], %{{.*}} : tensor<f32>
  // CHECK-NEXT: nn.broadcast %[[MOVED]]
  // CHECK: return %{{.*}}, %[[MOVED]], %[[NOW16]] : tensor<2x8xbf16>, tensor<f32>, tensor<bf16>
  %now = nn.reduce max %x dims = [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %change = arith.subf %now, %high : tensor<f32>
  %moved = arith.addf %high, %change : tensor<f32>
  %b = nn.broadcast %moved dims = [] : tensor<f32> -> tensor<2x8xf32>
  %y = arith.divf %x, %b : tensor<2x8xf32>
  return %y, %moved, %now : tensor<2x8xf32>, tensor<f32>, tensor<f32>
}
