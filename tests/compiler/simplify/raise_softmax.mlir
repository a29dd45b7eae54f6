// RUN: partita-opt %s --partita-raise-composites | FileCheck %s

// CHECK-LABEL: func @with_max
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32>)
// CHECK-NEXT: %[[Y:.*]] = nn.softmax %[[X]] axis = 1 : tensor<2x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @with_max(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %max = nn.reduce max %x dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %max_b = nn.broadcast %max dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %shifted = arith.subf %x, %max_b : tensor<2x8xf32>
  %exp = math.exp %shifted : tensor<2x8xf32>
  %sum = nn.reduce sum %exp dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %sum_k = nn.reshape %sum : tensor<2xf32> -> tensor<2x1xf32>
  %sum_b = nn.broadcast %sum_k dims = [0, 1] : tensor<2x1xf32> -> tensor<2x8xf32>
  %y = arith.divf %exp, %sum_b : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// CHECK-LABEL: func @guarded_max_first_axis
// CHECK-NEXT: nn.softmax %{{.*}} axis = 0 : tensor<4x8xf32>
// CHECK-NEXT: return
func.func @guarded_max_first_axis(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %lowest = arith.constant dense<0xFF800000> : tensor<8xf32>
  %max = nn.reduce max %x dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %guarded = arith.maximumf %lowest, %max : tensor<8xf32>
  %max_b = nn.broadcast %guarded dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %shifted = arith.subf %x, %max_b : tensor<4x8xf32>
  %exp = math.exp %shifted : tensor<4x8xf32>
  %sum = nn.reduce sum %exp dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %sum_b = nn.broadcast %sum dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %y = arith.divf %exp, %sum_b : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @without_max
// CHECK-NEXT: nn.softmax %{{.*}} axis = 1 : tensor<2x8xf32>
// CHECK-NEXT: return
func.func @without_max(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %exp = math.exp %x : tensor<2x8xf32>
  %sum = nn.reduce sum %exp dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %sum_b = nn.broadcast %sum dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %y = arith.divf %exp, %sum_b : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// CHECK-LABEL: func @logarithm
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32>)
// CHECK-NEXT: nn.softmax log %[[X]] axis = 1 : tensor<2x8xf32>
// CHECK-NEXT: return
func.func @logarithm(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %max = nn.reduce max %x dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %max_b = nn.broadcast %max dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %shifted = arith.subf %x, %max_b : tensor<2x8xf32>
  %exp = math.exp %shifted : tensor<2x8xf32>
  %sum = nn.reduce sum %exp dims = [1] : tensor<2x8xf32> -> tensor<2xf32>
  %log = math.log %sum : tensor<2xf32>
  %log_b = nn.broadcast %log dims = [0] : tensor<2xf32> -> tensor<2x8xf32>
  %y = arith.subf %shifted, %log_b : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Not raised: the sum is over one dimension but is repeated along another.
// CHECK-LABEL: func @sum_of_columns
// CHECK-NOT: nn.softmax
func.func @sum_of_columns(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %exp = math.exp %x : tensor<8x8xf32>
  %sum = nn.reduce sum %exp dims = [1] : tensor<8x8xf32> -> tensor<8xf32>
  %sum_b = nn.broadcast %sum dims = [1] : tensor<8xf32> -> tensor<8x8xf32>
  %y = arith.divf %exp, %sum_b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
