// RUN: partita-opt %s "--partita-apply-plan=mesh=data=2 shard=B=data" --partita-partition | FileCheck %s

// Each device uses its local gradient without a reduction. Devices exchange words of sign bits, and scales.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<1x64xf32> {{[^%]*}}nn.name = "w/worker_error"
// CHECK-SAME: tensor<1x32xf32> {{[^%]*}}nn.name = "w/server_error"
// CHECK-NOT: dist.all_reduce
// CHECK: %[[G:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<4x60xf32> -> tensor<60xf32>
// CHECK-NEXT: %[[ROW:.*]] = nn.broadcast %[[G]] dims = [1] : tensor<60xf32> -> tensor<1x60xf32>
// CHECK: %[[OWN:.*]] = arith.mulf %[[ROW]]
// CHECK: call @one_bit_exchange(%[[OWN]],
func.func @main(%x: tensor<8x60xf32> {nn.dims = ["B", "E"]},
                %m: tensor<60xf32> {nn.dims = ["E"], nn.kind = "state", nn.name = "w/exp_avg"})
    -> (tensor<60xf32> {nn.updates = "w/exp_avg"}) {
  %g = nn.reduce sum %x dims = [0] : tensor<8x60xf32> -> tensor<60xf32>
  %0 = call @momentum(%m, %g) {nn.one_bit = "w", nn.beta = 0.9 : f64} : (tensor<60xf32>, tensor<60xf32>) -> tensor<60xf32>
  return %0 : tensor<60xf32>
}

// CHECK-NOT: @momentum
// CHECK-LABEL: func.func private @one_bit_exchange
// CHECK: dist.all_to_all %{{.*}} over ["data"] split = 1 concat = 0 {{.*}}: tensor<1x2x1xi32> -> tensor<2x1x1xi32>
// CHECK: dist.all_to_all %{{.*}} over ["data"] split = 1 concat = 0 {{.*}}: tensor<1x2xf32> -> tensor<2x1xf32>
// CHECK: dist.all_gather %{{.*}} over ["data"] dim = 0 {{.*}}: tensor<1x1xi32> -> tensor<2x1xi32>
// CHECK: dist.all_gather %{{.*}} over ["data"] dim = 0 {{.*}}: tensor<1xf32> -> tensor<2xf32>
func.func private @momentum(%m: tensor<60xf32>, %g: tensor<60xf32>) -> tensor<60xf32> {
  %beta = arith.constant dense<0.9> : tensor<60xf32>
  %rest = arith.constant dense<0.1> : tensor<60xf32>
  %0 = arith.mulf %m, %beta : tensor<60xf32>
  %1 = arith.mulf %g, %rest : tensor<60xf32>
  %2 = arith.addf %0, %1 : tensor<60xf32>
  return %2 : tensor<60xf32>
}
