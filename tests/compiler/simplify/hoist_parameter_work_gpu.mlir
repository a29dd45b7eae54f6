// RUN: partita-opt %s --partita-hoist-parameter-work="gpu=true" | FileCheck %s

// Libraries for GPUs convolve floats: the weight of a convolution of integers is widened once.
// CHECK-LABEL: func @init
// CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
// CHECK-NEXT: return %[[F]]
// CHECK-LABEL: func @main
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3x1x1xf32> {nn.kind = "derived"
// CHECK: nn.conv %{{.*}}, %[[W]]
func.func @main(%x: tensor<1x3x1x1xi8> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x3x1x1xi8> {nn.kind = "buffer", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<1x4x1x1xf32> {
  %0 = arith.uitofp %x : tensor<1x3x1x1xi8> to tensor<1x3x1x1xf32>
  %1 = arith.sitofp %w : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
  %2 = nn.conv %0, %1 strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x1x1xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x1x1xf32>
  return %2 : tensor<1x4x1x1xf32>
}
