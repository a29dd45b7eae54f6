// RUN: partita-opt %s --partita-copy-returned --split-input-file --verify-diagnostics

// expected-error@+1 {{expected stored tensors that do not change places, found that each of several becomes another}}
func.func @swap(%p: tensor<4xf32> {nn.name = "p"}, %q: tensor<4xf32> {nn.name = "q"})
    -> (tensor<4xf32> {nn.updates = "p"}, tensor<4xf32> {nn.updates = "q"}) {
  return %q, %p : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} { return %x : tensor<4xf32> }
// expected-error@+1 {{expected memory to be planned, found no exec.offsets for result 0}}
func.func @unplanned(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = exec.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
