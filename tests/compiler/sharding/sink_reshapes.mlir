// RUN: partita-opt %s --split-input-file --partita-expose-factors | FileCheck %s

// A product and its bias on flat rows: the reshape moves behind them and cancels.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8x32xf32>, %[[W:.*]]: tensor<32x96xf32>, %[[B:.*]]: tensor<96xf32>
// CHECK: %[[DOT:.*]] = nn.dot_general %[[X]], %[[W]] contract = [2] x [0] : {{.*}} -> tensor<4x8x96xf32>
// CHECK: %[[BIAS:.*]] = nn.broadcast %[[B]] dims = [2] : tensor<96xf32> -> tensor<4x8x96xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[DOT]], %[[BIAS]] : tensor<4x8x96xf32>
// CHECK-NOT: nn.reshape
// CHECK: return %[[SUM]]
func.func @main(%x: tensor<4x8x32xf32>, %w: tensor<32x96xf32>, %b: tensor<96xf32>) -> tensor<4x8x96xf32> {
  %0 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<32x32xf32>
  %1 = nn.dot_general %0, %w contract = [1] x [0] : tensor<32x32xf32>, tensor<32x96xf32> -> tensor<32x96xf32>
  %2 = nn.broadcast %b dims = [1] : tensor<96xf32> -> tensor<32x96xf32>
  %3 = arith.addf %1, %2 : tensor<32x96xf32>
  %4 = nn.reshape %3 : tensor<32x96xf32> -> tensor<4x8x96xf32>
  return %4 : tensor<4x8x96xf32>
}

// -----

// One reshape flattens rows and merges heads: heads stay merged for the product.

// CHECK-LABEL: func.func @main(
// CHECK: %[[MERGED:.*]] = nn.reshape %{{.*}} : tensor<4x8x2x16xf32> -> tensor<4x8x32xf32>
// CHECK: nn.dot_general %[[MERGED]], %{{.*}} contract = [2] x [0] : {{.*}} -> tensor<4x8x5xf32>
func.func @main(%x: tensor<4x8x2x16xf32>, %w: tensor<32x5xf32>) -> tensor<32x5xf32> {
  %0 = nn.reshape %x : tensor<4x8x2x16xf32> -> tensor<32x32xf32>
  %1 = nn.dot_general %0, %w contract = [1] x [0] : tensor<32x32xf32>, tensor<32x5xf32> -> tensor<32x5xf32>
  return %1 : tensor<32x5xf32>
}

// -----

// Reshapes move behind sums, products with constants, norms, and sums over rows.

// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.reshape
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<4x8x32xf32>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUM]], %{{.*}} : tensor<4x8x32xf32>
// CHECK: %[[NORM:.*]] = nn.layer_norm %[[SCALED]] axis = 2
// CHECK: %[[SOFT:.*]] = nn.softmax %[[NORM]] axis = 2
// CHECK: nn.reduce sum %[[SOFT]] dims = [0, 1] : tensor<4x8x32xf32> -> tensor<32xf32>
func.func @main(%x: tensor<4x8x32xf32>, %y: tensor<4x8x32xf32>) -> tensor<32xf32> {
  %c = arith.constant dense<2.0> : tensor<32x32xf32>
  %0 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<32x32xf32>
  %1 = nn.reshape %y : tensor<4x8x32xf32> -> tensor<32x32xf32>
  %2 = arith.addf %0, %1 : tensor<32x32xf32>
  %3 = arith.mulf %2, %c : tensor<32x32xf32>
  %4 = nn.layer_norm %3 axis = 1 epsilon = 1.0e-5 : tensor<32x32xf32>
  %5 = nn.softmax %4 axis = 1 : tensor<32x32xf32>
  %6 = nn.reduce sum %5 dims = [0] : tensor<32x32xf32> -> tensor<32xf32>
  return %6 : tensor<32xf32>
}

// -----

// Reshapes move behind gathers with flat indices, transposes and losses.

// CHECK-LABEL: func.func @main(
// CHECK: %[[IDS:.*]] = nn.reshape %{{.*}} : tensor<4x8xi64> -> tensor<4x8x1xi64>
// CHECK: %[[ROWS:.*]] = nn.gather %{{.*}}[%[[IDS]]] axes = [0] : {{.*}} -> tensor<4x8x6xf32>
// CHECK: nn.cross_entropy %[[ROWS]], %{{.*}} : tensor<4x8x6xf32>, tensor<4x8xi64> -> tensor<4x8xf32>
// CHECK: nn.transpose %[[ROWS]] perm = [2, 0, 1] : tensor<4x8x6xf32> -> tensor<6x4x8xf32>
func.func @main(%ids: tensor<4x8xi64>, %t: tensor<10x6xf32>) -> (tensor<4x8xf32>, tensor<6x32xf32>) {
  %0 = nn.reshape %ids : tensor<4x8xi64> -> tensor<32x1xi64>
  %1 = nn.gather %t[%0] axes = [0] : tensor<10x6xf32>, tensor<32x1xi64> -> tensor<32x6xf32>
  %2 = nn.reshape %ids : tensor<4x8xi64> -> tensor<32xi64>
  %3 = nn.cross_entropy %1, %2 : tensor<32x6xf32>, tensor<32xi64> -> tensor<32xf32>
  %4 = nn.reshape %3 : tensor<32xf32> -> tensor<4x8xf32>
  %5 = nn.transpose %1 perm = [1, 0] : tensor<32x6xf32> -> tensor<6x32xf32>
  return %4, %5 : tensor<4x8xf32>, tensor<6x32xf32>
}

// -----

// A reshape does not move if the other summand is a flat argument, nor behind a
// norm over the merged dimensions.

// CHECK-LABEL: func.func @main(
// CHECK: %[[FLAT:.*]] = nn.reshape
// CHECK: arith.addf %[[FLAT]], %{{.*}} : tensor<32x32xf32>
// CHECK: %[[MERGED:.*]] = nn.reshape
// CHECK: nn.layer_norm %[[MERGED]] axis = 1 {{.*}} : tensor<4x256xf32>
func.func @main(%x: tensor<4x8x32xf32>, %y: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<4x256xf32>) {
  %0 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<32x32xf32>
  %1 = arith.addf %0, %y : tensor<32x32xf32>
  %2 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<4x256xf32>
  %3 = nn.layer_norm %2 axis = 1 epsilon = 1.0e-5 : tensor<4x256xf32>
  return %1, %3 : tensor<32x32xf32>, tensor<4x256xf32>
}

// -----

// A router's choices among the last dimension.

// CHECK-LABEL: func.func @main(
// CHECK: %[[P:.*]], %[[I:.*]] = nn.top_k %arg0 largest = true : tensor<4x8x5xf32> -> tensor<4x8x2xf32>, tensor<4x8x2xi64>
// CHECK-NEXT: return %[[P]], %[[I]]
func.func @main(%scores: tensor<4x8x5xf32>) -> (tensor<4x8x2xf32>, tensor<4x8x2xi64>) {
  %0 = nn.reshape %scores : tensor<4x8x5xf32> -> tensor<32x5xf32>
  %p, %i = nn.top_k %0 largest = true : tensor<32x5xf32> -> tensor<32x2xf32>, tensor<32x2xi64>
  %1 = nn.reshape %p : tensor<32x2xf32> -> tensor<4x8x2xf32>
  %2 = nn.reshape %i : tensor<32x2xi64> -> tensor<4x8x2xi64>
  return %1, %2 : tensor<4x8x2xf32>, tensor<4x8x2xi64>
}
