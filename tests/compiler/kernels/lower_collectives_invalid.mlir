// RUN: partita-opt %s --partita-lower-collectives --verify-diagnostics

dist.mesh @mesh <["a"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.reshard' op expected a partitioned program, without reshards}}
  %0 = dist.reshard %x from <[{"a"}]> to <[{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
