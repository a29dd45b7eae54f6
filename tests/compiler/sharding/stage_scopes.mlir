// RUN: partita-opt %s --split-input-file "--partita-apply-plan=mesh=p=2,x=2 shard=D=p;B=x@stage(0);M=x@stage(1)" | FileCheck %s

// A function called in two stages is copied. Each copy has the shardings of its stage, whatever the names of layers are.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[UP0:[a-z0-9]+]]: tensor<4x6xf32> {{[^%]*}}[{?}, {?}]
// CHECK-SAME: %[[UP1:[a-z0-9]+]]: tensor<4x6xf32> {{[^%]*}}[{?}, {"x", ?}p3]
// CHECK: call @h({{.*}}%[[UP0]]
// CHECK: call @[[COPY:h_.*]]({{.*}}%[[UP1]]
// CHECK: func.func private @h(
// CHECK: nn.dot_general {{.*}} {dist.barred = array<i64: 3>, dist.shardings = [#dist.sharding<[{"x", ?}p2, {?}]>]
// CHECK: func.func private @[[COPY]](
// CHECK: nn.dot_general {{.*}} {dist.barred = array<i64: 2>, dist.shardings = [#dist.sharding<[{?}, {"x", ?}p3]>]
func.func @main(%x: tensor<8x4xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
    %up0: tensor<4x6xf32> {nn.dims = ["E", "M"], nn.kind = "parameter", nn.name = "up0"},
    %y: tensor<8x4xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "y"},
    %up1: tensor<4x6xf32> {nn.dims = ["E", "M"], nn.kind = "parameter", nn.name = "up1"}) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %0 = call @h(%x, %up0) {nn.stage = 0 : i64} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = call @h(%y, %up1) {nn.stage = 1 : i64} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0, %1 : tensor<8x6xf32>, tensor<8x6xf32>
}
func.func private @h(%x: tensor<8x4xf32> {nn.dims = ["B", "E"]}, %up: tensor<4x6xf32> {nn.dims = ["E", "M"]}) -> tensor<8x6xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// A parameter of two stages has the sharding of the stage that updates it; without updates, those of both stages.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[TIED:[a-z0-9]+]]: tensor<6xf32> {{[^%]*}}[{?}]>
// CHECK-SAME: %[[FIXED:[a-z0-9]+]]: tensor<6xf32> {{[^%]*}}[{"x", ?}p3]>
// CHECK: math.exp %[[TIED]] {dist.barred = array<i64: 3>, dist.shardings = [#dist.sharding<[{?}]>]
// CHECK: math.exp %[[TIED]] {dist.barred = array<i64: 2>, dist.shardings = [#dist.sharding<[{"x", ?}p3]>]
// CHECK: arith.subf {{.*}} {dist.barred = array<i64: 3>, dist.shardings = [#dist.sharding<[{?}]>]
func.func @main(%tied: tensor<6xf32> {nn.dims = ["M"], nn.kind = "parameter", nn.name = "tied"},
    %fixed: tensor<6xf32> {nn.dims = ["M"], nn.kind = "parameter", nn.name = "fixed"})
    -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32> {nn.updates = "tied"}) {
  %0 = math.exp %tied {nn.dims = [["M"]], nn.stage = 0 : i64} : tensor<6xf32>
  %1 = arith.addf %0, %fixed {nn.dims = [["M"]], nn.stage = 0 : i64} : tensor<6xf32>
  %2 = math.exp %tied {nn.dims = [["M"]], nn.stage = 1 : i64} : tensor<6xf32>
  %3 = arith.addf %2, %fixed {nn.dims = [["M"]], nn.stage = 1 : i64} : tensor<6xf32>
  %4 = arith.subf %tied, %2 {nn.dims = [["M"]]} : tensor<6xf32>
  return %1, %3, %4 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}
