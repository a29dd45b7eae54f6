// RUN: partita-opt %s --split-input-file --partita-expose-factors --cse | FileCheck %s

// Packed query, key and value projections are separated, in the layer and at its
// calls; biases too.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<8x3x8xf32> {nn.kind = "parameter", nn.name = "qkv.weight", nn.source = #nn.file<"w", 0, 768, f32>, nn.view_of = tensor<8x24xf32>}
// CHECK-SAME: tensor<3x8xf32>
// CHECK: call @layer({{.*}}) : (tensor<2x8xf32>, tensor<8x3x8xf32>, tensor<3x8xf32>)
// CHECK: call @layer(
// CHECK: func.func private @layer(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32>, %[[W:.*]]: tensor<8x3x8xf32>, %[[B:.*]]: tensor<3x8xf32>
// CHECK-NOT: tensor<2x24xf32>
// CHECK: %[[S:.*]] = nn.slice %[[W]] starts = [0, 1, 0] strides = [1, 1, 1] : tensor<8x3x8xf32> -> tensor<8x1x8xf32>
// CHECK: %[[WK:.*]] = nn.reshape %[[S]] : tensor<8x1x8xf32> -> tensor<8x8xf32>
// CHECK: nn.dot_general %[[X]], %[[WK]] contract = [1] x [0]
func.func @main(%x: tensor<2x8xf32> {nn.kind = "input", nn.name = "x"},
    %w0: tensor<8x24xf32> {nn.kind = "parameter", nn.name = "qkv.weight", nn.source = #nn.file<"w", 0, 768, f32>},
    %b0: tensor<24xf32> {nn.kind = "parameter", nn.name = "qkv.bias", nn.source = #nn.file<"w", 768, 96, f32>},
    %w1: tensor<8x24xf32> {nn.kind = "parameter", nn.name = "qkv.weight.1", nn.source = #nn.file<"w", 864, 768, f32>},
    %b1: tensor<24xf32> {nn.kind = "parameter", nn.name = "qkv.bias.1", nn.source = #nn.file<"w", 1632, 96, f32>}) -> tensor<2x8xf32> {
  %0 = call @layer(%x, %w0, %b0) : (tensor<2x8xf32>, tensor<8x24xf32>, tensor<24xf32>) -> tensor<2x8xf32>
  %1 = call @layer(%0, %w1, %b1) : (tensor<2x8xf32>, tensor<8x24xf32>, tensor<24xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
func.func private @layer(%x: tensor<2x8xf32>, %w: tensor<8x24xf32>, %b: tensor<24xf32>) -> tensor<2x8xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x24xf32> -> tensor<2x24xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<24xf32> -> tensor<2x24xf32>
  %2 = arith.addf %0, %1 : tensor<2x24xf32>
  %q = nn.slice %2 starts = [0, 0] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x8xf32>
  %k = nn.slice %2 starts = [0, 8] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x8xf32>
  %v = nn.slice %2 starts = [0, 16] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x8xf32>
  %3 = arith.mulf %q, %k : tensor<2x8xf32>
  %4 = arith.addf %3, %v : tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}

// -----

// The form in timm: split by a reshape, permuted by a transpose, then sliced. The
// weight is stored as [out, in].

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>, %[[W:.*]]: tensor<3x8x8xf32>
// CHECK: nn.slice %[[W]] starts = [0, 0, 0] {{.*}} -> tensor<1x8x8xf32>
// CHECK: nn.dot_general %[[X]], %{{.*}} contract = [2] x [1] : tensor<2x5x8xf32>, tensor<8x8xf32> -> tensor<2x5x8xf32>
func.func @main(%x: tensor<2x5x8xf32>, %w: tensor<24x8xf32> {nn.kind = "parameter", nn.source = #nn.file<"w", 0, 768, f32>}) -> tensor<1x2x2x5x4xf32> {
  %0 = nn.dot_general %x, %w contract = [2] x [1] : tensor<2x5x8xf32>, tensor<24x8xf32> -> tensor<2x5x24xf32>
  %1 = nn.reshape %0 : tensor<2x5x24xf32> -> tensor<2x5x3x2x4xf32>
  %2 = nn.transpose %1 perm = [2, 0, 3, 1, 4] : tensor<2x5x3x2x4xf32> -> tensor<3x2x2x5x4xf32>
  %q = nn.slice %2 starts = [0, 0, 0, 0, 0] strides = [1, 1, 1, 1, 1] : tensor<3x2x2x5x4xf32> -> tensor<1x2x2x5x4xf32>
  %k = nn.slice %2 starts = [1, 0, 0, 0, 0] strides = [1, 1, 1, 1, 1] : tensor<3x2x2x5x4xf32> -> tensor<1x2x2x5x4xf32>
  %v = nn.slice %2 starts = [2, 0, 0, 0, 0] strides = [1, 1, 1, 1, 1] : tensor<3x2x2x5x4xf32> -> tensor<1x2x2x5x4xf32>
  %3 = arith.mulf %q, %k : tensor<1x2x2x5x4xf32>
  %4 = arith.addf %3, %v : tensor<1x2x2x5x4xf32>
  return %4 : tensor<1x2x2x5x4xf32>
}

// -----

// The output channels of a convolution are separated.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<2x6x3x1x1xf32>
// CHECK: nn.conv {{.*}} -> tensor<2x6x4x4xf32>
// CHECK: nn.conv {{.*}} -> tensor<2x6x4x4xf32>
func.func @main(%x: tensor<2x3x4x4xf32>, %w: tensor<12x3x1x1xf32> {nn.kind = "parameter", nn.source = #nn.file<"w", 0, 144, f32>}) -> tensor<2x6x4x4xf32> {
  %0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<2x3x4x4xf32>, tensor<12x3x1x1xf32> -> tensor<2x12x4x4xf32>
  %1 = nn.slice %0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<2x12x4x4xf32> -> tensor<2x6x4x4xf32>
  %2 = nn.slice %0 starts = [0, 6, 0, 0] strides = [1, 1, 1, 1] : tensor<2x12x4x4xf32> -> tensor<2x6x4x4xf32>
  %3 = arith.mulf %1, %2 : tensor<2x6x4x4xf32>
  return %3 : tensor<2x6x4x4xf32>
}

// -----

// With fewer key and value heads than query heads, the product is separated, and
// the parameter keeps its shape.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32>, %[[W:.*]]: tensor<8x24xf32>
// CHECK-DAG: nn.dot_general %[[X]], {{.*}} -> tensor<2x16xf32>
// CHECK-DAG: nn.dot_general %[[X]], {{.*}} -> tensor<2x4xf32>
// CHECK-DAG: nn.dot_general %[[X]], {{.*}} -> tensor<2x4xf32>
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8x24xf32> {nn.kind = "parameter", nn.source = #nn.file<"w", 0, 768, f32>}) -> (tensor<2x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x24xf32> -> tensor<2x24xf32>
  %q = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x16xf32>
  %k = nn.slice %0 starts = [0, 16] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x4xf32>
  %v = nn.slice %0 starts = [0, 20] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x4xf32>
  return %q, %k, %v : tensor<2x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Not separated: a product with another use, heads before the parts in the same
// dimension, and slices of an activation.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<2x8xf32>, %{{.*}}: tensor<8x24xf32>
// CHECK: nn.dot_general {{.*}} -> tensor<2x24xf32>
// CHECK: nn.slice {{.*}} : tensor<2x24xf32>
// CHECK: nn.slice {{.*}} : tensor<2x24xf32>
// CHECK: nn.dot_general {{.*}} -> tensor<2x24xf32>
// CHECK: nn.slice {{.*}} : tensor<2x4x6xf32>
// CHECK: nn.slice {{.*}} : tensor<2x4x6xf32>
// CHECK: nn.slice {{.*}} : tensor<2x8xf32>
// CHECK: nn.slice {{.*}} : tensor<2x8xf32>
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8x24xf32> {nn.kind = "parameter", nn.source = #nn.file<"w", 0, 768, f32>},
    %w1: tensor<8x24xf32> {nn.kind = "parameter", nn.source = #nn.file<"w", 768, 768, f32>}) -> (tensor<2x24xf32>, tensor<2x12xf32>, tensor<2x4x3xf32>, tensor<2x4xf32>) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x24xf32> -> tensor<2x24xf32>
  %1 = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x12xf32>
  %2 = nn.slice %0 starts = [0, 12] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x12xf32>
  %3 = arith.mulf %1, %2 : tensor<2x12xf32>
  %4 = nn.dot_general %x, %w1 contract = [1] x [0] : tensor<2x8xf32>, tensor<8x24xf32> -> tensor<2x24xf32>
  %5 = nn.reshape %4 : tensor<2x24xf32> -> tensor<2x4x6xf32>
  %6 = nn.slice %5 starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x4x6xf32> -> tensor<2x4x3xf32>
  %7 = nn.slice %5 starts = [0, 0, 3] strides = [1, 1, 1] : tensor<2x4x6xf32> -> tensor<2x4x3xf32>
  %8 = arith.mulf %6, %7 : tensor<2x4x3xf32>
  %9 = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<2x8xf32> -> tensor<2x4xf32>
  %10 = nn.slice %x starts = [0, 4] strides = [1, 1] : tensor<2x8xf32> -> tensor<2x4xf32>
  %11 = arith.mulf %9, %10 : tensor<2x4xf32>
  return %0, %3, %8, %11 : tensor<2x24xf32>, tensor<2x12xf32>, tensor<2x4x3xf32>, tensor<2x4xf32>
}
