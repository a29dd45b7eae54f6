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

// Gradients of weights in programs of JAX.
// CHECK-LABEL: func @result
// CHECK-SAME: (%[[G:.*]]: tensor<2x5x3x8xf32>, %[[X:.*]]: tensor<2x5x4xf32>)
// CHECK-NEXT: nn.dot_general %[[X]], %[[G]] contract = [0, 1] x [0, 1] : tensor<2x5x4xf32>, tensor<2x5x3x8xf32> -> tensor<4x3x8xf32>
// CHECK-NEXT: return
func.func @result(%g: tensor<2x5x3x8xf32>, %x: tensor<2x5x4xf32>) -> tensor<4x3x8xf32> {
  %y = nn.dot_general %g, %x contract = [0, 1] x [0, 1] : tensor<2x5x3x8xf32>, tensor<2x5x4xf32> -> tensor<3x8x4xf32>
  %t = nn.transpose %y perm = [2, 0, 1] : tensor<3x8x4xf32> -> tensor<4x3x8xf32>
  return %t : tensor<4x3x8xf32>
}

// CHECK-LABEL: func @batched_result
// CHECK-SAME: (%[[X:.*]]: tensor<7x5x4xf32>, %[[Y:.*]]: tensor<7x4x6xf32>)
// CHECK-NEXT: nn.dot_general %[[Y]], %[[X]] batch = [0] x [0] contract = [1] x [2] : tensor<7x4x6xf32>, tensor<7x5x4xf32> -> tensor<7x6x5xf32>
// CHECK-NEXT: return
func.func @batched_result(%x: tensor<7x5x4xf32>, %y: tensor<7x4x6xf32>) -> tensor<7x6x5xf32> {
  %z = nn.dot_general %x, %y batch = [0] x [0] contract = [2] x [1] : tensor<7x5x4xf32>, tensor<7x4x6xf32> -> tensor<7x5x6xf32>
  %t = nn.transpose %z perm = [0, 2, 1] : tensor<7x5x6xf32> -> tensor<7x6x5xf32>
  return %t : tensor<7x6x5xf32>
}

// Other orders of the result, and products that have other uses, stay.
// CHECK-LABEL: func @result_of_heads
// CHECK: nn.dot_general
// CHECK-NEXT: nn.transpose
// CHECK-NEXT: return
func.func @result_of_heads(%x: tensor<2x5x4xf32>, %w: tensor<4x3x8xf32>) -> tensor<2x3x5x8xf32> {
  %y = nn.dot_general %x, %w contract = [2] x [0] : tensor<2x5x4xf32>, tensor<4x3x8xf32> -> tensor<2x5x3x8xf32>
  %t = nn.transpose %y perm = [0, 2, 1, 3] : tensor<2x5x3x8xf32> -> tensor<2x3x5x8xf32>
  return %t : tensor<2x3x5x8xf32>
}

// CHECK-LABEL: func @result_used_twice
// CHECK: nn.dot_general
// CHECK-NEXT: nn.transpose
// CHECK-NEXT: return
func.func @result_used_twice(%x: tensor<5x4xf32>, %w: tensor<4x6xf32>) -> (tensor<5x6xf32>, tensor<6x5xf32>) {
  %y = nn.dot_general %x, %w contract = [1] x [0] : tensor<5x4xf32>, tensor<4x6xf32> -> tensor<5x6xf32>
  %t = nn.transpose %y perm = [1, 0] : tensor<5x6xf32> -> tensor<6x5xf32>
  return %y, %t : tensor<5x6xf32>, tensor<6x5xf32>
}
