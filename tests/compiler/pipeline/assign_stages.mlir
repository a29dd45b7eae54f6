// RUN: partita-opt %s --partita-assign-stages=stages=2 --split-input-file | FileCheck %s

// Stages have equal work. An operation on inputs alone gets the stage of its
// user, or no stage if several stages use it.
// CHECK-LABEL: func.func @main(
// CHECK: arith.addf {{.*}}nn.stage = 0
// CHECK: arith.cmpi sgt, %arg0, %arg0 : tensor<4xi64>
// CHECK: call @layer({{.*}}nn.stage = 0
// CHECK: call @layer({{.*}}nn.stage = 0
// CHECK: arith.cmpi slt{{.*}}nn.stage = 1
// CHECK: call @layer({{.*}}nn.stage = 1
// CHECK: call @layer({{.*}}nn.stage = 1
func.func private @layer(%x: tensor<4x6xf32>, %m: tensor<4xi1>, %w: tensor<6x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func @main(%ids: tensor<4xi64> {nn.kind = "input", nn.name = "ids"}, %a: tensor<4x6xf32> {nn.kind = "input", nn.name = "a"},
                %e: tensor<4x6xf32> {nn.kind = "parameter", nn.name = "e"}, %w: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<4x6xf32>, tensor<4xi64>) {
  %0 = arith.addf %a, %e : tensor<4x6xf32>
  %m = arith.cmpi sgt, %ids, %ids : tensor<4xi64>
  %1 = call @layer(%0, %m, %w) : (tensor<4x6xf32>, tensor<4xi1>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %2 = call @layer(%1, %m, %w) : (tensor<4x6xf32>, tensor<4xi1>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %late = arith.cmpi slt, %ids, %ids : tensor<4xi64>
  %3 = call @layer(%2, %m, %w) : (tensor<4x6xf32>, tensor<4xi1>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %4 = call @layer(%3, %late, %w) : (tensor<4x6xf32>, tensor<4xi1>, tensor<6x6xf32>) -> tensor<4x6xf32>
  return %4, %ids : tensor<4x6xf32>, tensor<4xi64>
}
