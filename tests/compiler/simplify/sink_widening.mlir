// RUN: partita-opt %s --split-input-file --partita-sink-widening --canonicalize | FileCheck %s

// All calls widen alike.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xi8>, %[[Y:.*]]: tensor<4xi8>)
// CHECK: call @layer(%[[X]]) : (tensor<4xi8>) -> tensor<4xf32>
// CHECK: call @layer(%[[Y]]) : (tensor<4xi8>) -> tensor<4xf32>
// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[A:.*]]: tensor<4xi8>)
// CHECK: %[[E:.*]] = arith.extui %[[A]]
// CHECK: %[[F:.*]] = arith.sitofp %[[E]]
// CHECK: arith.negf %[[F]]
func.func @main(%x: tensor<4xi8>, %y: tensor<4xi8>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = arith.extui %x : tensor<4xi8> to tensor<4xi32>
  %1 = arith.sitofp %0 : tensor<4xi32> to tensor<4xf32>
  %2 = arith.extui %y : tensor<4xi8> to tensor<4xi32>
  %3 = arith.sitofp %2 : tensor<4xi32> to tensor<4xf32>
  %4 = call @layer(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = call @layer(%3) : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %5 : tensor<4xf32>, tensor<4xf32>
}
func.func private @layer(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.negf %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// One call widens signed integers, the other unsigned ones: the function stays.
// CHECK-LABEL: func @main
// CHECK: call @layer(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: call @layer(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: func private @layer
// CHECK-SAME: (%{{.*}}: tensor<4xf32>)
func.func @main(%x: tensor<4xi8>, %y: tensor<4xi8>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = arith.sitofp %x : tensor<4xi8> to tensor<4xf32>
  %1 = arith.uitofp %y : tensor<4xi8> to tensor<4xf32>
  %2 = call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @layer(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}
func.func private @layer(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.negf %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
