// RUN: partita-opt %s --partita-split-reductions --split-input-file | FileCheck %s

// Without the split, only six warps would work, each on 8192 rows in sequence.
// CHECK-LABEL: @columns
// CHECK: %[[x:.*]] = nn.reshape %{{.*}} : tensor<8192x768xf32> -> tensor<512x16x768xf32>
// CHECK: %[[y:.*]] = nn.reduce sum %[[x]] dims = [1]
// CHECK: %[[z:.*]] = nn.reshape %[[y]] : tensor<512x768xf32> -> tensor<16x32x768xf32>
// CHECK: %[[s:.*]] = nn.reduce sum %[[z]] dims = [1] {kernel.late_step = 1 : i64}
// CHECK: nn.reduce sum %[[s]] dims = [0] {kernel.late_step = 0 : i64} : tensor<16x768xf32> -> tensor<768xf32>
func.func @columns(%x: tensor<8192x768xf32>) -> tensor<768xf32> {
  %0 = nn.reduce sum %x dims = [0] : tensor<8192x768xf32> -> tensor<768xf32>
  return %0 : tensor<768xf32>
}

// -----

// Sums of 16-bit floats stay f32 between the steps.
// CHECK-LABEL: @everything
// CHECK: %[[x:.*]] = arith.extf
// CHECK: %[[y:.*]] = nn.reduce sum %[[x]] dims = [1] : tensor<50257x768xf32> -> tensor<50257xf32>
// CHECK: %[[z:.*]] = nn.reshape %[[y]] : tensor<50257xf32> -> tensor<29x1733xf32>
// CHECK: %[[s:.*]] = nn.reduce sum %[[z]] dims = [1] {{.*}} : tensor<29x1733xf32> -> tensor<29xf32>
// CHECK: %[[t:.*]] = nn.reduce sum %[[s]] dims = [0] {{.*}} : tensor<29xf32> -> tensor<f32>
// CHECK: arith.truncf %[[t]]
func.func @everything(%x: tensor<50257x768xbf16>) -> tensor<bf16> {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<50257x768xbf16> -> tensor<bf16>
  return %0 : tensor<bf16>
}

// -----

// Enough results to occupy all warps: no split.
// CHECK-LABEL: @rows
// CHECK-NEXT: nn.reduce max %arg0 dims = [1] : tensor<8192x768xf32> -> tensor<8192xf32>
func.func @rows(%x: tensor<8192x768xf32>) -> tensor<8192xf32> {
  %0 = nn.reduce max %x dims = [1] : tensor<8192x768xf32> -> tensor<8192xf32>
  return %0 : tensor<8192xf32>
}

// -----

// The first input is too small to be worth another launch, the second is empty: no split.
// CHECK-LABEL: @little
// CHECK-NEXT: nn.reduce sum %arg0 dims = [0] : tensor<16x768xf32> -> tensor<768xf32>
// CHECK-NEXT: nn.reduce sum %arg1 dims = [0] : tensor<0x4xf32> -> tensor<4xf32>
func.func @little(%x: tensor<16x768xf32>, %y: tensor<0x4xf32>) -> (tensor<768xf32>, tensor<4xf32>) {
  %0 = nn.reduce sum %x dims = [0] : tensor<16x768xf32> -> tensor<768xf32>
  %1 = nn.reduce sum %y dims = [0] : tensor<0x4xf32> -> tensor<4xf32>
  return %0, %1 : tensor<768xf32>, tensor<4xf32>
}

// -----

// Batch statistics in training: the split reduction keeps channels as dimension 1.
// CHECK-LABEL: @statistics
// CHECK-NOT: nn.batch_norm
// CHECK: %[[s:.*]] = nn.reduce sum %{{.*}} dims = [2, 3] : tensor<64x64x56x56xf32> -> tensor<64x64xf32>
// CHECK: nn.reduce sum %[[s]] dims = [0] {{.*}} : tensor<64x64xf32> -> tensor<64xf32>
// CHECK: %[[q:.*]] = nn.reduce sum %{{.*}} dims = [2, 3]
// CHECK: nn.reduce sum %[[q]] dims = [0]
func.func @statistics(%x: tensor<64x64x56x56xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>) -> (tensor<64x64x56x56xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 training : (tensor<64x64x56x56xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x64x56x56xf32>, tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2 : tensor<64x64x56x56xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// Integers and truth values are reduced in their type.
// CHECK-LABEL: @integers
// CHECK-NOT: arith
// CHECK: nn.reduce max %{{.*}} -> tensor<4x{{.*}}xi1>
// CHECK: nn.reduce max %{{.*}} -> tensor<4xi1>
// CHECK: nn.reduce min %{{.*}} -> tensor<{{.*}}x768xi8>
// CHECK: nn.reduce min %{{.*}} -> tensor<768xi8>
// CHECK: nn.reduce sum %{{.*}} -> tensor<{{.*}}x768xi64>
// CHECK: nn.reduce sum %{{.*}} -> tensor<768xi64>
// CHECK-NOT: arith
func.func @integers(%x: tensor<4x32768xi1>, %y: tensor<8192x768xi8>, %z: tensor<8192x768xi64>) -> (tensor<4xi1>, tensor<768xi8>, tensor<768xi64>) {
  %0 = nn.reduce max %x dims = [1] : tensor<4x32768xi1> -> tensor<4xi1>
  %1 = nn.reduce min %y dims = [0] : tensor<8192x768xi8> -> tensor<768xi8>
  %2 = nn.reduce sum %z dims = [0] : tensor<8192x768xi64> -> tensor<768xi64>
  return %0, %1, %2 : tensor<4xi1>, tensor<768xi8>, tensor<768xi64>
}

// -----

// Statistics of a small batch stay in one kernel. A prime number of rows cannot
// be split.
// CHECK-LABEL: @whole
// CHECK: nn.batch_norm
// CHECK: nn.reduce sum %arg5 dims = [0] : tensor<8191x768xf32> -> tensor<768xf32>
func.func @whole(%x: tensor<2x8x4x4xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %y: tensor<8191x768xf32>) -> (tensor<2x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<768xf32>) {
  %0:3 = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 training : (tensor<2x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>)
  %1 = nn.reduce sum %y dims = [0] : tensor<8191x768xf32> -> tensor<768xf32>
  return %0#0, %0#1, %0#2, %1 : tensor<2x8x4x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<768xf32>
}
