// Correct sharding rules are accepted and left unchanged.
// RUN: partita-opt %s --partita-verify-rules | FileCheck %s

// CHECK-LABEL: @sound
// CHECK: {nn.rule = #nn.rule<([i, k], [k, j]) -> ([i, j]) {i=64, j=50000, k=4096} reduced={k}>}
func.func @sound(%x: tensor<64x4096xf32>, %w: tensor<4096x50000xf32>) -> tensor<64x50000xf32> {
  %y = nn.dot_general %x, %w contract = [1] x [0] {nn.rule = #nn.rule<([i, k], [k, j]) -> ([i, j]) {i=64, j=50000, k=4096} reduced={k}>} : tensor<64x4096xf32>, tensor<4096x50000xf32> -> tensor<64x50000xf32>
  return %y : tensor<64x50000xf32>
}

// CHECK-LABEL: @narrower
// A user's rule may forbid divisions that the operation supports.
func.func @narrower(%x: tensor<8x9xf32>) -> tensor<8x9xf32> {
  %y = math.exp %x {nn.rule = #nn.rule<([i, j]) -> ([i, j]) {i=8, j=9} whole={j}>} : tensor<8x9xf32>
  return %y : tensor<8x9xf32>
}

func.func @own_rule(%x: tensor<8x9xf32>) -> tensor<8x9xf32> {
  %y = math.exp %x : tensor<8x9xf32>
  return %y : tensor<8x9xf32>
}
