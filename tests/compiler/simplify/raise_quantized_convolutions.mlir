// RUN: partita-opt %s --split-input-file --partita-raise-quantized-convolutions --canonicalize | FileCheck %s

// With padding, the zero point stays in front of the convolution.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<1x2x8xi8>, %[[W:arg[0-9]+]]: tensor<4x2x3xi8>, %[[A:arg[0-9]+]]: tensor<f32>, %[[S:arg[0-9]+]]: tensor<4xf32>)
// CHECK-DAG: %[[Z:.*]] = arith.constant dense<120> : tensor<1x2x8xi32>
// CHECK: %[[E:.*]] = arith.extui %[[X]]
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[E]], %[[Z]]
// CHECK-NEXT: %[[F:.*]] = arith.sitofp %[[D]]
// CHECK-NEXT: %[[I:.*]] = arith.sitofp %[[W]] : tensor<4x2x3xi8> to tensor<4x2x3xf32>
// CHECK-NEXT: %[[C:.*]] = nn.conv %[[F]], %[[I]] strides = [1] dilations = [1] low = [1] high = [1]
// CHECK-NEXT: %[[R:.*]] = nn.broadcast %[[A]] dims = [] : tensor<f32> -> tensor<4xf32>
// CHECK-NEXT: %[[V:.*]] = arith.mulf %[[R]], %[[S]] : tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[V]] dims = [1] : tensor<4xf32> -> tensor<1x4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[C]], %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %a: tensor<f32>, %s: tensor<4xf32>) -> tensor<1x4x8xf32> {
  %zero = arith.constant dense<120> : tensor<1x2x8xi32>
  %0 = arith.extui %x : tensor<1x2x8xi8> to tensor<1x2x8xi32>
  %1 = arith.subi %0, %zero : tensor<1x2x8xi32>
  %2 = arith.sitofp %1 : tensor<1x2x8xi32> to tensor<1x2x8xf32>
  %3 = nn.broadcast %a dims = [] : tensor<f32> -> tensor<1x2x8xf32>
  %4 = arith.mulf %2, %3 : tensor<1x2x8xf32>
  %5 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %6 = nn.broadcast %s dims = [0] : tensor<4xf32> -> tensor<4x2x3xf32>
  %7 = arith.mulf %5, %6 : tensor<4x2x3xf32>
  %8 = nn.conv %4, %7 strides = [1] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x8xf32>
  return %8 : tensor<1x4x8xf32>
}

// -----

// Without padding, the zero point becomes a shift, which joins the bias. A factor of a batch norm goes with the scale.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<1x2x8xi8>, %[[W:arg[0-9]+]]: tensor<4x2x3xi8>
// CHECK: %[[E:.*]] = arith.extui %[[X]]
// CHECK: %[[F:.*]] = arith.sitofp %[[E]]
// CHECK: nn.conv %[[F]], %{{.*}} low = [0] high = [0]
// CHECK: nn.reduce sum %{{.*}} dims = [1, 2] : tensor<4x2x3xf32> -> tensor<4xf32>
// CHECK: arith.subf %arg5, %{{.*}} : tensor<4xf32>
// CHECK: %[[Y:.*]] = arith.addf %{{.*}} : tensor<1x4x6xf32>
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %a: tensor<f32>, %s: tensor<4xf32>, %norm: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<1x4x6xf32> {
  %zero = arith.constant dense<120> : tensor<1x2x8xi32>
  %0 = arith.extui %x : tensor<1x2x8xi8> to tensor<1x2x8xi32>
  %1 = arith.subi %0, %zero : tensor<1x2x8xi32>
  %2 = arith.sitofp %1 : tensor<1x2x8xi32> to tensor<1x2x8xf32>
  %3 = nn.broadcast %a dims = [] : tensor<f32> -> tensor<1x2x8xf32>
  %4 = arith.mulf %2, %3 : tensor<1x2x8xf32>
  %5 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %6 = nn.broadcast %s dims = [0] : tensor<4xf32> -> tensor<4x2x3xf32>
  %7 = arith.mulf %5, %6 : tensor<4x2x3xf32>
  %8 = nn.broadcast %norm dims = [0] : tensor<4xf32> -> tensor<4x2x3xf32>
  %9 = arith.mulf %7, %8 : tensor<4x2x3xf32>
  %10 = nn.conv %4, %9 strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x6xf32>
  %11 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<1x4x6xf32>
  %12 = arith.addf %10, %11 : tensor<1x4x6xf32>
  return %12 : tensor<1x4x6xf32>
}

