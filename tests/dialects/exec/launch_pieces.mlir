// RUN: partita-opt %s | partita-opt | FileCheck %s

func.func private @k_0(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }
func.func private @k_1(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }

// CHECK-LABEL: @pieces
// CHECK: exec.launch_pieces [@k_0, @k_1](%arg0, %arg0, %arg1, %arg1) ranges = [8, 4] {grain = 1 : i64, scratch = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
func.func @pieces(%a: tensor<8xf32>, %b: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %0:2 = exec.launch_pieces [@k_0, @k_1](%a, %a, %b, %b) ranges = [8, 4] {grain = 1 : i64, scratch = 0 : i64}
    : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xf32>
}

// CHECK-LABEL: @into
// CHECK: %[[A:.*]] = exec.launch @k_0(%arg0, %arg0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK: exec.launch @k_0(%arg0, %arg0) into(%[[A]] : tensor<8xf32>) {operations = 5 : i64, unread = -3 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
func.func @into(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = exec.launch @k_0(%a, %a) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = exec.launch @k_0(%a, %a) into(%0 : tensor<8xf32>) {operations = 5 : i64, unread = -3 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: @copy
// CHECK: exec.copy %arg0 : tensor<8xf32>
func.func @copy(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = exec.copy %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
