// RUN: partita-opt %s --partita-name-dimensions | FileCheck %s

// The gradient of a kernel, as JAX writes it: a convolution of the image with
// the result's gradient, over the channels as the batch. Its window is no
// image, and its channels are no batch.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["B", "3", "H", "W"], nn.kind = "input"}
// CHECK-SAME: {nn.dims = ["B", "E", "H", "W"], nn.kind = "input"}
// CHECK-SAME: {nn.dims = ["E", "3", "3", "3"], {{.*}}"stem"
// CHECK: nn.conv {{.*}}nn.dims = {{\[\[}}"B", "E", "H", "W"]]
// CHECK: nn.conv {{.*}}nn.dims = {{\[\[}}"3", "E", "3", "3"]]
func.func @main(%x: tensor<2x3x12x12xf32> {nn.kind = "input"}, %y: tensor<2x8x12x12xf32> {nn.kind = "input"},
    %stem: tensor<8x3x3x3xf32> {nn.kind = "state", nn.name = "stem", nn.source = #nn.init<"zeros", 0.0 : f64, 0>})
    -> (tensor<8x3x3x3xf32> {nn.updates = "stem"}) {
  %0 = nn.conv %x, %stem strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x3x12x12xf32>, tensor<8x3x3x3xf32> -> tensor<2x8x12x12xf32>
  %1 = arith.subf %0, %y : tensor<2x8x12x12xf32>
  %2 = nn.transpose %x perm = [1, 0, 2, 3] : tensor<2x3x12x12xf32> -> tensor<3x2x12x12xf32>
  %3 = nn.transpose %1 perm = [1, 0, 2, 3] : tensor<2x8x12x12xf32> -> tensor<8x2x12x12xf32>
  %4 = nn.conv %2, %3 strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<3x2x12x12xf32>, tensor<8x2x12x12xf32> -> tensor<3x8x3x3xf32>
  %5 = nn.transpose %4 perm = [1, 0, 2, 3] : tensor<3x8x3x3xf32> -> tensor<8x3x3x3xf32>
  %6 = arith.addf %stem, %5 : tensor<8x3x3x3xf32>
  return %6 : tensor<8x3x3x3xf32>
}