// -----

// Signed integers with a zero point of -128 become unsigned ones without a zero point.
// CHECK-LABEL: func @main
// CHECK-DAG: %[[HIGH:.*]] = arith.constant dense<2.550000e+02> : tensor<1x2x8xf32>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<0.000000e+00> : tensor<1x2x8xf32>
// CHECK: arith.maximumf %{{.*}}, %[[LOW]]
// CHECK-NEXT: arith.minimumf %{{.*}}, %[[HIGH]]
// CHECK-NEXT: %[[Q:.*]] = arith.fptoui
// CHECK-NEXT: %[[E:.*]] = arith.extui %[[Q]]
// CHECK-NEXT: %[[F:.*]] = arith.sitofp %[[E]]
// CHECK-NOT: arith.subi
// CHECK: nn.conv %[[F]]
func.func @main(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xi8>) -> tensor<1x4x8xf32> {
  %scale = arith.constant dense<0.25> : tensor<1x2x8xf32>
  %weight_scale = arith.constant dense<0.125> : tensor<4x2x3xf32>
  %zero = arith.constant dense<-128.0> : tensor<1x2x8xf32>
  %low = arith.constant dense<-128.0> : tensor<1x2x8xf32>
  %high = arith.constant dense<127.0> : tensor<1x2x8xf32>
  %integer_zero = arith.constant dense<-128> : tensor<1x2x8xi32>
  %0 = math.roundeven %x : tensor<1x2x8xf32>
  %1 = arith.addf %0, %zero : tensor<1x2x8xf32>
  %2 = arith.maximumf %1, %low : tensor<1x2x8xf32>
  %3 = arith.minimumf %2, %high : tensor<1x2x8xf32>
  %4 = arith.fptosi %3 : tensor<1x2x8xf32> to tensor<1x2x8xi8>
  %5 = arith.extsi %4 : tensor<1x2x8xi8> to tensor<1x2x8xi32>
  %6 = arith.subi %5, %integer_zero : tensor<1x2x8xi32>
  %7 = arith.sitofp %6 : tensor<1x2x8xi32> to tensor<1x2x8xf32>
  %8 = arith.mulf %7, %scale : tensor<1x2x8xf32>
  %9 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %10 = arith.mulf %9, %weight_scale : tensor<4x2x3xf32>
  %11 = nn.conv %8, %10 strides = [1] dilations = [1] low = [1] high = [1] groups = 1 : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x8xf32>
  return %11 : tensor<1x4x8xf32>
}

// -----

// The input alone is dequantized; a scale of the weight differs along its input channels: both stay.
// CHECK-LABEL: func @main
// CHECK: %[[M:.*]] = arith.mulf
// CHECK: %[[W:.*]] = arith.mulf
// CHECK-NEXT: nn.conv %[[M]], %arg1
// CHECK-NEXT: nn.conv %[[M]], %[[W]]
// CHECK-NOT: arith.mulf
func.func @main(%x: tensor<1x2x8xi8>, %f: tensor<4x2x3xf32>, %w: tensor<4x2x3xi8>, %a: tensor<f32>, %s: tensor<2xf32>) -> (tensor<1x4x6xf32>, tensor<1x4x6xf32>) {
  %0 = arith.uitofp %x : tensor<1x2x8xi8> to tensor<1x2x8xf32>
  %1 = nn.broadcast %a dims = [] : tensor<f32> -> tensor<1x2x8xf32>
  %2 = arith.mulf %0, %1 : tensor<1x2x8xf32>
  %5 = arith.sitofp %w : tensor<4x2x3xi8> to tensor<4x2x3xf32>
  %6 = nn.broadcast %s dims = [1] : tensor<2xf32> -> tensor<4x2x3xf32>
  %7 = arith.mulf %5, %6 : tensor<4x2x3xf32>
  %3 = nn.conv %2, %f strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x6xf32>
  %8 = nn.conv %2, %7 strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x6xf32>
  return %3, %8 : tensor<1x4x6xf32>, tensor<1x4x6xf32>
}
