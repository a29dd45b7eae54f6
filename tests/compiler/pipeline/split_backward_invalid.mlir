// RUN: partita-opt %s --partita-split-backward --verify-diagnostics --split-input-file
// RUN: not partita-opt %s --partita-split-backward="cells=1.x" 2>&1 | FileCheck %s

// CHECK: expected cells to be 'all' or STAGE.MICROBATCH, separated by ';', found '1.x'
func.func private @outside(tensor<f32>) -> tensor<f32>
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{expected a function with a body named 'outside'}}
  %0 = call @outside(%x) {nn.backward} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
