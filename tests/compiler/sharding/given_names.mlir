// RUN: partita-opt --partita-name-dimensions %s | FileCheck %s

// Existing names stay and spread to dimensions without names. The structure is
// not used, because it does not describe a training step.

// CHECK: @main(%{{.*}}: tensor<4x8xf32> {nn.dims = ["L", "M"]
// CHECK-SAME: %{{.*}}: tensor<6x8xf32> {nn.dims = ["V", "M"]
func.func @main(%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x", nn.dims = ["L", "M"]},
                %w: tensor<6x8xf32> {nn.kind = "parameter", nn.name = "w"}) -> tensor<4x6xf32> {
  // CHECK: nn.dot_general {{.*}}nn.dims = {{\[\[}}"L", "V"]]
  %0 = nn.dot_general %x, %w contract = [1] x [1] {nn.dims = [["L", "V"]]} : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  // CHECK: arith.negf {{.*}}nn.dims = {{\[\[}}"L", "V"]]
  %1 = arith.negf %0 : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
