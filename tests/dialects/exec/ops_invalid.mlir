// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @gemm_c1(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected 4 positive sizes: batch, m, n, k}}
  %0 = exec.gemm %x, %w sizes = [2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c2(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected 4 elements of bias, found 3}}
  %0 = exec.gemm %x, %w bias(%b : tensor<3xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c3(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{rhs_strides reach outside rhs}}
  %0 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 5, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @conv_c1(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) -> tensor<1x4x6xf32> {
  // expected-error@+1 {{expected 1 entries, one per spatial dimension, found 2}}
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return %0 : tensor<1x4x6xf32>
}

// -----

func.func @view_c1(%x: tensor<2x3xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{expected the same number and type of elements on both sides}}
  %0 = exec.view %x : tensor<2x3xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func private @k(%x: tensor<2xf32>) -> tensor<2xf32>
func.func @launch_c1(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{operand and result types differ from those of @k}}
  %0 = exec.launch @k(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// expected-error@+1 {{unknown attribute 'exec.colour'}}
func.func @unknown_attribute() attributes {exec.colour = 3} {
  return
}
