// RUN: partita-opt %s --split-input-file --partita-merge-projections | FileCheck %s

// Merges projections of different widths, in a layer function.
// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[Q:.*]]: tensor<4x6xf32>, %[[K:.*]]: tensor<4x2xf32>)
// CHECK-NEXT: %[[W:.*]] = nn.concat %[[Q]], %[[K]] axis = 1 : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.dot_general %[[X]], %[[W]] contract = [2] x [0] : tensor<2x3x4xf32>, tensor<4x8xf32> -> tensor<2x3x8xf32>
// CHECK-NEXT: %[[A:.*]] = nn.slice %[[Y]] starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x6xf32>
// CHECK-NEXT: %[[B:.*]] = nn.slice %[[Y]] starts = [0, 0, 6] strides = [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x2xf32>
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @main(%x: tensor<2x3x4xf32> {nn.kind = "input", nn.name = "x"},
                %q: tensor<4x6xf32> {nn.kind = "parameter", nn.name = "q", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %k: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "k", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> (tensor<2x3x6xf32>, tensor<2x3x2xf32>) {
  %0:2 = call @layer(%x, %q, %k) : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<4x2xf32>) -> (tensor<2x3x6xf32>, tensor<2x3x2xf32>)
  return %0#0, %0#1 : tensor<2x3x6xf32>, tensor<2x3x2xf32>
}
func.func private @layer(%x: tensor<2x3x4xf32>, %q: tensor<4x6xf32>, %k: tensor<4x2xf32>) -> (tensor<2x3x6xf32>, tensor<2x3x2xf32>) {
  %a = nn.dot_general %x, %q contract = [2] x [0] : tensor<2x3x4xf32>, tensor<4x6xf32> -> tensor<2x3x6xf32>
  %b = nn.dot_general %x, %k contract = [2] x [0] : tensor<2x3x4xf32>, tensor<4x2xf32> -> tensor<2x3x2xf32>
  return %a, %b : tensor<2x3x6xf32>, tensor<2x3x2xf32>
}

// -----

// Not merged: %w is an input, so each run would concatenate; %k is stored in another order than %q.
// CHECK-LABEL: func @main
// CHECK-NOT: nn.concat
func.func @main(%x: tensor<3x4xf32> {nn.kind = "input", nn.name = "x"}, %w: tensor<4x4xf32> {nn.kind = "input", nn.name = "w"},
                %q: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "q", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %k: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "k", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %a = nn.dot_general %x, %q contract = [1] x [0] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
  %b = nn.dot_general %x, %k contract = [1] x [1] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
  %c = nn.dot_general %x, %w contract = [1] x [0] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
  return %a, %b, %c : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// Not merged: concatenating packed weights would unpack them.
// CHECK-LABEL: func @main
// CHECK-NOT: nn.concat
// CHECK: return
func.func @main(%x: tensor<3x8xf32> {nn.kind = "input", nn.name = "x"},
                %q: tensor<4x2x2xi8> {nn.kind = "buffer", nn.name = "q", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %k: tensor<4x2x2xi8> {nn.kind = "buffer", nn.name = "k", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %s: tensor<4x2xf32> {nn.kind = "buffer", nn.name = "s", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = nn.dequantize %q scale(%s) : (tensor<4x2x2xi8>, tensor<4x2xf32>) -> tensor<4x2x4xf32>
  %1 = nn.reshape %0 : tensor<4x2x4xf32> -> tensor<4x8xf32>
  %2 = nn.dequantize %k scale(%s) : (tensor<4x2x2xi8>, tensor<4x2xf32>) -> tensor<4x2x4xf32>
  %3 = nn.reshape %2 : tensor<4x2x4xf32> -> tensor<4x8xf32>
  %a = nn.dot_general %x, %1 contract = [1] x [1] : tensor<3x8xf32>, tensor<4x8xf32> -> tensor<3x4xf32>
  %b = nn.dot_general %x, %3 contract = [1] x [1] : tensor<3x8xf32>, tensor<4x8xf32> -> tensor<3x4xf32>
  return %a, %b : tensor<3x4xf32>, tensor<3x4xf32>
}
