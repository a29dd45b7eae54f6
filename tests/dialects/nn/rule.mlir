// A user's sharding rule, attached to one operation.
// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @rule
func.func @rule(%x: tensor<4x2xf32>, %w: tensor<2x8xf32>) -> tensor<4x8xf32> {
  // CHECK: nn.rule = #nn.rule<([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k} multilinear={0, 1}>
  %y = nn.dot_general %x, %w contract = [1] x [0] {nn.rule = #nn.rule<([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k} multilinear={0, 1}>} : tensor<4x2xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Factors may have any names; they are printed as i, j, k ... in order.
// CHECK-LABEL: @names
func.func @names(%x: tensor<4x6x1xf32>) -> tensor<24xf32> {
  // CHECK: nn.rule = #nn.rule<([i, jk, 1]) -> ([ijk]) {i=4, j=2, k=3} whole={k} linear={0}>
  %y = nn.reshape %x {nn.rule = #nn.rule<([b, ac_1, 1]) -> ([bac_1]) {b=4, a=2, c_1=3} linear={0} whole={c_1}>} : tensor<4x6x1xf32> -> tensor<24xf32>
  return %y : tensor<24xf32>
}

// CHECK-LABEL: @kinds
func.func @kinds(%x: tensor<4x6xf32>, %p: tensor<3x9xf32>) -> (tensor<4x6xf32>, tensor<3xf32>, tensor<3x4xf32>) {
  // CHECK: nn.rule = #nn.rule<([i, j]) -> ([i, j]) {i=4, j=6} decompose={j}>
  %0 = nn.softmax %x axis = 1 {nn.rule = #nn.rule<([i, j]) -> ([i, j]) {i=4, j=6} decompose={j}>} : tensor<4x6xf32>
  // CHECK: nn.rule = #nn.rule<([i, j]) -> ([i]) {i=3, j=9} reduced={j:max}>
  %1 = nn.reduce max %p dims = [1] {nn.rule = #nn.rule<([i, j]) -> ([i]) {i=3, j=9} reduced={j:max}>} : tensor<3x9xf32> -> tensor<3xf32>
  // CHECK: nn.rule = #nn.rule<([i, j]) -> ([i, j]) {i=3, j=4} halo={j}>
  %2 = nn.reduce_window max %p window = [1, 3] strides = [1, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] {nn.rule = #nn.rule<([i, j]) -> ([i, j]) {i=3, j=4} halo={j}>} : tensor<3x9xf32> -> tensor<3x4xf32>
  return %0, %1, %2 : tensor<4x6xf32>, tensor<3xf32>, tensor<3x4xf32>
}
