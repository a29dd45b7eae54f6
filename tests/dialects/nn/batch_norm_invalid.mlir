// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @batch_norm_c1(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>) {
  // expected-error@+1 {{'nn.batch_norm' op expected 'feature' to be a dimension of a tensor of rank 3, found 3}}
  %0 = nn.batch_norm %x, %g, %g, %g, %g feature = 3 epsilon = 1.0e-05 : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @batch_norm_c1_vector(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>) {
  // expected-error@+1 {{'nn.batch_norm' op expected scale of type 'tensor<4xf32>', found 'tensor<3xf32>'}}
  %0 = nn.batch_norm %x, %g, %g, %g, %g feature = 2 epsilon = 1.0e-05 : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @batch_norm_c2(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>) {
  // expected-error@+1 {{'nn.batch_norm' op expected a result of type 'tensor<2x3x4xf32>', found 'tensor<2x3xf32>'}}
  %0 = nn.batch_norm %x, %g, %g, %g, %g feature = 1 epsilon = 1.0e-05 : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @batch_norm_c2_training(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>) {
  // expected-error@+1 {{'nn.batch_norm' op expected 2 running statistics as results with 'training', found 0}}
  %0 = nn.batch_norm %x, %g, %g, %g, %g feature = 1 epsilon = 1.0e-05 training : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @batch_norm_c2_statistics(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>) {
  // expected-error@+1 {{'nn.batch_norm' op expected a running statistic of type 'tensor<3xf32>', found 'tensor<4xf32>'}}
  %0:3 = nn.batch_norm %x, %g, %g, %g, %g feature = 1 epsilon = 1.0e-05 training : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<4xf32>)
  return
}
