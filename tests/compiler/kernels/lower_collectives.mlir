// RUN: partita-opt %s --partita-lower-collectives --split-input-file | FileCheck %s

dist.mesh @mesh <["data"=2, "tensor"=4, "one"=1]>

// CHECK-LABEL: @kinds
// CHECK: exec.collective all_reduce %{{.*}} axes = [1, 1, 4] reduction = max {why = ["M"]} : tensor<4x8xf32>
// CHECK: exec.collective all_gather %{{.*}} axes = [1, 1, 4] {dim = 1 : i64} : tensor<4x8xf32> -> tensor<4x30xf32>
// CHECK: exec.collective reduce_scatter %{{.*}} axes = [0, 1, 2, 1, 1, 4] {dim = 0 : i64} : tensor<4x8xf32> -> tensor<1x8xf32>
// CHECK: exec.collective all_slice %{{.*}} axes = [1, 2, 2] {dim = 0 : i64} : tensor<4x8xf32> -> tensor<2x8xf32>
// CHECK: exec.collective all_to_all %{{.*}} axes = [0, 1, 2] {dim = 1 : i64, other_dim = 0 : i64} : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK: exec.collective permute %{{.*}} axes = [1, 1, 4, 0, 1, 2] {source_axes = array<i64: 0, 1, 2, 1, 1, 4>} : tensor<4x8xf32>
// CHECK: exec.collective exchange %{{.*}} axes = [0, 1, 2] {dim = 0 : i64, fill = -1.000000e+00 : f64, offset = -2 : i64, size = 7 : i64, step = 4 : i64} : tensor<4x8xf32> -> tensor<8x8xf32>
// CHECK: exec.collective broadcast %{{.*}} axes = [1, 1, 4] {root = 3 : i64} : tensor<4x8xf32>
func.func @kinds(%x: tensor<4x8xf32>) -> (tensor<4x30xf32>, tensor<1x8xf32>, tensor<2x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  %0 = dist.all_reduce %x over ["tensor"] max {why = ["M"]} : tensor<4x8xf32>
  %1 = dist.all_gather %0 over ["tensor"] dim = 1 : tensor<4x8xf32> -> tensor<4x30xf32>
  %2 = dist.reduce_scatter %0 over ["data", "tensor"] dim = 0 sum : tensor<4x8xf32> -> tensor<1x8xf32>
  %3 = dist.all_slice %0 over ["tensor":(2)2] dim = 0 : tensor<4x8xf32> -> tensor<2x8xf32>
  %4 = dist.all_to_all %0 over ["data"] split = 1 concat = 0 : tensor<4x8xf32> -> tensor<8x4xf32>
  %5 = dist.permute %0 over ["data", "tensor"] to ["tensor", "data"] : tensor<4x8xf32>
  %6 = dist.exchange %0 over ["data"] dim = 0 size = 7 step = 4 offset = -2 fill = -1.0 : tensor<4x8xf32> -> tensor<8x8xf32>
  %7 = dist.broadcast %0 over ["tensor"] root = 3 : tensor<4x8xf32>
  return %1, %2, %3, %4, %5, %6, %7 : tensor<4x30xf32>, tensor<1x8xf32>, tensor<2x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @ring
// CHECK: exec.collective permute %arg0 axes = [1, 1, 4] {offset = 1 : i64, source_axes = array<i64: 1, 1, 4>} : tensor<4xf32>
func.func @ring(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.permute %x over ["tensor"] to ["tensor"] shift = 1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Names of dimensions go; the share of rows that have a matrix stays for prices.
// CHECK-LABEL: @share
// CHECK: nn.grouped_dot %arg0[%arg1], %arg2 {nn.row_share = 5.000000e-01 : f64} :
func.func @share(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xf32>) -> tensor<6x5xf32> {
  %0 = nn.grouped_dot %x[%ids], %w {nn.dims = [["B", "E"]], nn.row_share = 5.0e-1 : f64} : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}

// Rows travel with their destinations, also in a group of one device.
// CHECK-LABEL: @rows
// CHECK: exec.collective send_rows %arg0 to %arg1 : tensor<4x2xi64> axes = [1, 1, 4] {dim = 0 : i64, fill = -1.000000e+00 : f64, size = 8 : i64} : tensor<4x6xf32> -> tensor<32x6xf32>
// CHECK: exec.collective return_rows %{{.*}} to %arg1 : tensor<4x2xi64> axes = [1, 1, 4] {dim = 0 : i64, size = 8 : i64} : tensor<32x6xf32> -> tensor<8x6xf32>
// CHECK: exec.collective send_rows %arg0 to %arg2 : tensor<4x1xi64> axes = [] {dim = 0 : i64, size = 4 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
func.func @rows(%x: tensor<4x6xf32>, %to: tensor<4x2xi64>, %alone: tensor<4x1xi64>) -> (tensor<8x6xf32>, tensor<4x6xf32>) {
  %0 = dist.send_rows %x to %to over ["tensor"] fill = -1.0 : tensor<4x6xf32>, tensor<4x2xi64> -> tensor<32x6xf32>
  %1 = dist.return_rows %0 to %to over ["tensor"] : tensor<32x6xf32>, tensor<4x2xi64> -> tensor<8x6xf32>
  %2 = dist.send_rows %x to %alone over ["one"] fill = 0.0 : tensor<4x6xf32>, tensor<4x1xi64> -> tensor<4x6xf32>
  return %1, %2 : tensor<8x6xf32>, tensor<4x6xf32>
}

// Consecutive parts of an axis are joined.
// CHECK-LABEL: @joined
// CHECK: exec.collective all_reduce %arg0 axes = [1, 1, 4] :
func.func @joined(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce %x over ["tensor":(1)2, "tensor":(2)2] sum : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A collective in a group of one device is removed.
// CHECK-LABEL: @alone
// CHECK-NEXT: return %arg0
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce %x over ["one"] sum : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Constraints and sharding attributes are removed.
// CHECK-LABEL: @notes
// CHECK-NEXT: %[[S:.*]] = arith.addf %arg0, %arg0 : tensor<4xf32>
// CHECK-NEXT: return %[[S]]
func.func @notes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {dist.shardings = [#dist.sharding<[{"data"}]>]} : tensor<4xf32>
  %1 = dist.constraint %0 <[{"data"}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["data"=2, "tensor"=4, "one"=1]>

// Each function has one argument per distinct coordinate that it or its callees use.
// CHECK: func.func private @inner(%arg0: tensor<i64>, %[[T:.*]]: tensor<i64>) -> tensor<i64>
// CHECK-NEXT: %[[S:.*]] = arith.addi %arg0, %[[T]]
// CHECK-NEXT: return %[[S]]
func.func private @inner(%x: tensor<i64>) -> tensor<i64> {
  %0 = dist.coordinate over ["tensor"] : tensor<i64>
  %1 = arith.addi %x, %0 : tensor<i64>
  return %1 : tensor<i64>
}

// CHECK: func.func @main(%arg0: tensor<i64>,
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<i64> {nn.axes = array<i64: 1, 1, 4>, nn.kind = "coordinate", nn.name = "coordinate(\22tensor\22)"}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<i64> {nn.axes = array<i64: 0, 1, 2, 1, 1, 2>, nn.kind = "coordinate", nn.name = "coordinate(\22data\22, \22tensor\22:(1)2)"}
// CHECK-SAME: -> tensor<i64>
func.func @main(%x: tensor<i64>) -> tensor<i64> {
  // CHECK: call @inner(%arg0, %[[A]])
  // CHECK: call @middle(%{{.*}}, %[[A]])
  %0 = call @inner(%x) : (tensor<i64>) -> tensor<i64>
  %1 = call @middle(%0) : (tensor<i64>) -> tensor<i64>
  %2 = dist.coordinate over ["tensor"] : tensor<i64>
  %3 = dist.coordinate over ["data", "tensor":(1)2] : tensor<i64>
  %4 = dist.coordinate over ["one"] : tensor<i64>
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0> : tensor<i64>
  // CHECK: arith.addi %{{.*}}, %[[A]]
  // CHECK: arith.addi %{{.*}}, %[[B]]
  // CHECK: arith.addi %{{.*}}, %[[ZERO]]
  %5 = arith.addi %1, %2 : tensor<i64>
  %6 = arith.addi %5, %3 : tensor<i64>
  %7 = arith.addi %6, %4 : tensor<i64>
  return %7 : tensor<i64>
}

// CHECK: func.func private @middle(%arg0: tensor<i64>, %[[T:.*]]: tensor<i64>) -> tensor<i64>
// CHECK-NEXT: call @inner(%arg0, %[[T]])
func.func private @middle(%x: tensor<i64>) -> tensor<i64> {
  %0 = call @inner(%x) : (tensor<i64>) -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// Without a mesh, the pass changes nothing.
// CHECK-LABEL: @undivided
// CHECK-NEXT: arith.addf %arg0, %arg0 : tensor<4xf32>
func.func @undivided(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
