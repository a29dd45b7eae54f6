// RUN: partita-opt %s --split-input-file "--partita-apply-plan=mesh=t=2 shard=M=t@h.0.*" | FileCheck %s

// A function called inside and outside of a scope is copied. M is divided only in the function called inside.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[UP0:[a-z0-9]+]]: tensor<4x6xf32> {{[^%]*}}[{?}, {"t", ?}p1]
// CHECK-SAME: %[[UP1:[a-z0-9]+]]: tensor<4x6xf32> {{[^%]*}}[{?}, {?}]
// CHECK: call @h({{.*}}%[[UP0]]
// CHECK: call @[[COPY:h_.*]]({{.*}}%[[UP1]]
// CHECK: func.func private @h
// CHECK: nn.dot_general {{.*}} {dist.shardings = [#dist.sharding<[{?}, {"t", ?}p1]>]
// CHECK: func.func private @[[COPY]]
// CHECK: nn.dot_general {{.*}} {dist.barred = array<i64: 1>, dist.shardings = [#dist.sharding<[{?}, {?}]>]
func.func @main(%x: tensor<8x4xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
    %up0: tensor<4x6xf32> {nn.dims = ["E", "M"], nn.kind = "parameter", nn.name = "h.0.mlp.up.weight"},
    %up1: tensor<4x6xf32> {nn.dims = ["E", "M"], nn.kind = "parameter", nn.name = "h.1.mlp.up.weight"}) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %0 = call @h(%x, %up0) : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = call @h(%x, %up1) : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0, %1 : tensor<8x6xf32>, tensor<8x6xf32>
}
func.func private @h(%x: tensor<8x4xf32> {nn.dims = ["B", "E"]}, %up: tensor<4x6xf32> {nn.dims = ["E", "M"]}) -> tensor<8x6xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// An operation without parameters is in the scope of its latest operand: %2 in h.0, %5 in h.1, although its operand %2 is in h.0.
// CHECK-LABEL: func.func @main
// CHECK: math.exp {{.*}} {dist.shardings = [#dist.sharding<[{"t", ?}p1]>]}
// CHECK: arith.addf {{.*}} {dist.barred = array<i64: 1>, dist.shardings = [#dist.sharding<[{?}]>]}
func.func @main(%x: tensor<6xf32> {nn.kind = "input", nn.name = "x"},
    %a: tensor<6xf32> {nn.dims = ["M"], nn.kind = "parameter", nn.name = "h.0.a"},
    %b: tensor<6xf32> {nn.dims = ["M"], nn.kind = "parameter", nn.name = "h.1.b"}) -> tensor<6xf32> {
  %1 = arith.addf %x, %a : tensor<6xf32>
  %2 = math.exp %1 : tensor<6xf32>
  %3 = arith.mulf %2, %b : tensor<6xf32>
  %4 = math.sin %3 : tensor<6xf32>
  %5 = arith.addf %2, %4 : tensor<6xf32>
  return %5 : tensor<6xf32>
}
