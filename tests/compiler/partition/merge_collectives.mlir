// RUN: partita-opt --partita-merge-collectives --canonicalize %s | FileCheck %s
// RUN: partita-opt --partita-merge-collectives=bucket-bytes=30 %s | FileCheck %s --check-prefix=SMALL

// A bucket ends where a result is read. Other axes and scalars are not merged.
// The scattered or gathered dimension comes first; rows beyond the end are
// zeros.

dist.mesh @mesh <["d"=2, "t"=2]>

// CHECK-LABEL: @reduce
// SMALL-LABEL: @reduce
// SMALL-COUNT-5: dist.all_reduce
func.func @reduce(%a: tensor<4x6xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %s: tensor<f32>) -> (tensor<4x6xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) {
  // CHECK: %[[S:.*]] = dist.all_reduce %arg3 over ["d"] sum
  // CHECK: %[[T:.*]] = dist.all_reduce %arg2 over ["t"] sum
  // CHECK: %[[J:.*]] = nn.concat %{{.*}}, %{{.*}} axis = 1 : (tensor<1x24xf32>, tensor<1x8xf32>) -> tensor<1x32xf32>
  // CHECK: %[[R:.*]] = dist.all_reduce %[[J]] over ["d"] sum : tensor<1x32xf32>
  // CHECK: nn.slice %[[R]] starts = [0, 0]
  // CHECK: %[[B:.*]] = nn.slice %[[R]] starts = [0, 24]
  // CHECK: arith.negf
  // CHECK: dist.all_reduce %{{.*}} over ["d"] sum : tensor<8xf32>
  %0 = dist.all_reduce %a over ["d"] sum : tensor<4x6xf32>
  %1 = dist.all_reduce %s over ["d"] sum : tensor<f32>
  %2 = dist.all_reduce %c over ["t"] sum : tensor<8xf32>
  %3 = dist.all_reduce %b over ["d"] sum : tensor<8xf32>
  %4 = arith.negf %3 : tensor<8xf32>
  %5 = dist.all_reduce %4 over ["d"] sum : tensor<8xf32>
  return %0, %3, %2, %5, %1 : tensor<4x6xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>
}

// CHECK-LABEL: @scatter
func.func @scatter(%a: tensor<4x6xf32>, %b: tensor<7xf32>) -> (tensor<4x3xf32>, tensor<4xf32>) {
  // CHECK: nn.pad %arg1, %{{.*}} low = [0] high = [1]
  // CHECK: nn.concat %{{.*}} axis = 1 : (tensor<2x12xf32>, tensor<2x4xf32>) -> tensor<2x16xf32>
  // CHECK: dist.reduce_scatter %{{.*}} over ["d"] dim = 0 sum : tensor<2x16xf32> -> tensor<1x16xf32>
  %0 = dist.reduce_scatter %a over ["d"] dim = 1 sum : tensor<4x6xf32> -> tensor<4x3xf32>
  %1 = dist.reduce_scatter %b over ["d"] dim = 0 sum : tensor<7xf32> -> tensor<4xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<4xf32>
}

// Unread sums over microbatches are delayed behind the bucket, in their order.
// CHECK-LABEL: @sums
func.func @sums(%a: tensor<8xf32>, %b: tensor<8xf32>, %sa: tensor<8xf32>, %sb: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[R:.*]] = dist.all_reduce %{{.*}} over ["d"] sum : tensor<1x16xf32>
  // CHECK: nn.slice %[[R]] starts = [0, 0]
  // CHECK: nn.slice %[[R]] starts = [0, 8]
  // CHECK: %[[A:.*]] = arith.addf %arg2
  // CHECK: %[[B:.*]] = arith.addf %arg3
  // CHECK: dist.all_reduce %[[A]] over ["d"] sum : tensor<8xf32>
  %0 = dist.all_reduce %a over ["d"] sum : tensor<8xf32>
  %1 = arith.addf %sa, %0 : tensor<8xf32>
  %2 = dist.all_reduce %b over ["d"] sum : tensor<8xf32>
  %3 = arith.addf %sb, %2 : tensor<8xf32>
  %4 = dist.all_reduce %1 over ["d"] sum : tensor<8xf32>
  return %4, %3 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @gather
func.func @gather(%a: tensor<4x3xf32>, %b: tensor<4xf32>) -> (tensor<4x6xf32>, tensor<7xf32>) {
  // CHECK: dist.all_gather %{{.*}} over ["d"] dim = 0 : tensor<1x16xf32> -> tensor<2x16xf32>
  // CHECK: nn.transpose
  // CHECK-SAME: -> tensor<4x2x3x1xf32>
  // CHECK: nn.slice %{{.*}} : tensor<8xf32> -> tensor<7xf32>
  %0 = dist.all_gather %a over ["d"] dim = 1 : tensor<4x3xf32> -> tensor<4x6xf32>
  %1 = dist.all_gather %b over ["d"] dim = 0 : tensor<4xf32> -> tensor<7xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<7xf32>
}
