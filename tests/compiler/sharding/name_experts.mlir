// RUN: partita-opt %s --partita-name-dimensions | FileCheck %s

// The experts have the names X, M and E. The width of the router's logits is a number of classes to choose from: it gets
// no name, so that plans do not divide it.
// CHECK-LABEL: @main
// CHECK-SAME: {nn.dims = ["B", "L", "E"], {{.*}}"x"
// CHECK-SAME: {nn.dims = ["5", "E"], {{.*}}"router"
// CHECK-SAME: {nn.dims = ["X", "M", "E"], {{.*}}"gate"
// CHECK-SAME: {nn.dims = ["X", "M", "E"], {{.*}}"up"
// CHECK-SAME: {nn.dims = ["X", "E", "M"], {{.*}}"down"
// CHECK-SAME: {nn.dims = ["X", "E"], {{.*}}"down_bias"
func.func @main(%x: tensor<4x6x8xf32> {nn.kind = "input", nn.name = "x"},
                %router: tensor<5x8xf32> {nn.kind = "parameter", nn.name = "router", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %gate: tensor<5x7x8xf32> {nn.kind = "parameter", nn.name = "gate", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %up: tensor<5x7x8xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %down: tensor<5x8x7xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %bias: tensor<5x8xf32> {nn.kind = "parameter", nn.name = "down_bias", nn.source = #nn.init<"zeros", 0.0 : f64, 0>}) -> (tensor<4x6x8xf32> {nn.name = "y"}) {
  %z = nn.dot_general %x, %router contract = [2] x [1] : tensor<4x6x8xf32>, tensor<5x8xf32> -> tensor<4x6x5xf32>
  %s = nn.softmax %z axis = 2 : tensor<4x6x5xf32>
  %p, %i = nn.top_k %s largest = true : tensor<4x6x5xf32> -> tensor<4x6x2xf32>, tensor<4x6x2xi64>
  %h = nn.experts %x[%i], %p gate(%gate : tensor<5x7x8xf32>) up(%up : tensor<5x7x8xf32>) down(%down : tensor<5x8x7xf32>)
    down_bias(%bias : tensor<5x8xf32>) activation = silu : tensor<4x6x8xf32>, tensor<4x6x2xi64>, tensor<4x6x2xf32> -> tensor<4x6x8xf32>
  %y = arith.addf %x, %h : tensor<4x6x8xf32>
  return %y : tensor<4x6x8xf32>
}
