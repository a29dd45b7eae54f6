// RUN: not partita verify %s --mesh t=2 --shard "M=t" | FileCheck %s
// RUN: not partita verify %s --mesh t=2 --shard "M=t" --json | FileCheck %s --check-prefix=JSON

// A chaotic model: each layer amplifies rounding errors more than tenfold, and divided sums round differently.
// CHECK: NOT the same model; first difference: math.sin at {{.*}}verify_unequal.mlir:[[#@LINE+17]]:8, in call 2 of layer @h, differs by {{.*}} of the largest value
// JSON: "equal":false,"first":"math.sin at
func.func @main(%x: tensor<7x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<7x8xf32> {
  %0 = call @h(%x, %up, %down) : (tensor<7x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<7x8xf32>
  %1 = call @h(%0, %up, %down) : (tensor<7x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<7x8xf32>
  %2 = call @h(%1, %up, %down) : (tensor<7x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<7x8xf32>
  return %2 : tensor<7x8xf32>
}

func.func private @h(%x: tensor<7x8xf32>, %up: tensor<8x16xf32>, %down: tensor<16x8xf32>) -> tensor<7x8xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<7x8xf32>, tensor<8x16xf32> -> tensor<7x16xf32>
  %1 = math.tanh %0 : tensor<7x16xf32>
  %2 = nn.dot_general %1, %down contract = [1] x [0] : tensor<7x16xf32>, tensor<16x8xf32> -> tensor<7x8xf32>
  %c = arith.constant dense<30.0> : tensor<7x8xf32>
  %3 = arith.mulf %2, %c : tensor<7x8xf32>
  %4 = math.sin %3 : tensor<7x8xf32>
  %5 = nn.softmax %4 axis = 1 : tensor<7x8xf32>
  %6 = arith.addf %4, %5 : tensor<7x8xf32>
  return %6 : tensor<7x8xf32>
}
