// RUN: partita-opt %s --partita-raise-composites --split-input-file | FileCheck %s

// Rows sorted by the choice of their position, multiplied with the matrix of their group, and put back in order. An index
// of a group is the number of groups that end at the row or before it.
// CHECK-LABEL: @sorted
// CHECK: %[[CHOSEN:.*]] = nn.reshape %{{.*}} : tensor<4x2xi64> -> tensor<8xi64>
// CHECK: %[[ROWS:.*]] = nn.broadcast %arg0 dims = [0, 2] : tensor<4x3xf32> -> tensor<4x2x3xf32>
// CHECK: %[[FLAT:.*]] = nn.reshape %[[ROWS]]
// CHECK: %[[Y:.*]] = nn.grouped_dot %[[FLAT]][%[[CHOSEN]]], %arg2
// CHECK: %[[Z:.*]] = math.tanh %[[Y]]
// CHECK: return %[[Z]]
func.func @sorted(%x: tensor<4x3xf32>, %scores: tensor<4x5xf32>, %w: tensor<5x3x3xf32>) -> tensor<8x3xf32> {
  %values, %choice = nn.top_k %scores largest = true : tensor<4x5xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  %chosen = nn.reshape %choice : tensor<4x2xi64> -> tensor<8xi64>
  %sorted, %order = nn.top_k %chosen largest = false : tensor<8xi64> -> tensor<8xi64>, tensor<8xi64>
  %two = arith.constant dense<2> : tensor<8xi64>
  %position = arith.divsi %order, %two : tensor<8xi64>
  %positions = nn.reshape %position : tensor<8xi64> -> tensor<8x1xi64>
  %rows = nn.gather %x[%positions] axes = [0] : tensor<4x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  %column = nn.reshape %sorted : tensor<8xi64> -> tensor<8x1xi64>
  %all = nn.broadcast %column dims = [0, 1] : tensor<8x1xi64> -> tensor<8x5xi64>
  %groups = arith.constant dense<[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]> : tensor<8x5xi64>
  %member = arith.cmpi eq, %all, %groups : tensor<8x5xi64>
  %ones = arith.extui %member : tensor<8x5xi1> to tensor<8x5xi32>
  %counts = nn.reduce sum %ones dims = [0] : tensor<8x5xi32> -> tensor<5xi32>
  %ends = nn.reduce_window sum %counts window = [5] strides = [1] dilations = [1] low = [4] high = [0] : tensor<5xi32> -> tensor<5xi32>
  %wide = arith.extsi %ends : tensor<5xi32> to tensor<5xi64>
  %end = nn.broadcast %wide dims = [1] : tensor<5xi64> -> tensor<8x5xi64>
  %row = nn.iota dim = 0 : tensor<8x5xi64>
  %after = arith.cmpi sge, %row, %end : tensor<8x5xi64>
  %passed = arith.extui %after : tensor<8x5xi1> to tensor<8x5xi64>
  %ids = nn.reduce sum %passed dims = [1] : tensor<8x5xi64> -> tensor<8xi64>
  %y = nn.grouped_dot %rows[%ids], %w : tensor<8x3xf32>, tensor<8xi64>, tensor<5x3x3xf32> -> tensor<8x3xf32>
  %z = math.tanh %y : tensor<8x3xf32>
  %zeros = arith.constant dense<0> : tensor<8xi64>
  %count = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>
  %places = nn.reshape %order : tensor<8xi64> -> tensor<8x1xi64>
  %inverse = nn.scatter %zeros[%places], %count axes = [0] kind = set : tensor<8xi64>, tensor<8x1xi64>, tensor<8xi64> -> tensor<8xi64>
  %back = nn.reshape %inverse : tensor<8xi64> -> tensor<8x1xi64>
  %result = nn.gather %z[%back] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  return %result : tensor<8x3xf32>
}

// -----

