// RUN: partita-opt --partita-partition --cse %s | FileCheck %s

// Rows travel to the devices of their experts, and the results are weighted and summed at home. Four rows with two choices make
// 8 pairs per device; a bound of 1.5 makes room for 12, of which two thirds are used on average. The last
// device has one expert, so the other block is not one.

dist.mesh @mesh <["d"=2]>

// CHECK-LABEL: @forward
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<-1> : tensor<4x2xi64>
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2> : tensor<4x2xi64>
// CHECK-DAG: %[[HOLDER:.*]] = arith.divsi %arg1, %[[TWO]]
// CHECK: %[[TO:.*]] = arith.select %{{.*}}, %[[HOLDER]], %[[NONE]]
// CHECK: %[[IDS:.*]] = dist.send_rows %{{.*}} to %{{.*}} over ["d"] fill = -1.000000e+00 {why = {{.*}}} : tensor<8x1xi64>, tensor<8x1xi64> -> tensor<12x1xi64>
// CHECK: %[[FIRST:.*]] = dist.coordinate over ["d"]
// CHECK: arith.subi %[[IDS]]
// CHECK: %[[ROWS:.*]] = dist.send_rows %arg0 to %[[TO]] over ["d"] fill = 0.000000e+00 {why = "each row travels to the devices that have its experts{{.*}}, for nn.experts{{.*}}"} : tensor<4x4xf32>, tensor<4x2xi64> -> tensor<12x4xf32>
// CHECK: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<12x1xf32>
// CHECK: %[[OUT:.*]] = nn.experts %[[ROWS]][%{{.*}}], %[[ONES]] up(%{{.*}} : tensor<2x6x4xf32>) down(%{{.*}} : tensor<2x4x6xf32>) activation = relu {nn.row_share = 0.66{{[0-9]+}} : f64} : tensor<12x4xf32>, tensor<12x1xi64>, tensor<12x1xf32> -> tensor<12x4xf32>
// CHECK: %[[BACK:.*]] = dist.return_rows %[[OUT]] to %[[TO]] over ["d"] {why = "results return to the devices that their rows came from{{.*}}, for nn.experts{{.*}}"} : tensor<12x4xf32>, tensor<4x2xi64> -> tensor<8x4xf32>
// CHECK: %[[PAIRS:.*]] = nn.reshape %[[BACK]] : tensor<8x4xf32> -> tensor<4x2x4xf32>
// CHECK: %[[WEIGHTED:.*]] = arith.mulf %[[PAIRS]]
// CHECK: nn.reduce sum %[[WEIGHTED]] dims = [1] : tensor<4x2x4xf32> -> tensor<4x4xf32>
func.func @forward(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"d"}, {}]>}, %ids: tensor<8x2xi64> {dist.sharding = #dist.sharding<[{"d"}, {}]>},
    %p: tensor<8x2xf32> {dist.sharding = #dist.sharding<[{"d"}, {}]>}, %u: tensor<3x6x4xf32> {dist.sharding = #dist.sharding<[{"d"}, {}, {}]>},
    %d: tensor<3x4x6xf32> {dist.sharding = #dist.sharding<[{"d"}, {}, {}]>}) -> tensor<8x4xf32> {
  %y = nn.experts %x[%ids], %p up(%u : tensor<3x6x4xf32>) down(%d : tensor<3x4x6xf32>) activation = relu
    {dist.row_exchange = 1.5 : f64, dist.shardings = [#dist.sharding<[{"d"}, {}]>]} : tensor<8x4xf32>, tensor<8x2xi64>, tensor<8x2xf32> -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Weights travel, too: their gradients need the results. All rows of the group fit.
// CHECK-LABEL: @backward
// CHECK: dist.send_rows {{.*}} : tensor<8x1xi64>, tensor<8x1xi64> -> tensor<16x1xi64>
// CHECK: dist.send_rows %arg0 to {{.*}} -> tensor<16x4xf32>
// CHECK: dist.send_rows {{.*}} : tensor<8x1xf32>, tensor<8x1xi64> -> tensor<16x1xf32>
// CHECK: dist.send_rows %arg3 to {{.*}} -> tensor<16x4xf32>
// CHECK: %x_grad, %weights_grad, %parameter_grads:2 = nn.experts_grad {{.*}}{nn.row_share = 5.000000e-01 : f64}
// CHECK-NOT: dist.all_reduce
// CHECK: dist.return_rows %x_grad to {{.*}} -> tensor<8x4xf32>
// CHECK: dist.return_rows %weights_grad to {{.*}} -> tensor<8x1xf32>
// CHECK-NOT: dist.
// CHECK: return
func.func @backward(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"d"}, {}]>}, %ids: tensor<8x2xi64> {dist.sharding = #dist.sharding<[{"d"}, {}]>},
    %p: tensor<8x2xf32> {dist.sharding = #dist.sharding<[{"d"}, {}]>}, %g: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"d"}, {}]>},
    %u: tensor<4x6x4xf32> {dist.sharding = #dist.sharding<[{"d"}, {}, {}]>}, %d: tensor<4x4x6xf32> {dist.sharding = #dist.sharding<[{"d"}, {}, {}]>})
    -> (tensor<8x4xf32>, tensor<8x2xf32>, tensor<4x6x4xf32>, tensor<4x4x6xf32>) {
  %dx, %dp, %du, %dd = nn.experts_grad %x[%ids], %p, %g up(%u : tensor<4x6x4xf32>) down(%d : tensor<4x4x6xf32>) activation = relu
    {dist.row_exchange = 0.0 : f64, dist.shardings = [#dist.sharding<[{"d"}, {}]>, #dist.sharding<[{"d"}, {}]>, #dist.sharding<[{"d"}, {}, {}]>, #dist.sharding<[{"d"}, {}, {}]>]}
    : tensor<8x4xf32>, tensor<8x2xi64>, tensor<8x2xf32>, tensor<8x4xf32> -> tensor<8x4xf32>, tensor<8x2xf32>, tensor<4x6x4xf32>, tensor<4x4x6xf32>
  return %dx, %dp, %du, %dd : tensor<8x4xf32>, tensor<8x2xf32>, tensor<4x6x4xf32>, tensor<4x4x6xf32>
}
