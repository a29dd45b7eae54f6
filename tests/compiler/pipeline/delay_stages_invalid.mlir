// RUN: partita-opt %s --partita-delay-stages --verify-diagnostics --split-input-file
// RUN: not partita-opt %s --partita-delay-stages=weights=oldest --split-input-file 2>&1 | FileCheck %s

// CHECK: expected weights to be previous or newest, found 'oldest'

func.func private @f(tensor<f32>) -> tensor<f32>
// expected-error@+1 {{expected at least 2 microbatches for 3 stages that keep one version of the weights besides the newest, found 1}}
func.func @main(%x: tensor<f32> {nn.kind = "input", nn.name = "x"}) -> tensor<f32> {
  %0 = call @f(%x) {nn.stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) {nn.stage = 1 : i64} : (tensor<f32>) -> tensor<f32>
  %2 = call @f(%1) {nn.stage = 2 : i64} : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// For example: the norm of all gradients, needed before any gradient is used.
func.func private @f(tensor<f32>) -> tensor<f32>
func.func @main(%x: tensor<f32> {nn.kind = "input", nn.name = "x"}) -> tensor<f32> {
  %0 = call @f(%x) {nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{reads a value that is computed 1 microbatches later, but stages do not wait for the end of a step; take a schedule that does}}
  %1 = call @f(%0) {nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// For example: the scale of the loss.
func.func private @f(tensor<f32>, tensor<f32>) -> tensor<f32>
func.func @main(%x: tensor<f32> {nn.kind = "input", nn.name = "x"}, %s: tensor<f32> {nn.kind = "state", nn.name = "s"}) -> (tensor<f32> {nn.updates = "s"}) {
  // expected-error@+1 {{reads 's', which is computed later, but stages do not wait for the end of a step; take a schedule that does}}
  %0 = call @f(%x, %s) {nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = call @f(%0, %0) {nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
