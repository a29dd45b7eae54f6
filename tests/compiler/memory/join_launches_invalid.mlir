// RUN: partita-opt %s --partita-join-launches --verify-diagnostics

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} { return %x : tensor<4xf32> }
func.func @unplanned(%p: tensor<4xf32> {nn.name = "p"}) -> (tensor<4xf32> {nn.updates = "p"}) {
  // expected-error@+1 {{expected memory to be planned, found no exec.offsets}}
  %0 = exec.launch @k(%p) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
