// RUN: partita-opt %s --partita-assign-stages="stages=3 last=*.h.0;*.h.2;ln" --split-input-file | FileCheck %s

// Each stage ends with the given layer; the last stage ends with the model.
// CHECK-LABEL: func.func @main(
// CHECK: arith.addf {{.*}}nn.stage = 0
// CHECK: call @layer({{.*}}nn.stage = 0
// CHECK: call @layer({{.*}}nn.stage = 1
// CHECK: call @layer({{.*}}nn.stage = 1
// CHECK: arith.mulf {{.*}}nn.stage = 2
// CHECK: arith.negf {{.*}}nn.stage = 2
func.func private @layer(%x: tensor<4x6xf32>, %w: tensor<6x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func @main(%a: tensor<4x6xf32> {nn.kind = "input", nn.name = "a"},
                %e: tensor<4x6xf32> {nn.kind = "parameter", nn.name = "m.e"},
                %w0: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "m.h.0.w"},
                %w1: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "m.h.1.w"},
                %w2: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "m.h.2.w"},
                %l: tensor<4x6xf32> {nn.kind = "parameter", nn.name = "ln.w"})
    -> tensor<4x6xf32> {
  %0 = arith.addf %a, %e : tensor<4x6xf32>
  %1 = call @layer(%0, %w0) : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %2 = call @layer(%1, %w1) : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %3 = call @layer(%2, %w2) : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %4 = arith.mulf %3, %l : tensor<4x6xf32>
  %5 = arith.negf %4 : tensor<4x6xf32>
  return %5 : tensor<4x6xf32>
}
