// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @no_rule(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' op expected 'nn.rule' to be #nn.rule<...>, found "([i]) -> ([i])"}}
  %y = math.exp %x {nn.rule = "([i]) -> ([i])"} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' op 'nn.rule': expected 1 operands and 1 results, found 2 and 1}}
  %y = math.exp %x {nn.rule = #nn.rule<([i], [i]) -> ([i]) {i=4}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @rank(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' op 'nn.rule': expected 1 dimensions of operand 0, found 2}}
  %y = math.exp %x {nn.rule = #nn.rule<([i, j]) -> ([ij]) {i=2, j=2}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @size(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' op 'nn.rule': expected the factors of dimension 0 of operand 0 to multiply to its size 4, found 5}}
  %y = math.exp %x {nn.rule = #nn.rule<([i]) -> ([i]) {i=5}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @decompose(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' op 'nn.rule': expected an operation with a decomposition for the factor i, which is 'decompose'}}
  %y = math.exp %x {nn.rule = #nn.rule<([i]) -> ([i]) {i=4} decompose={i}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @halo(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' op 'nn.rule': expected nn.conv, nn.reduce_window or a gradient of theirs for the factor i, which is 'halo'}}
  %y = math.exp %x {nn.rule = #nn.rule<([i]) -> ([i]) {i=4} halo={i}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @factor_without_size(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected a size of factor i, found none}}
  %y = math.exp %x {nn.rule = #nn.rule<([i]) -> ([i]) {j=4}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @reduced_in_result(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected the reduced factor i in operands only, found it in a result}}
  %y = math.exp %x {nn.rule = #nn.rule<([i]) -> ([i]) {i=4} reduced={i}>} : tensor<4xf32>
  return %y : tensor<4xf32>
}
