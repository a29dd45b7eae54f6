// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func @random_c1(%x: tensor<i32>) {
  // expected-error@+1 {{'nn.random' op expected a seed of type 'tensor<i64>', found 'tensor<i32>'}}
  %0 = nn.random uniform %x : tensor<i32> -> tensor<4xf32>
  return
}

// -----

func.func @random_c1_result(%x: tensor<i64>) {
  // expected-error@+1 {{'nn.random' op expected a result of type 'tensor<4xf32>', found 'tensor<4xf64>'}}
  %0 = nn.random uniform %x : tensor<i64> -> tensor<4xf64>
  return
}
