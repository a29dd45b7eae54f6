// RUN: partita-opt %s --partita-assign-stages=stages=2 --verify-diagnostics

func.func private @body(%go: tensor<i1>, %x: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %go, %y : tensor<i1>, tensor<4xf32>
}
func.func @main(%go: tensor<i1> {nn.kind = "input", nn.name = "go"}, %x: tensor<4xf32> {nn.kind = "input", nn.name = "x"})
    -> tensor<4xf32> {
  // expected-error@+1 {{expected no loop whose number of iterations depends on data in a model that is divided into stages, found one; leave D out of the plan}}
  %0:2 = nn.loop @body(%go, %x) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
