// RUN: partita-opt %s --partita-split-batch=microbatches=2 --split-input-file --verify-diagnostics | FileCheck %s

// Splits every dimension that carries B, also in functions, in constants and in
// flattened dimensions.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %{{.*}}: tensor<2x3x6xf32>
// CHECK-SAME: -> tensor<6x6xf32>
// CHECK: %[[C:.*]] = arith.constant {{.*}}dense<2.000000e+00> : tensor<6x6xf32>
// CHECK: nn.reshape {{.*}} : tensor<2x3x6xf32> -> tensor<6x6xf32>
func.func private @layer(%x: tensor<4x3x6xf32> {nn.dims = ["B", "L", "E"]}) -> tensor<12x6xf32> {
  %two = arith.constant {nn.dims = [["B*L", "E"]]} dense<2.0> : tensor<12x6xf32>
  %0 = nn.reshape %x {nn.dims = [["B*L", "E"]]} : tensor<4x3x6xf32> -> tensor<12x6xf32>
  %1 = arith.mulf %0, %two {nn.dims = [["B*L", "E"]]} : tensor<12x6xf32>
  return %1 : tensor<12x6xf32>
}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<2x3x6xf32> {nn.dims = ["B", "L", "E"]
// CHECK-SAME: tensor<6x6xf32> {nn.dims = ["E", "E'"]
// CHECK-SAME: -> tensor<6x6xf32>
// CHECK: call @layer(%{{.*}}) {{.*}} : (tensor<2x3x6xf32>) -> tensor<6x6xf32>
// CHECK: nn.dot_general {{.*}} : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
func.func @main(%x: tensor<4x3x6xf32> {nn.dims = ["B", "L", "E"], nn.kind = "input", nn.name = "x"},
                %w: tensor<6x6xf32> {nn.dims = ["E", "E'"], nn.kind = "parameter", nn.name = "w"}) -> tensor<12x6xf32> {
  %0 = call @layer(%x) {nn.dims = [["B*L", "E"]]} : (tensor<4x3x6xf32>) -> tensor<12x6xf32>
  %1 = nn.dot_general %0, %w contract = [1] x [0] {nn.dims = [["B*L", "E"]]} : tensor<12x6xf32>, tensor<6x6xf32> -> tensor<12x6xf32>
  return %1 : tensor<12x6xf32>
}

// -----

// expected-error @below {{microbatches: expected input 'x' to have a batch that divides by 2, found 3; choose another number of microbatches, or import the model with another batch}}
func.func @main(%x: tensor<3x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"}) -> tensor<3x6xf32> {
  return %x : tensor<3x6xf32>
}

// -----

// expected-error @below {{microbatches: expected input 'x' to have the batch first, found dimension 1 to be B}}
func.func @main(%x: tensor<3x4xf32> {nn.dims = ["L", "B"], nn.kind = "input", nn.name = "x"}) -> tensor<3x4xf32> {
  return %x : tensor<3x4xf32>
}

// -----

// expected-error @below {{microbatches: expected inputs with a batch, found no dimension named B}}
func.func @main(%x: tensor<4x6xf32> {nn.dims = ["4", "E"], nn.kind = "input", nn.name = "x"}) -> tensor<4x6xf32> {
  return %x : tensor<4x6xf32>
}

// -----

// expected-error @below {{microbatches: expected parameter 'p' not to have the batch as a dimension, found B as dimension 0}}
func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %p: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "parameter", nn.name = "p"}) -> tensor<4x6xf32> {
  %0 = arith.addf %x, %p {nn.dims = [["B", "E"]]} : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"}) -> tensor<2x6xf32> {
  // expected-error @below {{microbatches: expected all rows of a batch to be used alike, found rows picked from dimension 0}}
  %0 = nn.slice %x starts = [1, 0] strides = [1, 1] {nn.dims = [["2", "E"]]} : tensor<4x6xf32> -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {nn.dims = ["B"], nn.kind = "input", nn.name = "x"}) -> tensor<4xf32> {
  // expected-error @below {{microbatches: expected values that differ between the rows of a batch to be inputs, found a constant}}
  %0 = arith.constant {nn.dims = [["B"]]} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = arith.addf %x, %0 {nn.dims = [["B"]]} : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// The loss may sum over rows of the batch; other values may not.
// CHECK-LABEL: func.func @main(
// CHECK: nn.reduce sum {{.*}} : tensor<2xf32> -> tensor<f32>
func.func @main(%x: tensor<4xf32> {nn.dims = ["B"], nn.kind = "input", nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %c = arith.constant {nn.dims = [[]]} dense<4.0> : tensor<f32>
  %0 = nn.reduce sum %x dims = [0] {nn.dims = [[]]} : tensor<4xf32> -> tensor<f32>
  %1 = arith.divf %0, %c {nn.dims = [[]]} : tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"}) -> tensor<4x6xf32> {
  // expected-error @below {{microbatches: expected each row of the batch to be computed by itself, or by a batch norm, found one that depends on others}}
  %0 = nn.reduce sum %x dims = [0] {nn.dims = [["E"]]} : tensor<4x6xf32> -> tensor<6xf32>
  %1 = nn.broadcast %0 dims = [1] {nn.dims = [["B", "E"]]} : tensor<6xf32> -> tensor<4x6xf32>
  %2 = arith.subf %x, %1 {nn.dims = [["B", "E"]]} : tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// -----

func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"}) -> tensor<4x6xf32> {
  // expected-error @below {{microbatches: expected each row of the batch to be computed by itself}}
  %0 = nn.softmax %x axis = 0 {nn.dims = [["B", "E"]]} : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// The range of a copy of the bits is a statistic of the microbatch, if it moves
// a range that the next one reads.
// CHECK-LABEL: func.func private @layer(
// CHECK: nn.reduce max {{.*}} : tensor<2x6xf32> -> tensor<f32>
func.func private @layer(%x: tensor<4x6xf32> {nn.dims = ["B", "E"]}, %high: tensor<f32> {nn.dims = []}) -> (tensor<4x6xf32>, tensor<f32>) {
  %share = arith.constant {nn.dims = [[]]} dense<0.5> : tensor<f32>
  %0 = arith.bitcast %x {nn.dims = [["B", "E"]]} : tensor<4x6xf32> to tensor<4x6xi32>
  %1 = arith.bitcast %0 {nn.dims = [["B", "E"]]} : tensor<4x6xi32> to tensor<4x6xf32>
  %2 = nn.reduce max %1 dims = [0, 1] {nn.dims = [[]]} : tensor<4x6xf32> -> tensor<f32>
  %3 = arith.subf %2, %high {nn.dims = [[]]} : tensor<f32>
  %4 = arith.mulf %3, %share {nn.dims = [[]]} : tensor<f32>
  %5 = arith.addf %high, %4 {nn.dims = [[]]} : tensor<f32>
  %6 = nn.broadcast %5 dims = [] {nn.dims = [["B", "E"]]} : tensor<f32> -> tensor<4x6xf32>
  return %6, %5 : tensor<4x6xf32>, tensor<f32>
}
func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %high: tensor<f32> {nn.dims = [], nn.kind = "buffer", nn.name = "high"}) -> (tensor<4x6xf32>, tensor<f32> {nn.updates = "high"}) {
  %0:2 = call @layer(%x, %high) {nn.dims = [["B", "E"], []]} : (tensor<4x6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<f32>
}

// -----

// A copy of bits whose greatest number scales the rows themselves.
func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"}) -> (tensor<4x6xf32>) {
  %0 = arith.bitcast %x {nn.dims = [["B", "E"]]} : tensor<4x6xf32> to tensor<4x6xi32>
  %1 = arith.bitcast %0 {nn.dims = [["B", "E"]]} : tensor<4x6xi32> to tensor<4x6xf32>
  // expected-error @below {{microbatches: expected each row of the batch to be computed by itself}}
  %2 = nn.reduce max %1 dims = [0, 1] {nn.dims = [[]]} : tensor<4x6xf32> -> tensor<f32>
  %3 = nn.broadcast %2 dims = [] {nn.dims = [["B", "E"]]} : tensor<f32> -> tensor<4x6xf32>
  %4 = arith.divf %x, %3 {nn.dims = [["B", "E"]]} : tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
}

// -----

// One that moves a number which no buffer keeps.
func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %high: tensor<f32> {nn.dims = [], nn.kind = "input", nn.name = "high"}) -> (tensor<4x6xf32>, tensor<f32>) {
  %0 = arith.bitcast %x {nn.dims = [["B", "E"]]} : tensor<4x6xf32> to tensor<4x6xi32>
  %1 = arith.bitcast %0 {nn.dims = [["B", "E"]]} : tensor<4x6xi32> to tensor<4x6xf32>
  // expected-error @below {{microbatches: expected each row of the batch to be computed by itself}}
  %2 = nn.reduce max %1 dims = [0, 1] {nn.dims = [[]]} : tensor<4x6xf32> -> tensor<f32>
  %3 = arith.subf %2, %high {nn.dims = [[]]} : tensor<f32>
  %4 = arith.addf %high, %3 {nn.dims = [[]]} : tensor<f32>
  %5 = nn.broadcast %4 dims = [] {nn.dims = [["B", "E"]]} : tensor<f32> -> tensor<4x6xf32>
  return %5, %4 : tensor<4x6xf32>, tensor<f32>
}
