// RUN: partita explain %s --mesh t=2 --shard "M=t@h.0.*" | FileCheck %s

// CHECK: all_reduce over t
// CHECK: gone without M: t at h.0.* (--shard)
func.func @main(%x: tensor<7x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "h.0.up.weight", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "h.0.down.weight", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<7x8xf32> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<7x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<7x8xf32>, tensor<8x16xf32> -> tensor<7x16xf32>
  %2 = math.tanh %1 : tensor<7x16xf32>
  %3 = nn.dot_general %2, %down contract = [1] x [0] : tensor<7x16xf32>, tensor<16x8xf32> -> tensor<7x8xf32>
  %4 = arith.addf %3, %x : tensor<7x8xf32>
  return %4 : tensor<7x8xf32>
}
