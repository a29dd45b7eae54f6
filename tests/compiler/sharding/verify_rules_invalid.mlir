// RUN: partita-opt %s --partita-verify-rules --verify-diagnostics --split-input-file

func.func @carried_axis(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error-re@+1 {{'nn.softmax' op expected 'nn.rule' to hold when the operation is divided by it, found, on small shapes, with i=5 in 2 blocks of 3: result 0 at [0]: expected {{.*}}, found {{.*}}}}
  %y = nn.softmax %x axis = 0 {nn.rule = #nn.rule<([i]) -> ([i]) {i=8}>} : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @wrong_reduction(%x: tensor<64x4096xf32>, %w: tensor<4096x50000xf32>) -> tensor<64x50000xf32> {
  // expected-error-re@+1 {{'nn.dot_general' op expected 'nn.rule' to hold when the operation is divided by it, found, on small shapes, with k=5 in 2 blocks of 3: result 0 at [0, 0]: expected {{.*}}, found {{.*}}}}
  %y = nn.dot_general %x, %w contract = [1] x [0] {nn.rule = #nn.rule<([i, k], [k, j]) -> ([i, j]) {i=64, j=50000, k=4096} reduced={k:max}>} : tensor<64x4096xf32>, tensor<4096x50000xf32> -> tensor<64x50000xf32>
  return %y : tensor<64x50000xf32>
}

// -----

func.func @not_linear(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error-re@+1 {{'math.exp' op expected 'nn.rule' to hold when the operation is divided by it, found, on small shapes, not linear in the operands given as such: of a sum it gives {{.*}}, of the summands {{.*}}}}
  %y = math.exp %x {nn.rule = #nn.rule<([i]) -> ([i]) {i=8} linear={0}>} : tensor<8xf32>
  return %y : tensor<8xf32>
}
