// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: %[[S:.*]] = exec.collective all_reduce %arg0 axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
// CHECK: exec.await %[[S]], %arg0 token = 1 : tensor<4xf32>, tensor<4xf32>
func.func @await(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  %y = exec.await %s, %x token = 1 : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK: %[[S:.*]] = exec.collective send_rows %arg0 to %arg1 {{.*}}token = 1
// CHECK: exec.await %[[S]], %arg0 to %arg1 : tensor<4x1xi64> token = 1
func.func @await_rows(%x: tensor<4x8xf32>, %to: tensor<4x1xi64>) -> tensor<8x8xf32> {
  %s = exec.collective send_rows %x to %to : tensor<4x1xi64> axes = [0, 1, 2] {dim = 0 : i64, size = 4 : i64, token = 1 : i64} : tensor<4x8xf32> -> tensor<8x8xf32>
  %y = exec.await %s, %x to %to : tensor<4x1xi64> token = 1 : tensor<8x8xf32>, tensor<4x8xf32>
  return %y : tensor<8x8xf32>
}
