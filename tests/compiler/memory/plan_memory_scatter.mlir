// A scatter into a state writes to the state's own memory; a state that the kernel reads elsewhere is copied later.
// RUN: partita-opt %s --partita-plan-memory --split-input-file | FileCheck %s

// CHECK-LABEL: @main
// CHECK: exec.launch @write({{.*}} {exec.offsets = array<i64: -1>}
func.func private @write(%state: tensor<16x4xf32>, %at: tensor<1x1xi64>, %x: tensor<1x4xf32>) -> tensor<16x4xf32> attributes {exec.kernel} {
  %0 = nn.scatter %state[%at], %x axes = [0] kind = set : tensor<16x4xf32>, tensor<1x1xi64>, tensor<1x4xf32> -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}
func.func @main(%state: tensor<16x4xf32> {nn.name = "s"}, %at: tensor<1x1xi64>, %x: tensor<1x4xf32>) -> (tensor<16x4xf32> {nn.updates = "s"}) {
  %0 = exec.launch @write(%state, %at, %x) : (tensor<16x4xf32>, tensor<1x1xi64>, tensor<1x4xf32>) -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}

// -----

// The updates depend on the state, so that it must not change before they are read.
// CHECK-LABEL: @main
// CHECK: exec.launch @swap({{.*}} {exec.offsets = array<i64: 0>}
func.func private @swap(%state: tensor<16x4xf32>, %at: tensor<16x1xi64>) -> tensor<16x4xf32> attributes {exec.kernel} {
  %0 = nn.scatter %state[%at], %state axes = [0] kind = set : tensor<16x4xf32>, tensor<16x1xi64>, tensor<16x4xf32> -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}
func.func @main(%state: tensor<16x4xf32> {nn.name = "s"}, %at: tensor<16x1xi64>) -> (tensor<16x4xf32> {nn.updates = "s"}) {
  %0 = exec.launch @swap(%state, %at) : (tensor<16x4xf32>, tensor<16x1xi64>) -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}

// -----

// The state is read after the scatter.
// CHECK-LABEL: @main
// CHECK: exec.launch @write({{.*}} {exec.offsets = array<i64: 0>}
func.func private @write(%state: tensor<16x4xf32>, %at: tensor<1x1xi64>, %x: tensor<1x4xf32>) -> tensor<16x4xf32> attributes {exec.kernel} {
  %0 = nn.scatter %state[%at], %x axes = [0] kind = set : tensor<16x4xf32>, tensor<1x1xi64>, tensor<1x4xf32> -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}
func.func private @read(%state: tensor<16x4xf32>) -> tensor<16x4xf32> attributes {exec.kernel} {
  return %state : tensor<16x4xf32>
}
func.func @main(%state: tensor<16x4xf32> {nn.name = "s"}, %at: tensor<1x1xi64>, %x: tensor<1x4xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32> {nn.updates = "s"}) {
  %0 = exec.launch @write(%state, %at, %x) : (tensor<16x4xf32>, tensor<1x1xi64>, tensor<1x4xf32>) -> tensor<16x4xf32>
  %1 = exec.launch @read(%state) : (tensor<16x4xf32>) -> tensor<16x4xf32>
  return %1, %0 : tensor<16x4xf32>, tensor<16x4xf32>
}
