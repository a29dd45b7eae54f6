// RUN: partita-opt %s --partita-name-dimensions --split-input-file | FileCheck %s

// The channels that the first convolution makes are named M if they lead to exactly one other width.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["M", "3", "3", "3"], {{.*}}"first"
// CHECK-SAME: {nn.dims = ["E", "M", "3", "3"], {{.*}}"second"
// CHECK-SAME: {nn.dims = ["E'", "E", "1", "1"], {{.*}}"third"
func.func @main(%x: tensor<2x3x12x12xf32> {nn.kind = "input"},
    %first: tensor<8x3x3x3xf32> {nn.kind = "parameter", nn.name = "first", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %second: tensor<8x8x3x3xf32> {nn.kind = "parameter", nn.name = "second", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %third: tensor<16x8x1x1xf32> {nn.kind = "parameter", nn.name = "third", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<2x16x6x6xf32> {
  %0 = nn.conv %x, %first strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x3x12x12xf32>, tensor<8x3x3x3xf32> -> tensor<2x8x6x6xf32>
  %1 = math.tanh %0 : tensor<2x8x6x6xf32>
  %2 = nn.conv %1, %second strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x8x6x6xf32>, tensor<8x8x3x3xf32> -> tensor<2x8x6x6xf32>
  %3 = nn.conv %2, %third strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x8x6x6xf32>, tensor<16x8x1x1xf32> -> tensor<2x16x6x6xf32>
  return %3 : tensor<2x16x6x6xf32>
}

// -----

// A width that leads to two widths is named E.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["E", "3", "3", "3"], {{.*}}"first"
func.func @main(%x: tensor<2x3x12x12xf32> {nn.kind = "input"},
    %first: tensor<8x3x3x3xf32> {nn.kind = "parameter", nn.name = "first", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %left: tensor<8x8x3x3xf32> {nn.kind = "parameter", nn.name = "left", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %right: tensor<16x8x1x1xf32> {nn.kind = "parameter", nn.name = "right", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> (tensor<2x8x6x6xf32>, tensor<2x16x6x6xf32>) {
  %0 = nn.conv %x, %first strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x3x12x12xf32>, tensor<8x3x3x3xf32> -> tensor<2x8x6x6xf32>
  %1 = nn.conv %0, %left strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x8x6x6xf32>, tensor<8x8x3x3xf32> -> tensor<2x8x6x6xf32>
  %2 = nn.conv %0, %right strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x8x6x6xf32>, tensor<16x8x1x1xf32> -> tensor<2x16x6x6xf32>
  return %1, %2 : tensor<2x8x6x6xf32>, tensor<2x16x6x6xf32>
}
