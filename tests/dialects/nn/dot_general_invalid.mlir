// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @dot_general_c1(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.dot_general' op expected as many batch and contracted dimensions of lhs as of rhs, found [] x [] and [1] x [0, 1]}}
  %0 = nn.dot_general %x, %y contract = [1] x [0, 1] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_general_c1_distinct(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.dot_general' op expected 'lhs_batch and lhs_contract' to be distinct dimensions from 0 to 1, found [1, 1]}}
  %0 = nn.dot_general %x, %y batch = [1] x [0] contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<3x2x4xf32>
  return
}

// -----

func.func @dot_general_c2(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.dot_general' op expected paired dimensions 0 of lhs and 0 of rhs to have equal sizes, found 2 and 3}}
  %0 = nn.dot_general %x, %y contract = [0] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @dot_general_c2_type(%x: tensor<2x3xf32>, %y: tensor<3x4xbf16>) {
  // expected-error@+1 {{'nn.dot_general' op expected equal element types, found 'f32' and 'bf16'}}
  %0 = nn.dot_general %x, %y contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xbf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_general_c3(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{'nn.dot_general' op expected a result of type 'tensor<2x4xf32>', found 'tensor<4x2xf32>'}}
  %0 = nn.dot_general %x, %y contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<4x2xf32>
  return
}
