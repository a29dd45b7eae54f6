// RUN: not partita-opt %s --split-input-file "--partita-apply-plan=mesh=a=2,b=2 shard=B=a" 2>&1 | FileCheck %s

// Values of a group must have equal shardings; annotations of the values differ.
// CHECK: annotated_groups_invalid.mlir:[[# @LINE + 7]]:{{[0-9]+}}: error: expected annotations that divide the values of a dist.group alike, found [{a, ?}, {?}] for dist.group '{{.*}}' and [{b, ?}, {?}] for dist.group '{{.*}}'; change the annotations that they come from, or take one of the two out of the group
// CHECK: annotated_groups_invalid.mlir:[[# @LINE + 5]]:{{[0-9]+}}: note: the other value of the group
dist.mesh @mesh <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<4x4xf32> {dist.sharding = #dist.sharding<[{"a"}, {}]>},
    %y: tensor<4x4xf32> {dist.sharding = #dist.sharding<[{"b"}, {}]>}) -> tensor<4x4xf32> {
  %0 = dist.group %x id = 1 : tensor<4x4xf32>
  %1 = dist.group %y id = 1 : tensor<4x4xf32>
  %2 = arith.addf %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// The annotations of the group operations differ.
// CHECK: annotated_groups_invalid.mlir:[[# @LINE + 5]]:{{[0-9]+}}: error: expected annotations that divide the values of a dist.group alike, found [{b}, {}] for dist.group '{{.*}}' and [{}, {}] for dist.group '{{.*}}'; change
// CHECK: annotated_groups_invalid.mlir:[[# @LINE + 3]]:{{[0-9]+}}: note: the other value of the group
dist.mesh @mesh <["a"=2, "b"=2]>
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = dist.group %x id = 1 {dist.shardings = [#dist.sharding<[{"b"}, {}]>]} : tensor<4x4xf32>
  %1 = dist.group %x id = 1 {dist.shardings = [#dist.sharding<[{}, {}]>]} : tensor<4x4xf32>
  %2 = arith.addf %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
