// RUN: partita-opt %s --partita-name-dimensions "--partita-apply-plan=mesh=x=4 shard=X=x" 2>&1 | FileCheck %s
// RUN: partita-opt %s --partita-name-dimensions "--partita-apply-plan=mesh=x=8 shard=X=x" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: partita-opt %s --partita-name-dimensions "--partita-apply-plan=mesh=x=3 shard=X=x" 2>&1 | FileCheck %s --check-prefix=BUSY

// One warning for all experts of the model.
// CHECK: warning: {{.*}}shard 'X' divides 5 experts over 4 devices in blocks of 2, so that 1 without any compute nothing; take a number of devices that divides the experts
// CHECK-NOT: without any
// MANY: warning: {{.*}}shard 'X' divides 5 experts over 8 devices in blocks of 1, so that 3 without any compute nothing
// BUSY-NOT: without any
func.func @main(%x: tensor<4x6x8xf32> {nn.kind = "input", nn.name = "x"},
                %router: tensor<5x8xf32> {nn.kind = "parameter", nn.name = "router", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %up: tensor<5x7x8xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %down: tensor<5x8x7xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> (tensor<4x6x8xf32> {nn.name = "y"}) {
  %z = nn.dot_general %x, %router contract = [2] x [1] : tensor<4x6x8xf32>, tensor<5x8xf32> -> tensor<4x6x5xf32>
  %s = nn.softmax %z axis = 2 : tensor<4x6x5xf32>
  %p, %i = nn.top_k %s largest = true : tensor<4x6x5xf32> -> tensor<4x6x2xf32>, tensor<4x6x2xi64>
  %y = nn.experts %x[%i], %p up(%up : tensor<5x7x8xf32>) down(%down : tensor<5x8x7xf32>) activation = relu : tensor<4x6x8xf32>, tensor<4x6x2xi64>, tensor<4x6x2xf32> -> tensor<4x6x8xf32>
  return %y : tensor<4x6x8xf32>
}
