// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @cross_entropy_c1(%x: tensor<2x9xf32>, %t: tensor<3xi64>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected targets of shape [2], found [3]}}
  %0 = nn.cross_entropy %x, %t : tensor<2x9xf32>, tensor<3xi64> -> tensor<2xf32>
  return
}

// -----

func.func @cross_entropy_c1_result(%x: tensor<2x9xbf16>, %t: tensor<2xi64>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected a result of type 'tensor<2xf32>', found 'tensor<2xbf16>'}}
  %0 = nn.cross_entropy %x, %t : tensor<2x9xbf16>, tensor<2xi64> -> tensor<2xbf16>
  return
}

// -----

func.func @cross_entropy_c2(%x: tensor<2x9xf32>, %t: tensor<2xi64>) {
  // expected-error@+1 {{'nn.cross_entropy' op expected 'label_smoothing' from 0 to 1, found 1.500000e+00}}
  %0 = nn.cross_entropy %x, %t label_smoothing = 1.5 : tensor<2x9xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}