// Large constants are written as counts.
// CHECK-LABEL: @counted_by_iota
// CHECK: %[[CHOSEN:.*]] = nn.reshape %{{.*}} : tensor<4x2xi64> -> tensor<8xi64>
// CHECK: %[[ROWS:.*]] = nn.broadcast %arg0 dims = [0, 2] : tensor<4x3xf32> -> tensor<4x2x3xf32>
// CHECK: %[[FLAT:.*]] = nn.reshape %[[ROWS]]
// CHECK: %[[Y:.*]] = nn.grouped_dot %[[FLAT]][%[[CHOSEN]]], %arg2
// CHECK: %[[Z:.*]] = math.tanh %[[Y]]
// CHECK: return %[[Z]]
func.func @counted_by_iota(%x: tensor<4x3xf32>, %scores: tensor<4x5xf32>, %w: tensor<5x3x3xf32>) -> tensor<8x3xf32> {
  %values, %choice = nn.top_k %scores largest = true : tensor<4x5xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  %chosen = nn.reshape %choice : tensor<4x2xi64> -> tensor<8xi64>
  %sorted, %order = nn.top_k %chosen largest = false : tensor<8xi64> -> tensor<8xi64>, tensor<8xi64>
  %two = arith.constant dense<2> : tensor<8xi64>
  %position = arith.divsi %order, %two : tensor<8xi64>
  %positions = nn.reshape %position : tensor<8xi64> -> tensor<8x1xi64>
  %rows = nn.gather %x[%positions] axes = [0] : tensor<4x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  %column = nn.reshape %sorted : tensor<8xi64> -> tensor<8x1xi64>
  %all = nn.broadcast %column dims = [0, 1] : tensor<8x1xi64> -> tensor<8x5xi64>
  %groups = nn.iota dim = 1 : tensor<8x5xi64>
  %member = arith.cmpi eq, %all, %groups : tensor<8x5xi64>
  %ones = arith.extui %member : tensor<8x5xi1> to tensor<8x5xi32>
  %counts = nn.reduce sum %ones dims = [0] : tensor<8x5xi32> -> tensor<5xi32>
  %ends = nn.reduce_window sum %counts window = [5] strides = [1] dilations = [1] low = [4] high = [0] : tensor<5xi32> -> tensor<5xi32>
  %wide = arith.extsi %ends : tensor<5xi32> to tensor<5xi64>
  %end = nn.broadcast %wide dims = [1] : tensor<5xi64> -> tensor<8x5xi64>
  %row = nn.iota dim = 0 : tensor<8x5xi64>
  %after = arith.cmpi sge, %row, %end : tensor<8x5xi64>
  %passed = arith.extui %after : tensor<8x5xi1> to tensor<8x5xi64>
  %ids = nn.reduce sum %passed dims = [1] : tensor<8x5xi64> -> tensor<8xi64>
  %y = nn.grouped_dot %rows[%ids], %w : tensor<8x3xf32>, tensor<8xi64>, tensor<5x3x3xf32> -> tensor<8x3xf32>
  %z = math.tanh %y : tensor<8x3xf32>
  %zeros = arith.constant dense<0> : tensor<8xi64>
  %count = nn.iota dim = 0 : tensor<8xi64>
  %places = nn.reshape %order : tensor<8xi64> -> tensor<8x1xi64>
  %inverse = nn.scatter %zeros[%places], %count axes = [0] kind = set : tensor<8xi64>, tensor<8x1xi64>, tensor<8xi64> -> tensor<8xi64>
  %back = nn.reshape %inverse : tensor<8xi64> -> tensor<8x1xi64>
  %result = nn.gather %z[%back] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  return %result : tensor<8x3xf32>
}

// -----

// The values are not put back where they came from.
// CHECK-LABEL: @other_order
// CHECK-COUNT-2: nn.gather
func.func @other_order(%x: tensor<8x3xf32>, %keys: tensor<8xi64>, %others: tensor<8xi64>) -> tensor<8x3xf32> {
  %sorted, %order = nn.top_k %keys largest = false : tensor<8xi64> -> tensor<8xi64>, tensor<8xi64>
  %sorted2, %order2 = nn.top_k %others largest = false : tensor<8xi64> -> tensor<8xi64>, tensor<8xi64>
  %places = nn.reshape %order : tensor<8xi64> -> tensor<8x1xi64>
  %rows = nn.gather %x[%places] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  %z = math.tanh %rows : tensor<8x3xf32>
  %zeros = arith.constant dense<0> : tensor<8xi64>
  %count = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>
  %places2 = nn.reshape %order2 : tensor<8xi64> -> tensor<8x1xi64>
  %inverse = nn.scatter %zeros[%places2], %count axes = [0] kind = set : tensor<8xi64>, tensor<8x1xi64>, tensor<8xi64> -> tensor<8xi64>
  %back = nn.reshape %inverse : tensor<8xi64> -> tensor<8x1xi64>
  %result = nn.gather %z[%back] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  return %result : tensor<8x3xf32>
}

