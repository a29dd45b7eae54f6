// RUN: partita-opt %s --partita-delay-stages="weights=newest rate-steps=100" --verify-diagnostics --split-input-file

// Weights are at most one update old, so no learning rate needs to be reduced.
func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// expected-error@+1 {{--pipemare: expected weights that are more than one update old, found at most 1.00; take --schedule async with fewer microbatches than stages behind the first, or no --pipemare}}
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}, %r: tensor<f32> {nn.kind = "input", nn.name = "lr", nn.role = "learning_rate"},
                %u: tensor<4xf32> {nn.kind = "parameter", nn.name = "u"}) -> (tensor<4xf32> {nn.updates = "u"}) {
  %a = call @f(%x, %u) {nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = call @f(%a, %x) {nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = call @f(%x, %b) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = call @f(%u, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %n : tensor<4xf32>
}

// -----

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// expected-error@+1 {{expected an input with the role learning_rate, found none}}
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}, %u: tensor<4xf32> {nn.kind = "parameter", nn.name = "u"})
    -> (tensor<4xf32> {nn.updates = "u"}) {
  %a = call @f(%x, %u) {nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = call @f(%a, %x) {nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = call @f(%x, %b) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = call @f(%u, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %n : tensor<4xf32>
}
