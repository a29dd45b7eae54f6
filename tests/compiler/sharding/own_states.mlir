// RUN: partita-opt %s "--partita-apply-plan=mesh=data=2 shard=B=data" --partita-partition | FileCheck %s

// Each device has one row of the state and its own gradient. Nothing is exchanged.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<1x60xf32> {{[^%]*}}nn.name = "w/local_sum"
// CHECK-SAME: -> (tensor<1x60xf32> {{.*}}nn.updates = "w/local_sum"})
// CHECK-NOT: dist.all_
// CHECK: %[[OLD:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<1x60xf32> -> tensor<60xf32>
// CHECK: %[[G:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<4x60xf32> -> tensor<60xf32>
// CHECK-NEXT: %[[ROW:.*]] = nn.broadcast %[[G]] dims = [1] : tensor<60xf32> -> tensor<1x60xf32>
// CHECK: %[[SHARE:.*]] = arith.mulf %[[ROW]]
// CHECK-NEXT: %[[OWN:.*]] = nn.reduce sum %[[SHARE]] dims = [0] : tensor<1x60xf32> -> tensor<60xf32>
// CHECK-NEXT: %[[SUM:.*]] = call @add(%[[OLD]], %[[OWN]])
// CHECK-NEXT: nn.broadcast %[[SUM]] dims = [1] : tensor<60xf32> -> tensor<1x60xf32>
func.func @main(%x: tensor<8x60xf32> {nn.dims = ["B", "E"]},
                %u: tensor<60xf32> {nn.dims = ["E"], nn.kind = "state", nn.name = "w/local_sum"})
    -> (tensor<60xf32> {nn.updates = "w/local_sum"}) attributes {nn.own_states} {
  %g = nn.reduce sum %x dims = [0] : tensor<8x60xf32> -> tensor<60xf32>
  %0 = call @add(%u, %g) {nn.own_gradient = "w"} : (tensor<60xf32>, tensor<60xf32>) -> tensor<60xf32>
  return %0 : tensor<60xf32>
}

func.func private @add(%u: tensor<60xf32>, %g: tensor<60xf32>) -> tensor<60xf32> {
  %0 = arith.addf %u, %g : tensor<60xf32>
  return %0 : tensor<60xf32>
}