// -----

// A running sum of the sorted rows depends on their order.
// CHECK-LABEL: @across_rows
// CHECK-COUNT-2: nn.gather
func.func @across_rows(%x: tensor<8x3xf32>, %keys: tensor<8xi64>) -> tensor<8x3xf32> {
  %sorted, %order = nn.top_k %keys largest = false : tensor<8xi64> -> tensor<8xi64>, tensor<8xi64>
  %places = nn.reshape %order : tensor<8xi64> -> tensor<8x1xi64>
  %rows = nn.gather %x[%places] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  %z = nn.reduce_window sum %rows window = [8, 1] strides = [1, 1] dilations = [1, 1] low = [7, 0] high = [0, 0] : tensor<8x3xf32> -> tensor<8x3xf32>
  %zeros = arith.constant dense<0> : tensor<8xi64>
  %count = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>
  %inverse = nn.scatter %zeros[%places], %count axes = [0] kind = set : tensor<8xi64>, tensor<8x1xi64>, tensor<8xi64> -> tensor<8xi64>
  %back = nn.reshape %inverse : tensor<8xi64> -> tensor<8x1xi64>
  %result = nn.gather %z[%back] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  return %result : tensor<8x3xf32>
}

// -----

// A signed bit is 0 or -1, so these sums are no indices of groups.
// CHECK-LABEL: @sums_of_signed_bits
// CHECK: nn.gather %arg0
// CHECK: nn.scatter
func.func @sums_of_signed_bits(%x: tensor<4x3xf32>, %scores: tensor<4x5xf32>, %w: tensor<5x3x3xf32>) -> tensor<8x3xf32> {
  %values, %choice = nn.top_k %scores largest = true : tensor<4x5xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  %chosen = nn.reshape %choice : tensor<4x2xi64> -> tensor<8xi64>
  %sorted, %order = nn.top_k %chosen largest = false : tensor<8xi64> -> tensor<8xi64>, tensor<8xi64>
  %two = arith.constant dense<2> : tensor<8xi64>
  %position = arith.divsi %order, %two : tensor<8xi64>
  %positions = nn.reshape %position : tensor<8xi64> -> tensor<8x1xi64>
  %rows = nn.gather %x[%positions] axes = [0] : tensor<4x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  %column = nn.reshape %sorted : tensor<8xi64> -> tensor<8x1xi64>
  %all = nn.broadcast %column dims = [0, 1] : tensor<8x1xi64> -> tensor<8x5xi64>
  %groups = arith.constant dense<[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]> : tensor<8x5xi64>
  %member = arith.cmpi eq, %all, %groups : tensor<8x5xi64>
  %ones = arith.extui %member : tensor<8x5xi1> to tensor<8x5xi32>
  %counts = nn.reduce sum %ones dims = [0] : tensor<8x5xi32> -> tensor<5xi32>
  %ends = nn.reduce_window sum %counts window = [5] strides = [1] dilations = [1] low = [4] high = [0] : tensor<5xi32> -> tensor<5xi32>
  %wide = arith.extsi %ends : tensor<5xi32> to tensor<5xi64>
  %end = nn.broadcast %wide dims = [1] : tensor<5xi64> -> tensor<8x5xi64>
  %row = nn.iota dim = 0 : tensor<8x5xi64>
  %after = arith.cmpi sge, %row, %end : tensor<8x5xi64>
  %passed = arith.extsi %after : tensor<8x5xi1> to tensor<8x5xi64>
  %ids = nn.reduce sum %passed dims = [1] : tensor<8x5xi64> -> tensor<8xi64>
  %y = nn.grouped_dot %rows[%ids], %w : tensor<8x3xf32>, tensor<8xi64>, tensor<5x3x3xf32> -> tensor<8x3xf32>
  %z = math.tanh %y : tensor<8x3xf32>
  %zeros = arith.constant dense<0> : tensor<8xi64>
  %count = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>
  %places = nn.reshape %order : tensor<8xi64> -> tensor<8x1xi64>
  %inverse = nn.scatter %zeros[%places], %count axes = [0] kind = set : tensor<8xi64>, tensor<8x1xi64>, tensor<8xi64> -> tensor<8xi64>
  %back = nn.reshape %inverse : tensor<8xi64> -> tensor<8x1xi64>
  %result = nn.gather %z[%back] axes = [0] : tensor<8x3xf32>, tensor<8x1xi64> -> tensor<8x3xf32>
  return %result : tensor<8x3xf32>
}

