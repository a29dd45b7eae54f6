// RUN: partita-opt %s --split-input-file --verify-diagnostics

func.func @collective_c5_negative(%x: tensor<4xf32>) {
  // expected-error@+1 {{'exec.collective' op expected a 'token' that is not negative, found -1}}
  %s = exec.collective all_reduce %x axes = [0, 1, 2] {token = -1 : i64} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @collective_c5_used(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'exec.collective' op expected one 'exec.await' and no other use of what is started}}
  %s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

func.func @await_c1_argument(%s: tensor<4xf32>, %x: tensor<4xf32>) {
  // expected-error@+1 {{'exec.await' op expected the result of an 'exec.collective' in the same block}}
  %y = exec.await %s, %x token = 1 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @await_c1_token(%x: tensor<4xf32>) {
  %s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 2 : i64} : tensor<4xf32> -> tensor<4xf32>
  // expected-error@+1 {{'exec.await' op expected the positive token of the collective, 2, found 1}}
  %y = exec.await %s, %x token = 1 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @await_c1_input(%x: tensor<4xf32>, %z: tensor<4xf32>) {
  // expected-note@+1 {{which starts here}}
  %s = exec.collective all_reduce %x axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  // expected-error@+1 {{'exec.await' op expected the operands of the collective}}
  %y = exec.await %s, %z token = 1 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @await_c1_to(%x: tensor<4x8xf32>, %to: tensor<4x1xi64>) {
  // expected-note@+1 {{which starts here}}
  %s = exec.collective send_rows %x to %to : tensor<4x1xi64> axes = [0, 1, 2] {dim = 0 : i64, size = 4 : i64, token = 1 : i64} : tensor<4x8xf32> -> tensor<8x8xf32>
  // expected-error@+1 {{'exec.await' op expected the operands of the collective}}
  %y = exec.await %s, %x token = 1 : tensor<8x8xf32>, tensor<4x8xf32>
  return
}
