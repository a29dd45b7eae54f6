// Results that no operation can write to the caller's memory are copied.
// RUN: partita-opt %s --partita-copy-returned --split-input-file | FileCheck %s
// RUN: partita-opt %s --partita-copy-returned --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=NAME

// An argument, a constant and a value that is returned twice are copied. The result of the launch is not.
// CHECK-LABEL: @main
// CHECK: %[[C:.*]] = arith.constant
// CHECK: %[[Y:.*]] = exec.launch
// CHECK-NEXT: %[[OF_X:.*]] = exec.copy %arg0 {exec.offsets = array<i64: -2>} : tensor<4xf32>
// CHECK-NEXT: %[[OF_C:.*]] = exec.copy %[[C]] {exec.offsets = array<i64: -3>} : tensor<4xf32>
// CHECK-NEXT: %[[AGAIN:.*]] = exec.copy %[[Y]] {exec.offsets = array<i64: -4>} : tensor<4xf32>
// CHECK-NEXT: return %[[Y]], %[[OF_X]], %[[OF_C]], %[[AGAIN]]
// NAME-DAG: loc("copy of result 1"
// NAME-DAG: loc("copy of result 3"
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} { return %x : tensor<4xf32> }
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c = arith.constant dense<1.0> : tensor<4xf32>
  %y = exec.launch @k(%x) {exec.offsets = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %x, %c, %y : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The old value of p is a result, so it is copied before the new value overwrites it.
// CHECK-LABEL: @old
// CHECK-NEXT: %[[OLD:.*]] = exec.copy %arg0 {exec.offsets = array<i64: -2>}
// CHECK-NEXT: %[[NEW:.*]] = exec.copy %arg1 {exec.offsets = array<i64: -1>}
// CHECK-NEXT: return %[[NEW]], %[[OLD]]
func.func @old(%p: tensor<4xf32> {nn.name = "p"}, %x: tensor<4xf32>) -> (tensor<4xf32> {nn.updates = "p"}, tensor<4xf32>) {
  return %x, %p : tensor<4xf32>, tensor<4xf32>
}
