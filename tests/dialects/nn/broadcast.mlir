// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @broadcast
// CHECK: nn.broadcast %arg0 dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
func.func @broadcast(%x: tensor<4xf32>) {
  %y = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  return
}

// CANON-LABEL: @to_its_own_type
// CANON-NEXT: return %arg0
func.func @to_its_own_type(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.broadcast %x dims = [0, 1] : tensor<2x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CANON-LABEL: @twice
// CANON-NEXT: nn.broadcast %arg0 dims = [2] : tensor<4xf32> -> tensor<3x2x4xf32>
// CANON-NEXT: return
func.func @twice(%x: tensor<4xf32>) -> tensor<3x2x4xf32> {
  %0 = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %1 = nn.broadcast %0 dims = [1, 2] : tensor<2x4xf32> -> tensor<3x2x4xf32>
  return %1 : tensor<3x2x4xf32>
}

// CANON-LABEL: @of_inserted_ones
// CANON-NEXT: nn.broadcast %arg0 dims = [1] : tensor<4xf32> -> tensor<2x4x3xf32>
// CANON-NEXT: return
func.func @of_inserted_ones(%x: tensor<4xf32>) -> tensor<2x4x3xf32> {
  %0 = nn.reshape %x : tensor<4xf32> -> tensor<1x4x1xf32>
  %1 = nn.broadcast %0 dims = [0, 1, 2] : tensor<1x4x1xf32> -> tensor<2x4x3xf32>
  return %1 : tensor<2x4x3xf32>
}

// CANON-LABEL: @of_a_real_reshape
// CANON-NEXT: nn.reshape
// CANON-NEXT: nn.broadcast
func.func @of_a_real_reshape(%x: tensor<4xf32>) -> tensor<3x2x2xf32> {
  %0 = nn.reshape %x : tensor<4xf32> -> tensor<2x2xf32>
  %1 = nn.broadcast %0 dims = [1, 2] : tensor<2x2xf32> -> tensor<3x2x2xf32>
  return %1 : tensor<3x2x2xf32>
}

// CANON-LABEL: @that_repeats_nothing
// CANON-NEXT: nn.reshape %arg0 : tensor<4xf32> -> tensor<1x4xf32>
func.func @that_repeats_nothing(%x: tensor<4xf32>) -> tensor<1x4xf32> {
  %0 = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// CANON-LABEL: @of_a_splat
// CANON-NEXT: arith.constant dense<2.000000e+00> : tensor<1000x1000xf32>
// CANON-NEXT: return
func.func @of_a_splat() -> tensor<1000x1000xf32> {
  %0 = arith.constant dense<2.0> : tensor<f32>
  %1 = nn.broadcast %0 dims = [] : tensor<f32> -> tensor<1000x1000xf32>
  return %1 : tensor<1000x1000xf32>
}

// A broadcast of a constant that is not a splat is not folded.
// CANON-LABEL: @of_a_constant
// CANON: nn.broadcast
func.func @of_a_constant() -> tensor<9x2xf32> {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = nn.broadcast %0 dims = [1] : tensor<2xf32> -> tensor<9x2xf32>
  return %1 : tensor<9x2xf32>
}
