// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @gather_c1(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'nn.gather' op expected 'axes' to be distinct dimensions from 0 to 1, found [2]}}
  %0 = nn.gather %x[%i] axes = [2] : tensor<9x4xf32>, tensor<3x1xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @gather_c1_batch(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'nn.gather' op expected 'axes' to be distinct dimensions from 1 to 1, found [0]}}
  %0 = nn.gather %x[%i] axes = [0] batch_dims = 1 : tensor<9x4xf32>, tensor<3x1xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<9x4xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{'nn.gather' op expected indices of rank 1 (batch_dims + 1) or more and an input of rank 0 or more, found ranks 0 and 2}}
  %0 = nn.gather %x[%i] axes = [0] : tensor<9x4xf32>, tensor<i64> -> tensor<4xf32>
  return
}

// -----

func.func @gather_c2_last(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'nn.gather' op expected indices whose last size is the number of axes, 2, found 1}}
  %0 = nn.gather %x[%i] axes = [0, 1] : tensor<9x4xf32>, tensor<3x1xi64> -> tensor<3xf32>
  return
}

// -----

func.func @gather_c2_batch(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'nn.gather' op expected batch dimensions of indices of shape [9], found [3]}}
  %0 = nn.gather %x[%i] axes = [1] batch_dims = 1 : tensor<9x4xf32>, tensor<3x1xi64> -> tensor<9xf32>
  return
}

// -----

func.func @gather_c3(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'nn.gather' op expected a result of type 'tensor<3x4xf32>', found 'tensor<3xf32>'}}
  %0 = nn.gather %x[%i] axes = [0] : tensor<9x4xf32>, tensor<3x1xi64> -> tensor<3xf32>
  return
}
