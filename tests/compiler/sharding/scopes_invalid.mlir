// RUN: not partita-opt %s "--partita-apply-plan=mesh=t=2 shard=M=t@h.7.*" 2>&1 | FileCheck %s

// CHECK: error: --shard: shard at: expected a pattern of layers of the model, found 'h.7.*', which matches none; similar names are 'h.0', 'h', 'h.0.up'
func.func @main(%x: tensor<8x4xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
    %up: tensor<4x6xf32> {nn.dims = ["E", "M"], nn.kind = "parameter", nn.name = "h.0.up.weight"}) -> tensor<8x6xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
