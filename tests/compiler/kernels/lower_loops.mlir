// RUN: partita-opt %s --partita-lower-loops | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = call @body(%{{.*}}, %{{.*}}, %{{.*}}) {exec.repeats} : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)
// CHECK: return %[[R]]#1
// CHECK-NOT: nn.loop
func.func @main(%more: tensor<i1>, %x: tensor<4xf32>, %limit: tensor<f32>) -> tensor<4xf32> {
  %go, %y = nn.loop @body(%more, %x, %limit) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)
  return %y : tensor<4xf32>
}
func.func private @body(%go: tensor<i1>, %x: tensor<4xf32>, %limit: tensor<f32>) -> (tensor<i1>, tensor<4xf32>) {
  return %go, %x : tensor<i1>, tensor<4xf32>
}

// A loop within the body of a loop.
// CHECK-LABEL: func.func private @outer
// CHECK: call @body(%{{.*}}, %{{.*}}, %{{.*}}) {exec.repeats}
// CHECK-LABEL: func.func @nested
// CHECK: call @outer(%{{.*}}, %{{.*}}, %{{.*}}) {exec.repeats}
// CHECK-NOT: nn.loop
func.func private @outer(%go: tensor<i1>, %x: tensor<4xf32>, %limit: tensor<f32>) -> (tensor<i1>, tensor<4xf32>) {
  %inner, %y = nn.loop @body(%go, %x, %limit) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)
  return %inner, %y : tensor<i1>, tensor<4xf32>
}
func.func @nested(%more: tensor<i1>, %x: tensor<4xf32>, %limit: tensor<f32>) -> tensor<4xf32> {
  %go, %y = nn.loop @outer(%more, %x, %limit) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)
  return %y : tensor<4xf32>
}