// -----

// Each value is visited once, although 2^40 paths lead to the first.
// CHECK-LABEL: @many_paths
// CHECK: nn.gather
func.func @many_paths(%x: tensor<4x2xf32>, %a0: tensor<4x1xi64>) -> tensor<4x2xf32> {
  %a1 = arith.addi %a0, %a0 : tensor<4x1xi64>
  %a2 = arith.addi %a1, %a1 : tensor<4x1xi64>
  %a3 = arith.addi %a2, %a2 : tensor<4x1xi64>
  %a4 = arith.addi %a3, %a3 : tensor<4x1xi64>
  %a5 = arith.addi %a4, %a4 : tensor<4x1xi64>
  %a6 = arith.addi %a5, %a5 : tensor<4x1xi64>
  %a7 = arith.addi %a6, %a6 : tensor<4x1xi64>
  %a8 = arith.addi %a7, %a7 : tensor<4x1xi64>
  %a9 = arith.addi %a8, %a8 : tensor<4x1xi64>
  %a10 = arith.addi %a9, %a9 : tensor<4x1xi64>
  %a11 = arith.addi %a10, %a10 : tensor<4x1xi64>
  %a12 = arith.addi %a11, %a11 : tensor<4x1xi64>
  %a13 = arith.addi %a12, %a12 : tensor<4x1xi64>
  %a14 = arith.addi %a13, %a13 : tensor<4x1xi64>
  %a15 = arith.addi %a14, %a14 : tensor<4x1xi64>
  %a16 = arith.addi %a15, %a15 : tensor<4x1xi64>
  %a17 = arith.addi %a16, %a16 : tensor<4x1xi64>
  %a18 = arith.addi %a17, %a17 : tensor<4x1xi64>
  %a19 = arith.addi %a18, %a18 : tensor<4x1xi64>
  %a20 = arith.addi %a19, %a19 : tensor<4x1xi64>
  %a21 = arith.addi %a20, %a20 : tensor<4x1xi64>
  %a22 = arith.addi %a21, %a21 : tensor<4x1xi64>
  %a23 = arith.addi %a22, %a22 : tensor<4x1xi64>
  %a24 = arith.addi %a23, %a23 : tensor<4x1xi64>
  %a25 = arith.addi %a24, %a24 : tensor<4x1xi64>
  %a26 = arith.addi %a25, %a25 : tensor<4x1xi64>
  %a27 = arith.addi %a26, %a26 : tensor<4x1xi64>
  %a28 = arith.addi %a27, %a27 : tensor<4x1xi64>
  %a29 = arith.addi %a28, %a28 : tensor<4x1xi64>
  %a30 = arith.addi %a29, %a29 : tensor<4x1xi64>
  %a31 = arith.addi %a30, %a30 : tensor<4x1xi64>
  %a32 = arith.addi %a31, %a31 : tensor<4x1xi64>
  %a33 = arith.addi %a32, %a32 : tensor<4x1xi64>
  %a34 = arith.addi %a33, %a33 : tensor<4x1xi64>
  %a35 = arith.addi %a34, %a34 : tensor<4x1xi64>
  %a36 = arith.addi %a35, %a35 : tensor<4x1xi64>
  %a37 = arith.addi %a36, %a36 : tensor<4x1xi64>
  %a38 = arith.addi %a37, %a37 : tensor<4x1xi64>
  %a39 = arith.addi %a38, %a38 : tensor<4x1xi64>
  %a40 = arith.addi %a39, %a39 : tensor<4x1xi64>
  %y = nn.gather %x[%a40] axes = [0] : tensor<4x2xf32>, tensor<4x1xi64> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
