// RUN: partita verify %s --mesh d=2,t=3 --shard "B=d;M=t" --train adamw --loss mse | FileCheck %s
// RUN: partita verify %s --mesh d=3 --shard "B=d" --zero 3 --train lamb --loss mse --clip-norm 1 --recompute full --json | FileCheck %s --check-prefix=JSON

// CHECK: mesh {d: 2, t: 3}: compared {{[0-9]+}} values of operations on 6 devices
// CHECK-NEXT: a step of training: the gradients of 4 parameters and their new values among them
// CHECK-NEXT: weights: 0 read, 4 made up
// CHECK-NEXT: the same model:

// JSON: "equal":true,{{.*}}"gradients":4,

// The gradient of %shift is zero except for rounding, because softmax is invariant to a shift of its input.
func.func @main(%x: tensor<7x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %bias: tensor<16xf32> {nn.kind = "parameter", nn.name = "bias", nn.source = #nn.init<"normal", 1.0 : f64, 1>},
    %shift: tensor<7xf32> {nn.kind = "parameter", nn.name = "shift", nn.source = #nn.init<"normal", 1.0 : f64, 2>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 3>}) -> tensor<7x8xf32> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<7x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<7x8xf32>, tensor<8x16xf32> -> tensor<7x16xf32>
  %2 = nn.broadcast %bias dims = [1] : tensor<16xf32> -> tensor<7x16xf32>
  %3 = arith.addf %1, %2 : tensor<7x16xf32>
  %4 = math.tanh %3 : tensor<7x16xf32>
  %5 = nn.dot_general %4, %down contract = [1] x [0] : tensor<7x16xf32>, tensor<16x8xf32> -> tensor<7x8xf32>
  %6 = nn.broadcast %shift dims = [0] : tensor<7xf32> -> tensor<7x8xf32>
  %7 = arith.addf %5, %6 : tensor<7x8xf32>
  %8 = nn.softmax %7 axis = 1 : tensor<7x8xf32>
  return %8 : tensor<7x8xf32>
}
