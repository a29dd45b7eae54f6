// RUN: partita-opt %s "--partita-apply-plan=mesh=data=2,pod=3 shard=B=data;M=pod;B=pod" | FileCheck %s

// Two entries for B: each axis has its entry's priority. The product's M gets pod, because M's entry precedes B's second.
// CHECK-LABEL: func.func @main
// CHECK-SAME: #dist.sharding<[{"data", "pod", ?}p[1, 3], {?}]>
// CHECK-SAME: #dist.sharding<[{?}, {"pod", ?}p2]>
// CHECK: nn.dot_general {{.*}}#dist.sharding<[{"data", ?}p1, {"pod", ?}p2]>
func.func @main(%x: tensor<12x4xf32> {nn.dims = ["B", "E"]}, %w: tensor<4x6xf32> {nn.dims = ["E", "M"]}) -> tensor<12x6xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<12x4xf32>, tensor<4x6xf32> -> tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}
