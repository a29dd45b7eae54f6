// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @concat_c1() {
  // expected-error@+1 {{'nn.concat' op expected at least one input, found none}}
  %0 = nn.concat axis = 0 : () -> tensor<2xf32>
  return
}

// -----

func.func @concat_c1_axis(%x: tensor<2xf32>) {
  // expected-error@+1 {{'nn.concat' op expected 'axis' to be a dimension of a tensor of rank 1, found 1}}
  %0 = nn.concat %x axis = 1 : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @concat_c2(%x: tensor<2x1xf32>, %y: tensor<3x3xf32>) {
  // expected-error@+1 {{'nn.concat' op expected input 1 of type 'tensor<2x3xf32>', found 'tensor<3x3xf32>'}}
  %0 = nn.concat %x, %y axis = 1 : (tensor<2x1xf32>, tensor<3x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @concat_c2_sum(%x: tensor<2x1xf32>, %y: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.concat' op expected a result whose size 1 is 4, the sum of the inputs', found 5}}
  %0 = nn.concat %x, %y axis = 1 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}
