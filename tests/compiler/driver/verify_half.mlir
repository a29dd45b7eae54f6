// RUN: partita verify %s --mesh t=2 --shard "M=t" --json | FileCheck %s

// Each half of a sum is rounded to 8 bits before the halves are added. The tolerance allows for this.
// CHECK: "equal":true,{{.*}}"largest":0.00{{[0-9]+}},{{.*}}"tolerance":0.0625
func.func @main(%x: tensor<7x8xbf16> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xbf16> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xbf16> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<7x8xbf16> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<7x8xbf16>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<7x8xbf16>, tensor<8x16xbf16> -> tensor<7x16xbf16>
  %2 = math.tanh %1 : tensor<7x16xbf16>
  %3 = nn.dot_general %2, %down contract = [1] x [0] : tensor<7x16xbf16>, tensor<16x8xbf16> -> tensor<7x8xbf16>
  %4 = arith.addf %3, %x : tensor<7x8xbf16>
  return %4 : tensor<7x8xbf16>
}
