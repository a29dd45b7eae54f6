// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @scatter_c1(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.scatter' op expected 'axes' to be distinct dimensions from 0 to 1, found [-1]}}
  %0 = nn.scatter %x[%i], %u axes = [-1] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c2(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.scatter' op expected indices whose last size is the number of axes, 2, found 1}}
  %0 = nn.scatter %x[%i], %u axes = [0, 1] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c3(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.scatter' op expected updates of type 'tensor<3x9xf32>', found 'tensor<3x4xf32>'}}
  %0 = nn.scatter %x[%i], %u axes = [1] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x4xf32>
  return
}

// -----

func.func @scatter_c3_result(%x: tensor<9x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.scatter' op expected a result of type 'tensor<9x4xf32>', found 'tensor<9x5xf32>'}}
  %0 = nn.scatter %x[%i], %u axes = [0] kind = add : tensor<9x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<9x5xf32>
  return
}
