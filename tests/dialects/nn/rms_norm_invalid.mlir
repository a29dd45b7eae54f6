// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @rms_norm_c1(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.rms_norm' op expected 'axis' to be a dimension of a tensor of rank 2, found -1}}
  %0 = nn.rms_norm %x axis = -1 epsilon = 1.0e-05 : tensor<2x8xf32>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<2x8xf32>, %g: tensor<2xf32>) {
  // expected-error@+1 {{'nn.rms_norm' op expected scale of type 'tensor<8xf32>', found 'tensor<2xf32>'}}
  %0 = nn.rms_norm %x scale(%g : tensor<2xf32>) axis = 1 epsilon = 1.0e-05 : tensor<2x8xf32>
  return
}
