// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @layer_norm_c1(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected 'axis' to be a dimension of a tensor of rank 2, found 2}}
  %0 = nn.layer_norm %x axis = 2 epsilon = 1.0e-05 : tensor<2x8xf32>
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<2x8xf32>, %g: tensor<2xf32>) {
  // expected-error@+1 {{'nn.layer_norm' op expected scale of type 'tensor<8xf32>', found 'tensor<2xf32>'}}
  %0 = nn.layer_norm %x scale(%g : tensor<2xf32>) axis = 1 epsilon = 1.0e-05 : tensor<2x8xf32>
  return
}

// -----

func.func @layer_norm_c2_bias(%x: tensor<2x8xf32>, %g: tensor<8xbf16>) {
  // expected-error@+1 {{'nn.layer_norm' op expected bias of type 'tensor<8xf32>', found 'tensor<8xbf16>'}}
  %0 = nn.layer_norm %x bias(%g : tensor<8xbf16>) axis = 1 epsilon = 1.0e-05 : tensor<2x8xf32>
  return
}
