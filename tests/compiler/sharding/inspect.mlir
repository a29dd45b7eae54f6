// RUN: partita inspect %s | FileCheck %s
// RUN: partita inspect %s --json | FileCheck %s --check-prefix=JSON
// RUN: partita inspect %s --name "up:1=X" | FileCheck %s --check-prefix=NAME
// RUN: not partita inspect %s --name "upp:1=X" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: dimensions:
// CHECK-NEXT: name sizes parameters in all values for example
// CHECK-NEXT: B 4 0 0 B {{.*}} x [B, E]
// CHECK-NEXT: M 16 3 {{.*}} up [E, M]
// CHECK-NEXT: E 8 1
// CHECK-NEXT: V 6 1
// CHECK-NEXT: no name divides table [100, 5]

// JSON: "dimensions":{"ambiguous":[],"names":[
// JSON-SAME: {"example":"up [E, M]","name":"M","parameter_bytes":960,"parameters":3,"sizes":[16],"values":

// NAME: X 16 3
// UNKNOWN: error: expected a parameter that matches 'upp', found none; similar names are 'up'
func.func @main(%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %bias: tensor<16xf32> {nn.kind = "parameter", nn.name = "bias", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %down: tensor<16x6xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %table: tensor<100x5xf32> {nn.kind = "parameter", nn.name = "table", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> (tensor<4x6xf32>, tensor<100x5xf32>) {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<4x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %2 = nn.broadcast %bias dims = [1] : tensor<16xf32> -> tensor<4x16xf32>
  %3 = arith.addf %1, %2 : tensor<4x16xf32>
  %4 = nn.dot_general %3, %down contract = [1] x [0] : tensor<4x16xf32>, tensor<16x6xf32> -> tensor<4x6xf32>
  %5 = math.tanh %table : tensor<100x5xf32>
  return %4, %5 : tensor<4x6xf32>, tensor<100x5xf32>
}
