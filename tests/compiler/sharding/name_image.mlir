// RUN: partita-opt %s --partita-name-dimensions | FileCheck %s

// A stem with a stride, a block that expands its channels and gates them, then
// attention over the pixels.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["B", "3", "H", "W"], nn.kind = "input"}
// CHECK-SAME: {nn.dims = ["E", "3", "3", "3"], {{.*}}"stem"
// CHECK-SAME: {nn.dims = ["M", "E", "1", "1"], {{.*}}"expand"
// CHECK-SAME: {nn.dims = ["M", "1", "3", "3"], {{.*}}"depthwise"
// CHECK-SAME: {nn.dims = ["2", "M", "1", "1"], {{.*}}"squeeze"
// CHECK-SAME: {nn.dims = ["M", "2", "1", "1"], {{.*}}"excite"
// CHECK-SAME: {nn.dims = ["E", "M", "1", "1"], {{.*}}"project"
// CHECK-SAME: {nn.dims = ["E", "N*4"], {{.*}}"q"
// CHECK-SAME: {nn.dims = ["1", "N", "L=H*W", "L'=H'*W'"], {{.*}}"bias"
// CHECK: nn.conv {{.*}}nn.dims = {{\[\[}}"B", "E", "H", "W"]]
// CHECK: nn.conv {{.*}}nn.dims = {{\[\[}}"B", "M", "H", "W"]]
// CHECK: nn.attention {{.*}}nn.dims = {{\[\[}}"B", "N", "L=H*W", "4"]]
func.func @main(%x: tensor<2x3x12x12xf32> {nn.kind = "input"},
    %stem: tensor<8x3x3x3xf32> {nn.kind = "parameter", nn.name = "stem", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %expand: tensor<16x8x1x1xf32> {nn.kind = "parameter", nn.name = "expand", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %depthwise: tensor<16x1x3x3xf32> {nn.kind = "parameter", nn.name = "depthwise", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %squeeze: tensor<2x16x1x1xf32> {nn.kind = "parameter", nn.name = "squeeze", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %excite: tensor<16x2x1x1xf32> {nn.kind = "parameter", nn.name = "excite", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %project: tensor<8x16x1x1xf32> {nn.kind = "parameter", nn.name = "project", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %q: tensor<8x8xf32> {nn.kind = "parameter", nn.name = "q", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %bias: tensor<1x2x36x36xf32> {nn.kind = "parameter", nn.name = "bias", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<2x2x36x4xf32> {
  %0 = nn.conv %x, %stem strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x3x12x12xf32>, tensor<8x3x3x3xf32> -> tensor<2x8x6x6xf32>
  %1 = nn.conv %0, %expand strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x8x6x6xf32>, tensor<16x8x1x1xf32> -> tensor<2x16x6x6xf32>
  %2 = math.tanh %1 : tensor<2x16x6x6xf32>
  %3 = nn.conv %2, %depthwise strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 16 : tensor<2x16x6x6xf32>, tensor<16x1x3x3xf32> -> tensor<2x16x6x6xf32>
  %4 = nn.reduce sum %3 dims = [2, 3] : tensor<2x16x6x6xf32> -> tensor<2x16xf32>
  %5 = nn.reshape %4 : tensor<2x16xf32> -> tensor<2x16x1x1xf32>
  %6 = nn.conv %5, %squeeze strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x16x1x1xf32>, tensor<2x16x1x1xf32> -> tensor<2x2x1x1xf32>
  %7 = math.tanh %6 : tensor<2x2x1x1xf32>
  %8 = nn.conv %7, %excite strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x2x1x1xf32>, tensor<16x2x1x1xf32> -> tensor<2x16x1x1xf32>
  %9 = nn.broadcast %8 dims = [0, 1, 2, 3] : tensor<2x16x1x1xf32> -> tensor<2x16x6x6xf32>
  %10 = arith.mulf %3, %9 : tensor<2x16x6x6xf32>
  %11 = nn.conv %10, %project strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x16x6x6xf32>, tensor<8x16x1x1xf32> -> tensor<2x8x6x6xf32>
  %12 = arith.addf %0, %11 : tensor<2x8x6x6xf32>
  %13 = nn.reshape %12 : tensor<2x8x6x6xf32> -> tensor<2x8x36xf32>
  %14 = nn.transpose %13 perm = [0, 2, 1] : tensor<2x8x36xf32> -> tensor<2x36x8xf32>
  %15 = nn.dot_general %14, %q contract = [2] x [0] : tensor<2x36x8xf32>, tensor<8x8xf32> -> tensor<2x36x8xf32>
  %16 = nn.reshape %15 : tensor<2x36x8xf32> -> tensor<2x36x2x4xf32>
  %17 = nn.transpose %16 perm = [0, 2, 1, 3] : tensor<2x36x2x4xf32> -> tensor<2x2x36x4xf32>
  %18 = nn.attention %17, %17, %17, %bias scale = 1.0 : (tensor<2x2x36x4xf32>, tensor<2x2x36x4xf32>, tensor<2x2x36x4xf32>, tensor<1x2x36x36xf32>) -> tensor<2x2x36x4xf32>
  return %18 : tensor<2x2x36x4xf32>
}
