// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func private @body(%go: tensor<i1>, %x: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
  return %go, %x : tensor<i1>, tensor<4xf32>
}
func.func @loop_c1_result(%go: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.loop' op expected a result}}
  nn.loop @body(%go, %x) : (tensor<i1>, tensor<4xf32>) -> ()
  return
}

// -----

func.func private @body(%go: tensor<1xi1>, %x: tensor<4xf32>) -> (tensor<1xi1>, tensor<4xf32>) {
  return %go, %x : tensor<1xi1>, tensor<4xf32>
}
func.func @loop_c1_scalar(%go: tensor<1xi1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.loop' op expected the first result to be a tensor<i1>, found 'tensor<1xi1>'}}
  %0:2 = nn.loop @body(%go, %x) : (tensor<1xi1>, tensor<4xf32>) -> (tensor<1xi1>, tensor<4xf32>)
  return
}

// -----

func.func private @body(%go: tensor<i1>) -> (tensor<i1>, tensor<i1>) {
  return %go, %go : tensor<i1>, tensor<i1>
}
func.func @loop_c1_operands(%go: tensor<i1>) {
  // expected-error@+1 {{'nn.loop' op expected at least 2 operands, one per result, found 1}}
  %0:2 = nn.loop @body(%go) : (tensor<i1>) -> (tensor<i1>, tensor<i1>)
  return
}

// -----

func.func private @body(%go: tensor<i1>, %x: tensor<4xf32>) -> (tensor<i1>, tensor<4xi32>) {
  %y = arith.fptosi %x : tensor<4xf32> to tensor<4xi32>
  return %go, %y : tensor<i1>, tensor<4xi32>
}
func.func @loop_c1_types(%go: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.loop' op expected operand 1 to have the type of result 1, 'tensor<4xi32>', found 'tensor<4xf32>'}}
  %0:2 = nn.loop @body(%go, %x) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xi32>)
  return
}

// -----

func.func @loop_c2(%go: tensor<i1>) {
  // expected-error@+1 {{'nn.loop' op expected a private function with a body, named @none, found none}}
  %0 = nn.loop @none(%go) : (tensor<i1>) -> tensor<i1>
  return
}

// -----

func.func private @body(%go: tensor<i1>, %x: tensor<8xf32>) -> (tensor<i1>, tensor<8xf32>) {
  return %go, %x : tensor<i1>, tensor<8xf32>
}
func.func @loop_c2_types(%go: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{'nn.loop' op operand and result types differ from those of @body}}
  %0:2 = nn.loop @body(%go, %x) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
  return
}
