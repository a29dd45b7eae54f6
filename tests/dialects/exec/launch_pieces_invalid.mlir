// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }

func.func @launch_c3_argument(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected 'into' to be all results of an 'exec.launch' of this block, of its own results' types}}
  %0 = exec.launch @k(%a) into(%a : tensor<8xf32>) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }
func.func private @two(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) { return %x, %x : tensor<8xf32>, tensor<8xf32> }

func.func @launch_c3_all(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = exec.launch @two(%a) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // expected-error@+1 {{expected 'into' to be all results of an 'exec.launch' of this block, of its own results' types}}
  %1 = exec.launch @k(%a) into(%0#0 : tensor<8xf32>) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }

func.func @launch_pieces_c1(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{operand and result types differ from those of [@k, @k]}}
  %0 = exec.launch_pieces [@k, @k](%a, %a) ranges = [8, 8] {grain = 1 : i64, scratch = 0 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @launch_pieces_c1_name(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected a function named @none}}
  %0 = exec.launch_pieces [@none, @none](%a) ranges = [8, 8] {grain = 1 : i64, scratch = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }

func.func @launch_pieces_c2(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected at least two kernels with a range each, not negative, found 1 kernels and ranges [8]}}
  %0 = exec.launch_pieces [@k](%a) ranges = [8] {grain = 1 : i64, scratch = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }

func.func @launch_pieces_c2_gpu(%a: tensor<8xf32>) {
  // expected-error@+1 {{expected at least one kernel with a range each, not negative, found 0 kernels and ranges []}}
  exec.launch_pieces []() ranges = [] {grain = 1 : i64, scratch = 0 : i64, blocks = 1 : i64, threads = 128 : i64} : () -> ()
  return
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }

func.func @launch_pieces_c4(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected threads, no scratch and at most 170 pieces of 2 buffers on a GPU, found 1 pieces and 64 bytes of scratch}}
  %0 = exec.launch_pieces [@k](%a) ranges = [8] {grain = 1 : i64, scratch = 64 : i64, blocks = 1 : i64, threads = 128 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }

func.func @launch_pieces_c2_negative(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected at least two kernels with a range each, not negative, found 2 kernels and ranges [8, -1]}}
  %0:2 = exec.launch_pieces [@k, @k](%a, %a) ranges = [8, -1] {grain = 1 : i64, scratch = 0 : i64} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}
