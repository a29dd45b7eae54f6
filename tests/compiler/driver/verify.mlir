// RUN: partita verify %s --mesh d=2,t=3 --shard "B=d;M=t" | FileCheck %s
// RUN: partita verify %s --mesh d=2 --shard "B=d" --json | FileCheck %s --check-prefix=JSON

// CHECK: mesh {d: 2, t: 3}: compared {{[0-9]+}} values of operations on 6 devices with the undivided model, and its results with the imported one's, in {{.*}} s
// CHECK-NEXT: weights: 0 read, 2 made up
// CHECK-NEXT: the same model: largest difference {{.*}} of a value's largest element, {{.*}} from the imported model

// JSON: "equal":true,{{.*}}"layers_left_out":0,{{.*}}"weights_made_up":2,"weights_read":0
func.func @main(%x: tensor<7x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<7x8xf32> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<7x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<7x8xf32>, tensor<8x16xf32> -> tensor<7x16xf32>
  %2 = math.tanh %1 : tensor<7x16xf32>
  %3 = nn.dot_general %2, %down contract = [1] x [0] : tensor<7x16xf32>, tensor<16x8xf32> -> tensor<7x8xf32>
  %4 = arith.addf %3, %x : tensor<7x8xf32>
  return %4 : tensor<7x8xf32>
}
