// RUN: partita-opt %s "--partita-name-dimensions=names='h.*.up:1=X; h.?.down:1=V'" | FileCheck %s

// A user's name applies to the whole class and overrides the structure.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["E", "X"], {{.*}}"h.0.up"
// CHECK-SAME: {nn.dims = ["X", "V"], {{.*}}"h.0.down"
// CHECK: math.tanh {{.*}}nn.dims = {{\[\[}}"B", "X"]]
func.func @main(%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "h.0.up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %down: tensor<16x6xf32> {nn.kind = "parameter", nn.name = "h.0.down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<4x6xf32> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<4x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %2 = math.tanh %1 : tensor<4x16xf32>
  %3 = nn.dot_general %2, %down contract = [1] x [0] : tensor<4x16xf32>, tensor<16x6xf32> -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
