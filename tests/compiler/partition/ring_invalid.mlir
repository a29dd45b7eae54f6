// RUN: not partita-opt %s --partita-partition 2>&1 | FileCheck %s

// CHECK: 'nn.attention_grad' op expected the operand 'lse' for a ring, found none
dist.mesh @mesh <["s"=2]>
func.func @main(%q: tensor<1x2x4x8xf32> {dist.sharding = #dist.sharding<[{}, {}, {"s"}, {}]>}) -> tensor<1x2x4x8xf32> {
  %0, %1, %2 = nn.attention_grad %q, %q, %q, %q, %q scale = 1.0 {dist.long_attention = 2 : i64, dist.shardings = [#dist.sharding<[{}, {}, {"s"}, {}]>, #dist.sharding<[{}, {}, {"s"}, {}]>, #dist.sharding<[{}, {}, {"s"}, {}]>]} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return %0 : tensor<1x2x4x8xf32>
}
