// RUN: partita-opt %s --split-input-file --partita-fold-scales | FileCheck %s

// The scale goes into the weight and the bias, and the shift into the bias.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<1x3x8x8xf32>, %[[W:arg[0-9]+]]: tensor<4x3x1x1xf32> {{{.*}}}, %[[B:arg[0-9]+]]: tensor<4xf32> {{{.*}}}, %[[S:arg[0-9]+]]: tensor<4xf32> {{{.*}}}, %[[T:arg[0-9]+]]: tensor<4xf32> {
// CHECK-DAG: %[[BS:.*]] = arith.mulf %[[B]], %[[S]] : tensor<4xf32>
// CHECK-DAG: %[[SW:.*]] = nn.broadcast %[[S]] dims = [0] : tensor<4xf32> -> tensor<4x3x1x1xf32>
// CHECK-DAG: %[[WS:.*]] = arith.mulf %[[W]], %[[SW]] : tensor<4x3x1x1xf32>
// CHECK-DAG: %[[BT:.*]] = arith.addf %[[BS]], %[[T]] : tensor<4xf32>
// CHECK: %[[C:.*]] = nn.conv %[[X]], %[[WS]]
// CHECK-NEXT: %[[BB:.*]] = nn.broadcast %[[BT]] dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[C]], %[[BB]] : tensor<1x4x8x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>}, %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>}, %s: tensor<4xf32> {nn.kind = "parameter", nn.name = "s", nn.source = #nn.init<"ones", 1.0 : f64, 0>}, %t: tensor<4xf32> {nn.kind = "parameter", nn.name = "t", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = arith.addf %0, %1 : tensor<1x4x8x8xf32>
  %3 = nn.broadcast %s dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %4 = arith.mulf %3, %2 : tensor<1x4x8x8xf32>
  %5 = nn.broadcast %t dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %6 = arith.addf %4, %5 : tensor<1x4x8x8xf32>
  return %6 : tensor<1x4x8x8xf32>
}

// -----

// One number for all features, after a convolution without bias.
// CHECK-LABEL: func @main
// CHECK: %[[S:.*]] = arith.constant dense<5.000000e-01> : tensor<4xf32>
// CHECK: %[[SW:.*]] = nn.broadcast %[[S]] dims = [0]
// CHECK: %[[WS:.*]] = arith.mulf %{{.*}}, %[[SW]] : tensor<4x1x1x1xf32>
// CHECK: %[[C:.*]] = nn.conv %{{.*}}, %[[WS]]
// CHECK-NEXT: return %[[C]]
func.func @main(%x: tensor<1x8x8x4xf32>, %w: tensor<4x1x1x1xf32>) -> tensor<1x8x8x4xf32> {
  %half = arith.constant dense<0.5> : tensor<1x8x8x4xf32>
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 4 channels_last : tensor<1x8x8x4xf32>, tensor<4x1x1x1xf32> -> tensor<1x8x8x4xf32>
  %y = arith.mulf %0, %half : tensor<1x8x8x4xf32>
  return %y : tensor<1x8x8x4xf32>
}

// -----

// A gate is computed in every run; multiplying weights by it is slower.
// CHECK-LABEL: func @main
// CHECK: %[[C:.*]] = nn.conv %{{.*}}, %arg1
// CHECK: arith.mulf %[[C]], %{{.*}} : tensor<1x4x8x8xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %gate: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.broadcast %gate dims = [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = arith.mulf %0, %1 : tensor<1x4x8x8xf32>
  return %2 : tensor<1x4x8x8xf32>
}

// -----

// The unscaled result is needed too.
// CHECK-LABEL: func @main
// CHECK: %[[C:.*]] = nn.conv %{{.*}}, %arg1
// CHECK: arith.mulf %[[C]], %{{.*}} : tensor<1x4x8x8xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %half = arith.constant dense<0.5> : tensor<1x4x8x8xf32>
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = arith.mulf %0, %half : tensor<1x4x8x8xf32>
  return %0, %1 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// A scale per column is not one per feature.
// CHECK-LABEL: func @main
// CHECK: %[[C:.*]] = nn.conv %{{.*}}, %arg1
// CHECK: arith.mulf %[[C]], %{{.*}} : tensor<1x4x2x2xf32>
func.func @main(%x: tensor<1x3x2x2xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x2x2xf32> {
  %columns = arith.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x2x2xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x2x2xf32>
  %1 = nn.broadcast %columns dims = [3] : tensor<2xf32> -> tensor<1x4x2x2xf32>
  %2 = arith.mulf %0, %1 : tensor<1x4x2x2xf32>
  return %2 : tensor<1x4x2x2xf32>
}
