// RUN: not partita-opt %s "--partita-differentiate=train=w;v*" 2>&1 | FileCheck %s

// CHECK: expected a parameter whose name matches 'v*', found none; one is 'w'
func.func @main(%w: tensor<f32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<f32> {nn.name = "loss"}) {
  return %w : tensor<f32>
}
