// RUN: partita-opt %s --partita-store-by-tokens --split-input-file | FileCheck %s

// The forward function returns what its product reads, and the backward function transposes it back.
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]]:2 = call @forward(%arg0) : (tensor<1x2x8x4xf32>) -> (tensor<1x8x8xf32>, tensor<1x8x2x4xf32>)
// CHECK: call @backward(%[[C]]#1) : (tensor<1x8x2x4xf32>) -> tensor<1x2x8x4xf32>
// CHECK-LABEL: func.func private @forward
// CHECK: %[[A:.*]] = nn.attention
// CHECK: %[[T:.*]] = nn.transpose %[[A]] perm = [0, 2, 1, 3]
// CHECK: return %{{.*}}, %[[T]]
// CHECK-LABEL: func.func private @backward
// CHECK-SAME: (%arg0: tensor<1x8x2x4xf32>)
// CHECK-NEXT: nn.transpose %arg0 perm = [0, 2, 1, 3] : tensor<1x8x2x4xf32> -> tensor<1x2x8x4xf32>
func.func @main(%x: tensor<1x2x8x4xf32>) -> (tensor<1x8x8xf32>, tensor<1x2x8x4xf32>) {
  %0:2 = call @forward(%x) : (tensor<1x2x8x4xf32>) -> (tensor<1x8x8xf32>, tensor<1x2x8x4xf32>)
  %1 = call @backward(%0#1) : (tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %0#0, %1 : tensor<1x8x8xf32>, tensor<1x2x8x4xf32>
}
func.func private @forward(%x: tensor<1x2x8x4xf32>) -> (tensor<1x8x8xf32>, tensor<1x2x8x4xf32>) {
  %0 = nn.attention %x, %x, %x scale = 5.0e-1 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  %1 = nn.transpose %0 perm = [0, 2, 1, 3] : tensor<1x2x8x4xf32> -> tensor<1x8x2x4xf32>
  %2 = nn.reshape %1 : tensor<1x8x2x4xf32> -> tensor<1x8x8xf32>
  return %2, %0 : tensor<1x8x8xf32>, tensor<1x2x8x4xf32>
}
func.func private @backward(%y: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %0 = arith.negf %y : tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}

// -----

// Unchanged: main returns the result as well.
// CHECK-LABEL: func.func @main
// CHECK: call @forward(%arg0) : (tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>)
// CHECK-LABEL: func.func private @backward
// CHECK-NOT: nn.transpose
func.func @main(%x: tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) {
  %0:2 = call @forward(%x) : (tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>)
  %1 = call @backward(%0#1) : (tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %0#0, %0#1, %1 : tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>
}
func.func private @forward(%x: tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>) {
  %0 = nn.attention %x, %x, %x scale = 5.0e-1 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  %1 = nn.transpose %0 perm = [0, 2, 1, 3] : tensor<1x2x8x4xf32> -> tensor<1x8x2x4xf32>
  return %1, %0 : tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>
}
func.func private @backward(%y: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %0 = arith.negf %y : tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}

// -----

// Unchanged: the backward function also takes another tensor there.
// CHECK-LABEL: func.func @main
// CHECK: call @forward(%arg0) : (tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>)
func.func @main(%x: tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) {
  %0:2 = call @forward(%x) : (tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>)
  %1 = call @backward(%0#1) : (tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  %2 = call @backward(%x) : (tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %0#0, %1, %2 : tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>
}
func.func private @forward(%x: tensor<1x2x8x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>) {
  %0 = nn.attention %x, %x, %x scale = 5.0e-1 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  %1 = nn.transpose %0 perm = [0, 2, 1, 3] : tensor<1x2x8x4xf32> -> tensor<1x8x2x4xf32>
  return %1, %0 : tensor<1x8x2x4xf32>, tensor<1x2x8x4xf32>
}
func.func private @backward(%y: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %0 = arith.negf %y : tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}
