// RUN: partita-opt %s --partita-reduce-precision --verify-diagnostics

func.func private @body(%go: tensor<i1>, %x: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %go, %y : tensor<i1>, tensor<4xf32>
}
func.func @main(%go: tensor<i1> {nn.kind = "input", nn.name = "go"}, %x: tensor<4xf32> {nn.kind = "input", nn.name = "x"})
    -> tensor<4xf32> {
  // expected-error@+1 {{a loop whose number of iterations depends on data keeps the precision of its values: expected precision f32, found bf16; leave out --precision}}
  %0:2 = nn.loop @body(%go, %x) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  // Only the first loop is named.
  %1:2 = nn.loop @body(%go, %0#1) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  return %1#1 : tensor<4xf32>
}
