// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: %[[S:.*]] = exec.collective all_reduce %arg0 axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
// CHECK: exec.await %[[S]], %arg0 token = 1 : tensor<4xf32>, tensor<4xf32>
func.func @await(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  %y = exec.await %s, %x token = 1 : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
