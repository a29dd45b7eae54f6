// RUN: partita-opt %s --split-input-file --partita-partition | FileCheck %s

dist.mesh @mesh <["data"=2]>

// A partial sum is reduced at its definition.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32> {dist.global_type = tensor<8x6xf32>
// CHECK: %[[Y:.*]] = nn.reduce sum %[[X]] dims = [0] : tensor<4x6xf32> -> tensor<6xf32>
// CHECK: dist.all_reduce %[[Y]] over ["data"] sum
func.func @main(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}) -> tensor<6xf32> {
  %0 = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<[{}]>]} : tensor<8x6xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

dist.mesh @mesh <["data"=2]>

// Rows beyond the end are replaced by the neutral element of the reduction.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOWEST:.*]] = arith.constant dense<0xFF800000> : tensor<4x6xf32>
// CHECK: dist.coordinate over ["data"]
// CHECK: %[[CLEAN:.*]] = arith.select %{{.*}}, %{{.*}}, %[[LOWEST]]
// CHECK: nn.reduce max %[[CLEAN]]
// CHECK: dist.all_reduce %{{.*}} over ["data"] max
func.func @main(%x: tensor<7x6xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}) -> tensor<6xf32> {
  %0 = nn.reduce max %x dims = [0] {dist.shardings = [#dist.sharding<[{}]>]} : tensor<7x6xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

dist.mesh @mesh <["t"=2]>

// A partial sum becomes a divided value in one step.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = nn.dot_general %{{.*}} : tensor<8x2xf32>, tensor<2x6xf32> -> tensor<8x6xf32>
// CHECK: dist.reduce_scatter %[[Y]] over ["t"] dim = 0 sum
// CHECK-NOT: dist.all_reduce
func.func @main(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{}, {"t"}]>},
                %w: tensor<4x6xf32> {dist.sharding = #dist.sharding<[{"t"}, {}]>}) -> tensor<8x6xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] {dist.shardings = [#dist.sharding<[{"t"}, {}]>]} : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

dist.mesh @mesh <["h"=2]>

// Stride 2, kernel 3, padding 1: the first device needs rows -1 .. 7 of 16, the second 7 .. 15.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = dist.exchange %{{.*}} over ["h"] dim = 2 size = 16 step = 8 offset = -1 fill = 0.000000e+00 {{.*}}: tensor<1x3x8x16xf32> -> tensor<1x3x9x16xf32>
// CHECK: nn.conv %[[X]], %{{.*}} low = [0, 1] high = [0, 1]
func.func @main(%x: tensor<1x3x16x16xf32> {dist.sharding = #dist.sharding<[{}, {}, {"h"}, {}]>},
                %w: tensor<4x3x3x3xf32> {dist.sharding = #dist.sharding<[{}, {}, {}, {}]>}) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 {dist.shardings = [#dist.sharding<[{}, {}, {"h"}, {}]>]} : tensor<1x3x16x16xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

// -----

dist.mesh @mesh <["v"=2]>

// A divided table: a lookup in another device's rows gives 0, and an all-reduce sums the parts.
// CHECK-LABEL: func.func @main
// CHECK: %[[FOUND:.*]] = nn.gather %{{.*}} axes = [0] : tensor<5x4xf32>
// CHECK: %[[PART:.*]] = arith.select %{{.*}}, %[[FOUND]], %{{.*}}
// CHECK: dist.all_reduce %[[PART]] over ["v"] sum
func.func @main(%table: tensor<9x4xf32> {dist.sharding = #dist.sharding<[{"v"}, {}]>},
                %ids: tensor<3x1xi64> {dist.sharding = #dist.sharding<[{}, {}]>}) -> tensor<3x4xf32> {
  %0 = nn.gather %table[%ids] axes = [0] {dist.shardings = [#dist.sharding<[{}, {}]>]} : tensor<9x4xf32>, tensor<3x1xi64> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

dist.mesh @mesh <["h"=2]>

// 7 rows and one padding row. The last shard's row beyond the end is not valid padding: an exchange fills it, without a neighbour's row.
// CHECK-LABEL: func.func @main
// CHECK: dist.exchange %{{.*}} over ["h"] dim = 2 size = 7 step = 4 offset = 0 fill = 0xFFF0000000000000 {{.*}}: tensor<1x3x4x6xf32> -> tensor<1x3x4x6xf32>
func.func @main(%x: tensor<1x3x7x6xf32> {dist.sharding = #dist.sharding<[{}, {}, {"h"}, {}]>}) -> tensor<1x3x4x6xf32> {
  %0 = nn.reduce_window max %x window = [1, 1, 2, 1] strides = [1, 1, 2, 1] dilations = [1, 1, 1, 1] low = [0, 0, 0, 0] high = [0, 0, 1, 0] {dist.shardings = [#dist.sharding<[{}, {}, {"h"}, {}]>]} : tensor<1x3x7x6xf32> -> tensor<1x3x4x6xf32>
  return %0 : tensor<1x3x4x6xf32>
}
