// RUN: partita-opt %s --split-input-file --partita-select-library-calls --partita-fuse-activations --partita-fuse-rounding | FileCheck %s

// A convolution of integers, its scale, bias, relu and rounding are one call.
// CHECK-LABEL: func @whole
// CHECK-DAG: %[[RS:.*]] = arith.constant dense<2.500000e-01> : tensor<f32>
// CHECK-DAG: %[[RZ:.*]] = arith.constant dense<3> : tensor<i32>
// CHECK: %[[Y:.*]] = exec.conv %arg0, %arg1 input_unsigned scale(%arg2 : tensor<4xf32>) zero(%arg4 : tensor<i32>) bias(%arg3 : tensor<4xf32>) result_scale(%[[RS]] : tensor<f32>) result_zero(%[[RZ]] : tensor<i32>) result_unsigned {{.*}} channels_last activation = relu : (tensor<1x8x2xi8>, tensor<4x2x3xi8>) -> tensor<1x8x4xi8>
// CHECK-NEXT: return %[[Y]]
func.func @whole(%x: tensor<1x8x2xi8>, %w: tensor<4x2x3xi8>, %s: tensor<4xf32>, %b: tensor<4xf32>, %z: tensor<i32>) -> tensor<1x8x4xi8> {
  %zero = arith.constant dense<0.0> : tensor<1x8x4xf32>
  %high = arith.constant dense<255.0> : tensor<1x8x4xf32>
  %step = arith.constant dense<0.25> : tensor<1x8x4xf32>
  %offset = arith.constant dense<3.0> : tensor<1x8x4xf32>
  %0 = arith.extui %x : tensor<1x8x2xi8> to tensor<1x8x2xi32>
  %1 = nn.broadcast %z dims = [] : tensor<i32> -> tensor<1x8x2xi32>
  %2 = arith.subi %0, %1 : tensor<1x8x2xi32>
  %3 = arith.sitofp %2 : tensor<1x8x2xi32> to tensor<1x8x2xf32>
  %4 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %5 = nn.conv %3, %4 strides = [1] dilations = [1] low = [1] high = [1] groups = 1 channels_last : tensor<1x8x2xf32>, tensor<4x2x3xf32> -> tensor<1x8x4xf32>
  %6 = nn.broadcast %s dims = [2] : tensor<4xf32> -> tensor<1x8x4xf32>
  %7 = arith.mulf %5, %6 : tensor<1x8x4xf32>
  %8 = nn.broadcast %b dims = [2] : tensor<4xf32> -> tensor<1x8x4xf32>
  %9 = arith.addf %7, %8 : tensor<1x8x4xf32>
  %10 = arith.maximumf %9, %zero : tensor<1x8x4xf32>
  %11 = arith.divf %10, %step : tensor<1x8x4xf32>
  %12 = math.roundeven %11 : tensor<1x8x4xf32>
  %13 = arith.addf %12, %offset : tensor<1x8x4xf32>
  %14 = arith.maximumf %13, %zero : tensor<1x8x4xf32>
  %15 = arith.minimumf %14, %high : tensor<1x8x4xf32>
  %16 = arith.fptoui %15 : tensor<1x8x4xf32> to tensor<1x8x4xi8>
  return %16 : tensor<1x8x4xi8>
}

// -----

// Another reader needs the unrounded result; a transpose of the input moves to the integers; one scale serves all channels.
// CHECK-LABEL: func @read_twice
// CHECK: %[[T:.*]] = nn.transpose %arg0 perm = [0, 2, 1] : tensor<1x2x8xi8> -> tensor<1x8x2xi8>
// CHECK: %[[S:.*]] = arith.constant dense<5.000000e-01> : tensor<4xf32>
// CHECK: %[[Y:.*]] = exec.conv %[[T]], %arg1 scale(%[[S]] : tensor<4xf32>) strides
// CHECK-SAME: -> tensor<1x6x4xf32>
// CHECK-NEXT: math.roundeven %[[Y]]
func.func @read_twice(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>) -> (tensor<1x6x4xi8>, tensor<1x6x4xf32>) {
  %low = arith.constant dense<-128.0> : tensor<1x6x4xf32>
  %high = arith.constant dense<127.0> : tensor<1x6x4xf32>
  %half = arith.constant dense<0.5> : tensor<1x6x4xf32>
  %0 = arith.sitofp %x : tensor<1x2x8xi8> to tensor<1x2x8xf32>
  %1 = nn.transpose %0 perm = [0, 2, 1] : tensor<1x2x8xf32> -> tensor<1x8x2xf32>
  %4 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %5 = nn.conv %1, %4 strides = [1] dilations = [1] low = [0] high = [0] groups = 1 channels_last : tensor<1x8x2xf32>, tensor<4x2x3xf32> -> tensor<1x6x4xf32>
  %6 = arith.mulf %5, %half : tensor<1x6x4xf32>
  %7 = math.roundeven %6 : tensor<1x6x4xf32>
  %8 = arith.maximumf %7, %low : tensor<1x6x4xf32>
  %9 = arith.minimumf %8, %high : tensor<1x6x4xf32>
  %10 = arith.fptosi %9 : tensor<1x6x4xf32> to tensor<1x6x4xi8>
  return %10, %6 : tensor<1x6x4xi8>, tensor<1x6x4xf32>
}

// -----

// A sum over a divided dimension is scaled behind its collective: here by 1. Limits of other integers are no saturation.
// CHECK-LABEL: func @partial
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK: %[[Y:.*]] = exec.conv %arg0, %arg1 scale(%[[ONE]] : tensor<4xf32>) strides
// CHECK-NEXT: math.roundeven %[[Y]]
func.func @partial(%x: tensor<1x8x2xi8>, %w: tensor<4x2x3xi8>) -> tensor<1x6x4xi8> {
  %low = arith.constant dense<-127.0> : tensor<1x6x4xf32>
  %high = arith.constant dense<127.0> : tensor<1x6x4xf32>
  %0 = arith.sitofp %x : tensor<1x8x2xi8> to tensor<1x8x2xf32>
  %4 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %5 = nn.conv %0, %4 strides = [1] dilations = [1] low = [0] high = [0] groups = 1 channels_last : tensor<1x8x2xf32>, tensor<4x2x3xf32> -> tensor<1x6x4xf32>
  %7 = math.roundeven %5 : tensor<1x6x4xf32>
  %8 = arith.maximumf %7, %low : tensor<1x6x4xf32>
  %9 = arith.minimumf %8, %high : tensor<1x6x4xf32>
  %10 = arith.fptosi %9 : tensor<1x6x4xf32> to tensor<1x6x4xi8>
  return %10 : tensor<1x6x4xi8>
}
