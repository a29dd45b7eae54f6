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

func.func @gemm_c4_factors(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected lhs of f32 or i8 and rhs of i8 with a scale, found 'tensor<2x3xf32>' and 'tensor<3x4xf32>'}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c4_unsigned(%x: tensor<2x3xf32>, %w: tensor<3x4xi8>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected lhs of i8 with lhs_unsigned, found 'tensor<2x3xf32>'}}
  %0 = exec.gemm %x, %w lhs_unsigned scale(%s : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xi8>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c4_scale(%x: tensor<2x3xf32>, %w: tensor<3x4xi8>, %s: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected 4 elements of scale, found 3}}
  %0 = exec.gemm %x, %w scale(%s : tensor<3xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xi8>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c4_activation(%x: tensor<2x3xf32>, %w: tensor<3x4xi8>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected no residual and no activation with a scale}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = relu : (tensor<2x3xf32>, tensor<3x4xi8>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c4_types(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>, %s: tensor<4xf32>) -> tensor<2x4xbf16> {
  // expected-error@+1 {{expected a result, a scale and a bias of f32, found 'tensor<2x4xbf16>'}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4xf32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// -----

func.func @gemm_c4_no_scale(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected a scale with lhs_unsigned, found none}}
  %0 = exec.gemm %x, %w lhs_unsigned sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c6_no_scale(%x: tensor<3x8xf32>, %w: tensor<8x4xf32>) -> tensor<3x4xf32> {
  // expected-error@+1 {{expected a scale with a group, found none}}
  %0 = exec.gemm %x, %w sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 4, 1] group = 4 : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @gemm_c6_odd(%x: tensor<3x8xf32>, %w: tensor<4x2x2xi8>, %s: tensor<4x2xf32>) -> tensor<3x4xf32> {
  // expected-error@+1 {{expected an even group, found 3}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4x2xf32>) sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 1, 8] group = 3 : (tensor<3x8xf32>, tensor<4x2x2xi8>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @gemm_c6_lhs(%x: tensor<3x8xi8>, %w: tensor<4x2x2xi8>, %s: tensor<4x2xf32>) -> tensor<3x4xf32> {
  // expected-error@+1 {{expected lhs of f32 with a group, found 'tensor<3x8xi8>'}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4x2xf32>) sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 1, 8] group = 4 : (tensor<3x8xi8>, tensor<4x2x2xi8>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @gemm_c6_scale(%x: tensor<3x8xf32>, %w: tensor<4x2x2xi8>, %s: tensor<4xf32>) -> tensor<3x4xf32> {
  // expected-error@+1 {{expected one scale and zero per group of 4 of 32 numbers, found 'tensor<4xf32>'}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4xf32>) sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 1, 8] group = 4 : (tensor<3x8xf32>, tensor<4x2x2xi8>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @gemm_c6_zero(%x: tensor<3x8xf32>, %w: tensor<4x2x2xi8>, %s: tensor<4x2xf32>) -> tensor<3x4xf32> {
  // expected-error@+1 {{expected zero of i8, found 'tensor<4x2xf32>'}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4x2xf32>) zero(%s : tensor<4x2xf32>) sizes = [1, 3, 4, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 1, 8] group = 4 : (tensor<3x8xf32>, tensor<4x2x2xi8>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @gemm_c6_zero_without_group(%x: tensor<2x3xf32>, %w: tensor<3x4xi8>, %s: tensor<4xf32>, %z: tensor<4xi8>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected a group with zero, found none}}
  %0 = exec.gemm %x, %w scale(%s : tensor<4xf32>) zero(%z : tensor<4xi8>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xf32>, tensor<3x4xi8>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @gemm_c5_bias(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>, %b: tensor<4xi32>) -> tensor<2x4xi32> {
  // expected-error@+1 {{expected no bias, residual or activation with a result of i32}}
  %0 = exec.gemm %x, %w bias(%b : tensor<4xi32>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

func.func @gemm_c5_operands(%x: tensor<2x3xi32>, %w: tensor<3x4xi8>) -> tensor<2x4xi32> {
  // expected-error@+1 {{expected operands of 'i8', found 'tensor<2x3xi32>'}}
  %0 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xi32>, tensor<3x4xi8>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

func.func @gemm_c6_both(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %u: tensor<2x4xbf16>) {
  // expected-error@+1 {{expected a pre-activation that is kept or given, found both}}
  %0:2 = exec.gemm %x, %w preactivation(%u : tensor<2x4xbf16>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = gelu_tanh : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> kept tensor<2x4xbf16>
  return
}

// -----

func.func @gemm_c6_activation(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>) {
  // expected-error@+1 {{expected the activation gelu_tanh with a pre-activation}}
  %0:2 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = relu : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> kept tensor<2x4xbf16>
  return
}

// -----

func.func @gemm_c6_residual(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %r: tensor<2x4xbf16>) {
  // expected-error@+1 {{expected no scale and residual with a pre-activation that is kept}}
  %0:2 = exec.gemm %x, %w residual(%r : tensor<2x4xbf16>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = gelu_tanh : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> kept tensor<2x4xbf16>
  return
}

// -----

func.func @gemm_c6_bias(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %u: tensor<2x4xbf16>, %b: tensor<4xbf16>) {
  // expected-error@+1 {{expected no scale, bias and residual with a pre-activation that is given}}
  %0 = exec.gemm %x, %w bias(%b : tensor<4xbf16>) preactivation(%u : tensor<2x4xbf16>) sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = gelu_tanh : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16>
  return
}

// -----

func.func @gemm_c6_type(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>) {
  // expected-error@+1 {{expected a pre-activation of the result's type 'tensor<2x4xbf16>', found 'tensor<8xbf16>'}}
  %0:2 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = gelu_tanh : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> kept tensor<8xbf16>
  return
}

// -----

func.func @gemm_c7_both(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>) {
  // expected-error@+1 {{expected sums of lhs or rhs, found both}}
  %0:3 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> lhs_sums tensor<2xbf16> rhs_sums tensor<4xbf16>
  return
}

// -----

func.func @gemm_c7_activation(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>) {
  // expected-error@+1 {{expected a batch of 1 without scale, bias, residual and activation beside sums}}
  %0:2 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] activation = relu : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> rhs_sums tensor<4xbf16>
  return
}

// -----

func.func @gemm_c7_count(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>) {
  // expected-error@+1 {{expected sums of 2 floats of the result's type, found 'tensor<4xbf16>'}}
  %0:2 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 4, 1] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16> lhs_sums tensor<4xbf16>
  return
}

// -----

func.func @gemm_c3(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{rhs_strides reach outside rhs}}
  %0 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [0, 3, 1] rhs_strides = [0, 5, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @grouped_gemm_c1_flags(%x: tensor<6x4xf32>, %i: tensor<6xi64>, %g: tensor<6x5xf32>) {
  // expected-error@+1 {{expected weight_grad without transposed}}
  %0 = exec.grouped_gemm %x[%i], %g transposed weight_grad : (tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32>) -> tensor<3x5x4xf32>
  return
}

// -----

func.func @grouped_gemm_c1_ranks(%x: tensor<6x4xf32>, %i: tensor<6xi64>, %w: tensor<5x4xf32>) {
  // expected-error@+1 {{expected rows of rank 2, indices of rank 1 and matrices of rank 3, found 'tensor<6x4xf32>', 'tensor<6xi64>', 'tensor<5x4xf32>' and 'tensor<6x5xf32>'}}
  %0 = exec.grouped_gemm %x[%i], %w : (tensor<6x4xf32>, tensor<6xi64>, tensor<5x4xf32>) -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_gemm_c1_empty(%x: tensor<6x4xf32>, %i: tensor<6xi64>, %w: tensor<0x5x4xf32>) {
  // expected-error@+1 {{expected no sizes of 0, found 'tensor<0x5x4xf32>'}}
  %0 = exec.grouped_gemm %x[%i], %w : (tensor<6x4xf32>, tensor<6xi64>, tensor<0x5x4xf32>) -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_gemm_c1_rows(%x: tensor<4x4xf32>, %i: tensor<6xi64>, %w: tensor<3x5x4xf32>) {
  // expected-error@+1 {{expected 6 rows, as many as indices, and lhs with a divisor of that, found 6 and 4}}
  %0 = exec.grouped_gemm %x[%i], %w : (tensor<4x4xf32>, tensor<6xi64>, tensor<3x5x4xf32>) -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_gemm_c1_sizes(%x: tensor<6x4xf32>, %i: tensor<6xi64>, %w: tensor<3x4x5xf32>) {
  // expected-error@+1 {{expected rows of 5 and 4 elements, as the matrices have, found 4 and 5}}
  %0 = exec.grouped_gemm %x[%i], %w : (tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32>) -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_gemm_c2_ids(%x: tensor<6x4xf32>, %i: tensor<6xi16>, %w: tensor<3x5x4xf32>) {
  // expected-error@+1 {{expected indices of i32 or i64, found 'i16'}}
  %0 = exec.grouped_gemm %x[%i], %w : (tensor<6x4xf32>, tensor<6xi16>, tensor<3x5x4xf32>) -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_gemm_c2_floats(%x: tensor<6x4xf32>, %i: tensor<6xi32>, %w: tensor<3x5x4xbf16>) {
  // expected-error@+1 {{expected operands of 'f32', found 'tensor<3x5x4xbf16>'}}
  %0 = exec.grouped_gemm %x[%i], %w : (tensor<6x4xf32>, tensor<6xi32>, tensor<3x5x4xbf16>) -> tensor<6x5xf32>
  return
}

// -----

func.func @conv_c1(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) -> tensor<1x4x6xf32> {
  // expected-error@+1 {{expected 1 entries, one per spatial dimension, found 2}}
  %0 = exec.conv %x, %w strides = [1, 1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return %0 : tensor<1x4x6xf32>
}

// -----

func.func @conv_c3(%x: tensor<1x4x6xf32>, %w: tensor<4x2x3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expected a gradient without bias, residual, scale and activation}}
  %0 = exec.conv %x, %w bias(%b : tensor<4xf32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 direction = input_grad : (tensor<1x4x6xf32>, tensor<4x2x3xf32>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @conv_c4_residual(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{expected a residual and an activation with activates_sum}}
  %0 = exec.conv %x, %w strides = [1] dilations = [1] low = [0] high = [0] groups = 1 activation = relu activates_sum : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c4_activation(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>, %r: tensor<1x4x6xf32>) {
  // expected-error@+1 {{expected a residual and an activation with activates_sum}}
  %0 = exec.conv %x, %w residual(%r : tensor<1x4x6xf32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 activates_sum : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c5_types(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xi8>, %s: tensor<4xf32>) {
  // expected-error@+1 {{expected an input and a weight of i8 and a result of f32 or i8 with a scale, found 'tensor<1x2x8xf32>', 'tensor<4x2x3xi8>' and 'tensor<1x4x6xf32>'}}
  %0 = exec.conv %x, %w scale(%s : tensor<4xf32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xi8>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c5_scale(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %s: tensor<3xf32>) {
  // expected-error@+1 {{expected a scale and a bias of one f32 per output channel, found 'tensor<3xf32>'}}
  %0 = exec.conv %x, %w scale(%s : tensor<3xf32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xi8>, tensor<4x2x3xi8>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c5_zero(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %s: tensor<4xf32>, %z: tensor<1xf32>) {
  // expected-error@+1 {{expected a zero of one i32, found 'tensor<1xf32>'}}
  %0 = exec.conv %x, %w scale(%s : tensor<4xf32>) zero(%z : tensor<1xf32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xi8>, tensor<4x2x3xi8>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c5_without(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{expected a scale with zero, input_unsigned, result_scale, result_zero and result_unsigned}}
  %0 = exec.conv %x, %w input_unsigned strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c6_float(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %s: tensor<4xf32>) {
  // expected-error@+1 {{expected result_scale, result_zero and result_unsigned with a result of i8 only}}
  %0 = exec.conv %x, %w scale(%s : tensor<4xf32>) result_unsigned strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xi8>, tensor<4x2x3xi8>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @conv_c6_residual(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %s: tensor<4xf32>, %r: tensor<1x4x6xi8>) {
  // expected-error@+1 {{expected a result of i8 without a residual}}
  %0 = exec.conv %x, %w scale(%s : tensor<4xf32>) residual(%r : tensor<1x4x6xi8>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xi8>, tensor<4x2x3xi8>) -> tensor<1x4x6xi8>
  return
}

// -----

func.func @conv_c6_scale(%x: tensor<1x2x8xi8>, %w: tensor<4x2x3xi8>, %s: tensor<4xf32>, %z: tensor<i32>) {
  // expected-error@+1 {{expected a result_scale of one f32 and a result_zero of one i32 with a result of i8}}
  %0 = exec.conv %x, %w scale(%s : tensor<4xf32>) result_zero(%z : tensor<i32>) strides = [1] dilations = [1] low = [0] high = [0] groups = 1 : (tensor<1x2x8xi8>, tensor<4x2x3xi8>) -> tensor<1x4x6xi8>
  return
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

// -----

func.func @collective_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{'exec.collective' op expected axes as triples of an axis and two positive numbers}}
  %0 = exec.collective all_reduce %x axes = [0, 1] : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @collective_c1_source(%x: tensor<2xf32>) {
  // expected-error@+1 {{'exec.collective' op expected 'source_axes' in a permutation only, of 4 devices, found 2}}
  %0 = exec.collective permute %x axes = [0, 1, 4] {source_axes = array<i64: 0, 1, 2>} : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @collective_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{'exec.collective' op expected 'dim' to be a dimension, or -1 where the kind has none, found 0}}
  %0 = exec.collective all_reduce %x axes = [0, 1, 4] {dim = 0 : i64} : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @collective_c2_other(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{'exec.collective' op expected 'other_dim' to be another dimension, or -1 where the kind has none, found 0}}
  %0 = exec.collective all_to_all %x axes = [0, 1, 4] {dim = 0 : i64, other_dim = 0 : i64} : tensor<8x2xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @collective_c3(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'exec.collective' op expected types that differ in the sizes of 'dim' and 'other_dim' only, found 'tensor<2x3xf32>' and 'tensor<8x4xf32>'}}
  %0 = exec.collective all_gather %x axes = [0, 1, 4] {dim = 0 : i64} : tensor<2x3xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @collective_c4(%x: tensor<2xf32>) {
  // expected-error@+1 {{'exec.collective' op expected at most 4 blocks of 2 rows, found 9}}
  %0 = exec.collective all_gather %x axes = [0, 1, 4] {dim = 0 : i64} : tensor<2xf32> -> tensor<9xf32>
  return
}

// -----

func.func @collective_c4_exchange(%x: tensor<2xf32>) {
  // expected-error@+1 {{'exec.collective' op expected at most 4 blocks of 2 rows, found 9}}
  %0 = exec.collective exchange %x axes = [0, 1, 4] {dim = 0 : i64, size = 9 : i64, step = -1 : i64} : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @collective_c6(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'exec.collective' op expected 'to' in 'send_rows' and 'return_rows' only}}
  %0 = exec.collective send_rows %x axes = [0, 1, 4] {dim = 0 : i64} : tensor<4x6xf32> -> tensor<32x6xf32>
  return
}

// -----

func.func @collective_c6_rows(%x: tensor<4x6xf32>, %to: tensor<3x2xi64>) {
  // expected-error@+1 {{'exec.collective' op expected 'size' to be the 6 numbers of 'to', and one row of the input for each row of 'to', found 6, 'tensor<4x6xf32>' and 'tensor<32x6xf32>'}}
  %0 = exec.collective send_rows %x to %to : tensor<3x2xi64> axes = [0, 1, 4] {dim = 0 : i64, size = 6 : i64} : tensor<4x6xf32> -> tensor<32x6xf32>
  return
}

// -----

func.func @collective_c6_returned(%x: tensor<32x6xf32>, %to: tensor<4x2xi64>) {
  // expected-error@+1 {{'exec.collective' op expected 'size' to be the 8 numbers of 'to', and one row of the result for each number of 'to', found 7, 'tensor<32x6xf32>' and 'tensor<8x6xf32>'}}
  %0 = exec.collective return_rows %x to %to : tensor<4x2xi64> axes = [0, 1, 4] {dim = 0 : i64, size = 7 : i64} : tensor<32x6xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @collective_c6_type(%x: tensor<4x6xf32>, %to: tensor<4x2xi32>) {
  // expected-error@+1 {{'exec.collective' op expected tensors with two dimensions, 'to' of i64, and 'dim' 0}}
  %0 = exec.collective send_rows %x to %to : tensor<4x2xi32> axes = [0, 1, 4] {dim = 0 : i64, size = 8 : i64} : tensor<4x6xf32> -> tensor<32x6xf32>
  return
}

// -----

func.func @send_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{'exec.send' op expected axes as triples of an axis and two positive numbers}}
  exec.send %x axes = [0, 1] peer = 0 : tensor<2xf32>
  return
}

// -----

func.func @receive_c2() {
  // expected-error@+1 {{'exec.receive' op expected a 'peer' from 0 to 3, found 4}}
  %0 = exec.receive axes = [0, 1, 2, 1, 1, 2] peer = 4 : tensor<2xf32>
  return
}
