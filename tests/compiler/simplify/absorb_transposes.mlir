// RUN: partita-opt %s --partita-absorb-transposes | FileCheck %s

// CHECK-LABEL: func @weight
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<8x4xf32>)
// CHECK-NEXT: nn.dot_general %[[X]], %[[W]] contract = [1] x [1] : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
func.func @weight(%x: tensor<2x4xf32>, %w: tensor<8x4xf32>) -> tensor<2x8xf32> {
  %t = nn.transpose %w perm = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %y = nn.dot_general %x, %t contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// CHECK-LABEL: func @batched
// CHECK-NEXT: nn.dot_general %{{.*}}, %{{.*}} batch = [1] x [0] contract = [2] x [1] : tensor<5x3x4xf32>, tensor<3x4x6xf32> -> tensor<3x5x6xf32>
func.func @batched(%x: tensor<5x3x4xf32>, %y: tensor<3x4x6xf32>) -> tensor<3x5x6xf32> {
  %t = nn.transpose %x perm = [1, 0, 2] : tensor<5x3x4xf32> -> tensor<3x5x4xf32>
  %z = nn.dot_general %t, %y batch = [0] x [0] contract = [2] x [1] : tensor<3x5x4xf32>, tensor<3x4x6xf32> -> tensor<3x5x6xf32>
  return %z : tensor<3x5x6xf32>
}

// Absorbing this transpose would change the order of the result's free dimensions.
// CHECK-LABEL: func @free_dimensions_swapped
// CHECK-NEXT: nn.transpose
func.func @free_dimensions_swapped(%x: tensor<5x3x4xf32>, %w: tensor<4x6xf32>) -> tensor<3x5x6xf32> {
  %t = nn.transpose %x perm = [1, 0, 2] : tensor<5x3x4xf32> -> tensor<3x5x4xf32>
  %z = nn.dot_general %t, %w contract = [2] x [0] : tensor<3x5x4xf32>, tensor<4x6xf32> -> tensor<3x5x6xf32>
  return %z : tensor<3x5x6xf32>
}
