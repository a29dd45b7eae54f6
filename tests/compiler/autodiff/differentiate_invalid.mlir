// RUN: partita-opt %s --partita-differentiate --verify-diagnostics --split-input-file

// expected-error@+1 {{expected a result named 'loss', found none; attach one with --loss}}
func.func @main(%w: tensor<f32> {nn.kind = "parameter", nn.name = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{expected the loss to be a scalar f32, found 'tensor<2xf32>'}}
func.func @main(%w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<2xf32> {nn.name = "loss"}) {
  return %w : tensor<2xf32>
}

// -----

// expected-error@+1 {{expected a parameter whose name matches '*', found none}}
func.func @main(%w: tensor<f32> {nn.kind = "buffer", nn.name = "w"}) -> (tensor<f32> {nn.name = "loss"}) {
  return %w : tensor<f32>
}

// -----

func.func @main(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<f32> {nn.name = "loss"}) {
  %i = arith.constant dense<0> : tensor<1x1xi64>
  %u = arith.constant dense<2.0> : tensor<1xf32>
  // expected-error@+1 {{expected kind 'add' or 'set' for a gradient, found 'mul'}}
  %0 = nn.scatter %w[%i], %u axes = [0] kind = mul : tensor<4xf32>, tensor<1x1xi64>, tensor<1xf32> -> tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func private @body(%go: tensor<i1>, %x: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %go, %y : tensor<i1>, tensor<4xf32>
}
func.func @main(%go: tensor<i1> {nn.kind = "input", nn.name = "go"}, %w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error@+1 {{'nn.loop' op has no gradient, but lies between a trained parameter and the loss}}
  %0:2 = nn.loop @body(%go, %w) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  %1 = nn.reduce sum %0#1 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
