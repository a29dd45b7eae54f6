// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @iota_c1() {
  // expected-error@+1 {{'nn.iota' op expected 'dim' to be a dimension of a tensor of rank 1, found 1}}
  %0 = nn.iota dim = 1 : tensor<4xi64>
  return
}
