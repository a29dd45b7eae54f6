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
