// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @grouped_dot_c1(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x4x5xf32>) {
  // expected-error@+1 {{'nn.grouped_dot' op expected w of shape [3, 4, 4], found [3, 4, 5]}}
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @grouped_dot_c1_ids(%x: tensor<6x4xf32>, %ids: tensor<5xi64>, %w: tensor<3x5x4xf32>) {
  // expected-error@+1 {{'nn.grouped_dot' op expected ids of shape [6], found [5]}}
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<5xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_dot_c1_rank(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<5x4xf32>) {
  // expected-error@+1 {{'nn.grouped_dot' op expected x of rank 2 and w of rank 3, found 2 and 2}}
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<5x4xf32> -> tensor<6x5xf32>
  return
}

// -----

func.func @grouped_dot_c1_result(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x4x5xf32>) {
  // expected-error@+1 {{'nn.grouped_dot' op expected a result of shape [6, 5], found [6, 4]}}
  %y = nn.grouped_dot %x[%ids], %w transposed : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @grouped_dot_c1_type(%x: tensor<6x4xf32>, %ids: tensor<6xi64>, %w: tensor<3x5x4xbf16>) {
  // expected-error@+1 {{'nn.grouped_dot' op expected equal element types, found 'f32' and 'bf16'}}
  %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xbf16> -> tensor<6x5xf32>
  return
}
