// RUN: partita-opt %s --partita-plan-memory=in-place --split-input-file | FileCheck %s

// An elementwise kernel writes over the operand that it read last.
// CHECK-LABEL: @chain
// CHECK-SAME: exec.frame_bytes = 64
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.launch {{.*}} {exec.offsets = array<i64: -1>}
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  %0 = math.exp %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func @chain(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.launch @k(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = exec.launch @k(%1) : (tensor<16xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}

// -----

// Not in place: a value that is read later, a kernel that reads other elements, and other types.
// CHECK-LABEL: @apart
// CHECK-SAME: exec.frame_bytes = 128
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  %0 = math.exp %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  %0 = arith.addf %x, %y : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @transpose(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {exec.kernel} {
  %0 = nn.transpose %x perm = [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @bits(%x: tensor<4x4xf32>) -> tensor<4x4xi32> attributes {exec.kernel} {
  %0 = arith.bitcast %x : tensor<4x4xf32> to tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}
func.func private @last(%x: tensor<4x4xi32>) -> tensor<4x4xi32> attributes {exec.kernel} {
  return %x : tensor<4x4xi32>
}
func.func @apart(%x: tensor<16xf32>) -> (tensor<4x4xi32>) {
  // CHECK: exec.launch @k(%arg0) {exec.offsets = array<i64: [[A:[0-9]+]]>}
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  // CHECK-NOT: array<i64: [[A]]>
  // CHECK: exec.launch @k
  %1 = exec.launch @k(%0) : (tensor<16xf32>) -> tensor<16xf32>
  // CHECK: exec.launch @add
  %2 = exec.launch @add(%0, %1) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %3 = exec.view %2 : tensor<16xf32> -> tensor<4x4xf32>
  %4 = exec.launch @transpose(%3) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = exec.launch @bits(%4) : (tensor<4x4xf32>) -> tensor<4x4xi32>
  %6 = exec.launch @last(%5) : (tensor<4x4xi32>) -> tensor<4x4xi32>
  return %6 : tensor<4x4xi32>
}

// -----

// A convolution adds to its residual, and so does the call of a layer.
// CHECK-LABEL: @main
// CHECK: exec.conv {{.*}} {exec.offsets = array<i64: [[A:[0-9]+]]>}
// CHECK: exec.conv {{.*}} {exec.offsets = array<i64: [[B:[0-9]+]]>}
// CHECK: exec.conv {{.*}} residual{{.*}} {exec.offsets = array<i64: [[A]]>}
// CHECK: call @layer{{.*}} exec.offsets = array<i64: [[A]]>}
// CHECK: call @layer{{.*}} exec.offsets = array<i64: -1>}
func.func private @layer(%x: tensor<1x2x2x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %1 = exec.conv %0, %w residual(%x : tensor<1x2x2x4xf32>) strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last activation = relu activates_sum : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  return %1 : tensor<1x2x2x4xf32>
}
func.func @main(%x: tensor<1x2x2x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %1 = exec.conv %0, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %2 = exec.conv %1, %w residual(%0 : tensor<1x2x2x4xf32>) strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %3 = func.call @layer(%2, %w) : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %4 = func.call @layer(%3, %w) : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  return %4 : tensor<1x2x2x4xf32>
}

// -----

// Not in place: an activation in front of the sum, and the residual as input.
// CHECK-LABEL: @not_added
// CHECK: exec.conv {{.*}} {exec.offsets = array<i64: 0>}
// CHECK: exec.conv {{.*}} {exec.offsets = array<i64: 64>}
// CHECK: exec.conv {{.*}} {exec.offsets = array<i64: 128>}
// CHECK: exec.conv {{.*}} {exec.offsets = array<i64: 0>}
func.func @not_added(%x: tensor<1x2x2x4xf32>, %w: tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32> {
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %1 = exec.conv %0, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %2 = exec.conv %1, %w residual(%0 : tensor<1x2x2x4xf32>) strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last activation = relu : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %3 = exec.conv %2, %w residual(%2 : tensor<1x2x2x4xf32>) strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  %4 = exec.conv %3, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 channels_last : (tensor<1x2x2x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x2x2x4xf32>
  return %4 : tensor<1x2x2x4xf32>
}
