// RUN: partita-opt %s --split-input-file --partita-name-dimensions | FileCheck %s

// A decoder: tokens, embeddings, attention with one key-value head per two query
// heads, an MLP, logits from a tied table.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["B", "L"], nn.kind = "input"}
// CHECK-SAME: {nn.dims = ["V", "E"], {{.*}}"embed"
// CHECK-SAME: {nn.dims = ["16", "E"], {{.*}}"positions"
// CHECK-SAME: {nn.dims = ["E"], {{.*}}"norm"
// CHECK-SAME: {nn.dims = ["E", "N*8"], {{.*}}"q"
// CHECK-SAME: {nn.dims = ["E", "N*8"], {{.*}}"k"
// CHECK-SAME: {nn.dims = ["N*8", "E"], {{.*}}"o"
// CHECK-SAME: {nn.dims = ["M", "E"], {{.*}}"gate"
// CHECK-SAME: {nn.dims = ["E", "M"], {{.*}}"down"
// CHECK: nn.gather {{.*}}nn.dims = {{\[\[}}"B", "L", "E"]]
// CHECK: call @block{{.*}}nn.dims = {{\[\[}}"B", "L", "E"]]
// CHECK: nn.dot_general {{.*}}nn.dims = {{\[\[}}"B", "L", "V"]]
// CHECK-LABEL: func.func private @block(
// CHECK-SAME: tensor<2x6x12xf32> {nn.dims = ["B", "L", "E"]}
// CHECK: nn.attention {{.*}}nn.dims = {{\[\[}}"B", "N", "L", "8"]]
func.func @main(%ids: tensor<2x6xi64> {nn.kind = "input"},
    %embed: tensor<20x12xf32> {nn.kind = "parameter", nn.name = "embed", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %positions: tensor<16x12xf32> {nn.kind = "parameter", nn.name = "positions", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %norm: tensor<12xf32> {nn.kind = "parameter", nn.name = "norm", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %q: tensor<12x32xf32> {nn.kind = "parameter", nn.name = "q", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %k: tensor<12x16xf32> {nn.kind = "parameter", nn.name = "k", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %o: tensor<32x12xf32> {nn.kind = "parameter", nn.name = "o", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %gate: tensor<40x12xf32> {nn.kind = "parameter", nn.name = "gate", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %down: tensor<12x40xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<2x6x20xf32> {
  %c = arith.constant dense<[[[0], [1], [2], [3], [4], [5]]]> : tensor<1x6x1xi64>
  %0 = nn.reshape %ids : tensor<2x6xi64> -> tensor<2x6x1xi64>
  %1 = nn.gather %embed[%0] axes = [0] : tensor<20x12xf32>, tensor<2x6x1xi64> -> tensor<2x6x12xf32>
  %2 = nn.gather %positions[%c] axes = [0] : tensor<16x12xf32>, tensor<1x6x1xi64> -> tensor<1x6x12xf32>
  %3 = nn.broadcast %2 dims = [0, 1, 2] : tensor<1x6x12xf32> -> tensor<2x6x12xf32>
  %4 = arith.addf %1, %3 : tensor<2x6x12xf32>
  %5 = call @block(%4, %norm, %q, %k, %o, %gate, %down) : (tensor<2x6x12xf32>, tensor<12xf32>, tensor<12x32xf32>, tensor<12x16xf32>, tensor<32x12xf32>, tensor<40x12xf32>, tensor<12x40xf32>) -> tensor<2x6x12xf32>
  %6 = nn.dot_general %5, %embed contract = [2] x [1] : tensor<2x6x12xf32>, tensor<20x12xf32> -> tensor<2x6x20xf32>
  return %6 : tensor<2x6x20xf32>
}
func.func private @block(%x: tensor<2x6x12xf32>, %norm: tensor<12xf32>, %wq: tensor<12x32xf32>, %wk: tensor<12x16xf32>, %wo: tensor<32x12xf32>, %gate: tensor<40x12xf32>, %down: tensor<12x40xf32>) -> tensor<2x6x12xf32> {
  %0 = nn.rms_norm %x scale(%norm : tensor<12xf32>) axis = 2 epsilon = 1.0e-5 : tensor<2x6x12xf32>
  %1 = nn.dot_general %0, %wq contract = [2] x [0] : tensor<2x6x12xf32>, tensor<12x32xf32> -> tensor<2x6x32xf32>
  %2 = nn.reshape %1 : tensor<2x6x32xf32> -> tensor<2x6x4x8xf32>
  %q = nn.transpose %2 perm = [0, 2, 1, 3] : tensor<2x6x4x8xf32> -> tensor<2x4x6x8xf32>
  %3 = nn.dot_general %0, %wk contract = [2] x [0] : tensor<2x6x12xf32>, tensor<12x16xf32> -> tensor<2x6x16xf32>
  %4 = nn.reshape %3 : tensor<2x6x16xf32> -> tensor<2x6x2x8xf32>
  %k = nn.transpose %4 perm = [0, 2, 1, 3] : tensor<2x6x2x8xf32> -> tensor<2x2x6x8xf32>
  %5 = nn.attention %q, %k, %k scale = 1.0 causal_offset = 0 : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x4x6x8xf32>
  %6 = nn.transpose %5 perm = [0, 2, 1, 3] : tensor<2x4x6x8xf32> -> tensor<2x6x4x8xf32>
  %7 = nn.reshape %6 : tensor<2x6x4x8xf32> -> tensor<2x6x32xf32>
  %8 = nn.dot_general %7, %wo contract = [2] x [0] : tensor<2x6x32xf32>, tensor<32x12xf32> -> tensor<2x6x12xf32>
  %9 = arith.addf %x, %8 : tensor<2x6x12xf32>
  %10 = nn.dot_general %9, %gate contract = [2] x [1] : tensor<2x6x12xf32>, tensor<40x12xf32> -> tensor<2x6x40xf32>
  %11 = math.tanh %10 : tensor<2x6x40xf32>
  %12 = arith.addf %10, %11 : tensor<2x6x40xf32>
  %13 = nn.dot_general %12, %down contract = [2] x [1] : tensor<2x6x40xf32>, tensor<12x40xf32> -> tensor<2x6x12xf32>
  %14 = arith.addf %9, %13 : tensor<2x6x12xf32>
  return %14 : tensor<2x6x12xf32>
}

// -----

// Stacked experts: one matrix per expert, products with a batch dimension.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["X", "E", "M"], {{.*}}"up"
// CHECK-SAME: {nn.dims = ["X", "M", "E"], {{.*}}"down"
func.func @main(%x: tensor<5x6xf32> {nn.kind = "input"},
    %norm: tensor<6xf32> {nn.kind = "parameter", nn.name = "norm", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %up: tensor<3x6x8xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %down: tensor<3x8x6xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<5x6xf32> {
  %0 = nn.rms_norm %x scale(%norm : tensor<6xf32>) axis = 1 epsilon = 1.0e-5 : tensor<5x6xf32>
  %1 = nn.broadcast %0 dims = [1, 2] : tensor<5x6xf32> -> tensor<3x5x6xf32>
  %2 = nn.dot_general %1, %up batch = [0] x [0] contract = [2] x [1] : tensor<3x5x6xf32>, tensor<3x6x8xf32> -> tensor<3x5x8xf32>
  %3 = math.tanh %2 : tensor<3x5x8xf32>
  %4 = nn.dot_general %3, %down batch = [0] x [0] contract = [2] x [1] : tensor<3x5x8xf32>, tensor<3x8x6xf32> -> tensor<3x5x6xf32>
  %5 = nn.reduce sum %4 dims = [0] : tensor<3x5x6xf32> -> tensor<5x6xf32>
  %6 = arith.addf %5, %x : tensor<5x6xf32>
  return %6 : tensor<5x6xf32>
}

// -----

// A product from E to E: the contracted dimension of the weight is named E, the
// output dimension E'.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["E'", "E"], {{.*}}"dense"
func.func @main(%x: tensor<5x6xf32> {nn.kind = "input"},
    %dense: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "dense", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> tensor<5x6xf32> {
  %0 = nn.dot_general %x, %dense contract = [1] x [1] : tensor<5x6xf32>, tensor<6x6xf32> -> tensor<5x6xf32>
  %1 = arith.addf %0, %x : tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}
