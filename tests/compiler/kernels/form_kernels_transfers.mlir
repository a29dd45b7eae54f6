// RUN: partita-opt %s --partita-form-kernels | FileCheck %s

// A sent value is not fused with work on a received value: the first sum is sent before anything is received.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = exec.launch
// CHECK-NEXT: exec.send %[[A]]
// CHECK-NEXT: %[[R:.*]] = exec.receive
// CHECK-NEXT: exec.launch @{{.*}}(%[[R]], %[[A]]
// CHECK-NEXT: return
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %x, %y : tensor<8xf32>
  exec.send %0 axes = [0, 1, 2] peer = 1 : tensor<8xf32>
  %1 = exec.receive axes = [0, 1, 2] peer = 1 : tensor<8xf32>
  %2 = arith.mulf %1, %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A launch is placed before the first reader of any of its results.
// CHECK-LABEL: func.func @early
// CHECK: %[[B:.*]]:2 = exec.launch
// CHECK-NEXT: call @other(%[[B]]
// CHECK-NEXT: exec.send
func.func @early(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %x, %y : tensor<8xf32>
  call @other(%0) : (tensor<8xf32>) -> ()
  %1 = arith.mulf %0, %x : tensor<8xf32>
  exec.send %1 axes = [0, 1, 2] peer = 1 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @other(%x: tensor<8xf32>) {
  return
}
