// RUN: partita-opt %s --split-input-file --partita-partition | FileCheck %s

dist.mesh @mesh <["x"=2, "y"=2]>

// The sum is reduced over y at once, over x after the addition, which is linear: one reduction for both summands.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = nn.reduce sum %{{.*}} : tensor<8x2xf32> -> tensor<8xf32>
// CHECK-NEXT: %[[AY:.*]] = dist.all_reduce %[[A]] over ["y"] sum
// CHECK-NEXT: %[[B:.*]] = nn.reduce sum %{{.*}} : tensor<8x4xf32> -> tensor<8xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[AY]], %[[B]]
// CHECK-NEXT: %[[ALL:.*]] = dist.all_reduce %[[SUM]] over ["x"] sum
// CHECK-NEXT: return %[[ALL]]
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{}, {"x", "y"}]>},
                %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{}, {"x"}]>}) -> tensor<8xf32> {
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<[{}] unreduced = {"x"}>]} : tensor<8x8xf32> -> tensor<8xf32>
  %1 = nn.reduce sum %b dims = [1] {dist.shardings = [#dist.sharding<[{}] unreduced = {"x"}>]} : tensor<8x8xf32> -> tensor<8xf32>
  %2 = arith.addf %0, %1 {dist.shardings = [#dist.sharding<[{}]>]} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2, "y"=2]>

// A replicated summand would be counted twice, so the reduction comes before the addition.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = nn.reduce sum
// CHECK: %[[AY:.*]] = dist.all_reduce %[[A]] over ["y"] sum
// CHECK: dist.reduce_scatter %[[AY]] over ["x"] dim = 0 sum
// CHECK: arith.addf
// CHECK-NOT: sum
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{}, {"x", "y"}]>},
                %b: tensor<8xf32> {dist.sharding = #dist.sharding<[{}]>}) -> (tensor<8xf32>) {
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<[{}] unreduced = {"x"}>]} : tensor<8x8xf32> -> tensor<8xf32>
  %1 = arith.addf %0, %b {dist.shardings = [#dist.sharding<[{"x"}]>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// A product of two partial sums is not a partial sum, so the reduction comes before it.
// CHECK-LABEL: func.func @main
// CHECK: dist.all_reduce
// CHECK-NEXT: %{{.*}} = arith.mulf
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{}, {"x"}]>}) -> tensor<8xf32> {
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<[{}] unreduced = {"x"}>]} : tensor<8x8xf32> -> tensor<8xf32>
  %1 = arith.mulf %0, %0 {dist.shardings = [#dist.sharding<[{}]>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
