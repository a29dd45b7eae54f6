// RUN: partita-opt %s --split-input-file "--partita-apply-plan=mesh=data=2,tensor=3 shard=B=data;E=tensor" | FileCheck %s

// Entries apply to dimensions of their name and propagate to dimensions without one. 8 features over 3 devices: blocks of 3.
// CHECK: dist.mesh @mesh <["data"=2, "tensor"=3]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: dist.sharding = #dist.sharding<[{"data", ?}p1, {"tensor", ?}p2]>
// CHECK: math.exp %{{.*}} {dist.shardings = [#dist.sharding<[{"data", ?}p1, {"tensor", ?}p2]>]}
func.func @main(%x: tensor<4x8xf32> {nn.dims = ["B", "E"]}) -> tensor<4x8xf32> {
  %0 = math.exp %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Heads are not cut: 4 heads of size 8 over 3 devices are blocks of 2 heads.
// CHECK-LABEL: func.func @main
// CHECK-SAME: #dist.sharding<[{?}, {"tensor", ?}p2|16]>
func.func @main(%x: tensor<4x32xf32> {nn.dims = ["L", "E*8"]}) -> tensor<4x32xf32> {
  return %x : tensor<4x32xf32>
}

// -----

// A softmax over a divided dimension is decomposed.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.softmax
// CHECK: nn.reduce max
// CHECK: math.exp
// CHECK: nn.reduce sum
func.func @main(%x: tensor<4x8xf32> {nn.dims = ["B", "E"]}) -> tensor<4x8xf32> {
  %0 = nn.softmax %x axis = 1 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
