// RUN: partita-opt %s --partita-plan-memory --split-input-file | FileCheck %s

// Memory is reused when its value is dead. The last result is written straight to the caller's memory.
// CHECK-LABEL: @chain
// CHECK-SAME: exec.frame_bytes = 128
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 64>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: -1>}
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  return %x : tensor<16xf32>
}
func.func @chain(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.launch @k(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = exec.launch @k(%1) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = exec.launch @k(%2) : (tensor<16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}

// -----

// The callee's frame is inside the caller's, beside values that live across the call.
// CHECK-LABEL: @layer
// CHECK-SAME: exec.frame_bytes = 64
// CHECK-LABEL: @main
// CHECK-SAME: exec.frame_bytes = 128
// CHECK: call @layer{{.*}} {exec.frame_offset = 64 : i64, exec.offsets = array<i64: 0>}
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  return %x : tensor<16xf32>
}
func.func private @layer(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.launch @k(%0) : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = func.call @layer(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @layer(%0) : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// -----

// A view extends the life of its value.
// CHECK-LABEL: @view
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 64>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: -1>}
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  return %x : tensor<16xf32>
}
func.func private @two(%x: tensor<4x4xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  return %y : tensor<16xf32>
}
func.func @view(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.view %0 : tensor<16xf32> -> tensor<4x4xf32>
  %2 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = exec.launch @two(%1, %2) : (tensor<4x4xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}

// -----

// A collective's operand lives until the collective ends, so the result has another offset.
// CHECK-LABEL: @collective
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.collective {{.*}}exec.offsets = array<i64: 64>
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: -1>}
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  return %x : tensor<16xf32>
}
func.func @collective(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.collective permute %0 axes = [0, 1, 2] {source_axes = array<i64: 0, 1, 2>} : tensor<16xf32> -> tensor<16xf32>
  %2 = exec.launch @k(%1) : (tensor<16xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
