// RUN: partita-opt %s --split-input-file --partita-remove-dead-arguments | FileCheck %s

// Removes an unused argument, an unread result, and a result that is an argument.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[R:.*]] = call @layer(%[[X]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[R]], %[[X]]
// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[E:.*]] = math.exp %[[A]]
// CHECK-NEXT: return %[[E]]
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:3 = call @layer(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1, %0#0 : tensor<4xf32>, tensor<4xf32>
}
func.func private @layer(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %e = math.exp %a : tensor<4xf32>
  %t = math.tanh %b : tensor<4xf32>
  return %a, %e, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Removes arguments and results through a layer that calls another.
// CHECK-LABEL: func @main
// CHECK: call @outer(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func private @outer(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK: call @inner(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func private @inner(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @outer(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %t = math.tanh %b : tensor<4xf32>
  %0:2 = call @inner(%a, %t) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}
func.func private @inner(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = math.exp %a : tensor<4xf32>
  %f = math.exp %b : tensor<4xf32>
  return %e, %f : tensor<4xf32>, tensor<4xf32>
}
