// RUN: partita-opt %s --partita-name-dimensions | FileCheck %s

// Layers whose parameters are slices of stacked ones, as lax.scan and nn.scan
// hold them. The layer's arguments are stored data all the same.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.dims = ["V", "E"], {{.*}}"wte"
// CHECK-SAME: {nn.dims = ["2", "E", "M"], {{.*}}"up"
// CHECK-SAME: {nn.dims = ["2", "M"], {{.*}}"bias"
// CHECK-SAME: {nn.dims = ["2", "M", "E"], {{.*}}"down"
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: {nn.dims = ["B", "L", "E"]}
// CHECK-SAME: {nn.dims = ["1", "E", "M"]}
// CHECK-SAME: {nn.dims = ["1", "M"]}
// CHECK-SAME: {nn.dims = ["1", "M", "E"]}
func.func @main(%ids: tensor<2x6xi32> {nn.kind = "input"},
    %wte: tensor<20x8xf32> {nn.kind = "parameter", nn.name = "wte", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %up: tensor<2x8x32xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %bias: tensor<2x32xf32> {nn.kind = "parameter", nn.name = "bias", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %down: tensor<2x32x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"zeros", 0.0 : f64, 0>})
    -> tensor<2x6x8xf32> {
  %0 = nn.reshape %ids : tensor<2x6xi32> -> tensor<2x6x1xi32>
  %x = nn.gather %wte[%0] axes = [0] : tensor<20x8xf32>, tensor<2x6x1xi32> -> tensor<2x6x8xf32>
  %up0 = nn.slice %up starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x8x32xf32> -> tensor<1x8x32xf32>
  %bias0 = nn.slice %bias starts = [0, 0] strides = [1, 1] : tensor<2x32xf32> -> tensor<1x32xf32>
  %down0 = nn.slice %down starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x32x8xf32> -> tensor<1x32x8xf32>
  %1 = call @layer(%x, %up0, %bias0, %down0) : (tensor<2x6x8xf32>, tensor<1x8x32xf32>, tensor<1x32xf32>, tensor<1x32x8xf32>) -> tensor<2x6x8xf32>
  %up1 = nn.slice %up starts = [1, 0, 0] strides = [1, 1, 1] : tensor<2x8x32xf32> -> tensor<1x8x32xf32>
  %bias1 = nn.slice %bias starts = [1, 0] strides = [1, 1] : tensor<2x32xf32> -> tensor<1x32xf32>
  %down1 = nn.slice %down starts = [1, 0, 0] strides = [1, 1, 1] : tensor<2x32x8xf32> -> tensor<1x32x8xf32>
  %2 = call @layer(%1, %up1, %bias1, %down1) : (tensor<2x6x8xf32>, tensor<1x8x32xf32>, tensor<1x32xf32>, tensor<1x32x8xf32>) -> tensor<2x6x8xf32>
  return %2 : tensor<2x6x8xf32>
}
func.func private @layer(%x: tensor<2x6x8xf32>, %up: tensor<1x8x32xf32>, %bias: tensor<1x32xf32>, %down: tensor<1x32x8xf32>) -> tensor<2x6x8xf32> {
  %0 = nn.reshape %up : tensor<1x8x32xf32> -> tensor<8x32xf32>
  %1 = nn.dot_general %x, %0 contract = [2] x [0] : tensor<2x6x8xf32>, tensor<8x32xf32> -> tensor<2x6x32xf32>
  %2 = nn.reshape %bias : tensor<1x32xf32> -> tensor<32xf32>
  %3 = nn.broadcast %2 dims = [2] : tensor<32xf32> -> tensor<2x6x32xf32>
  %4 = arith.addf %1, %3 : tensor<2x6x32xf32>
  %5 = math.tanh %4 : tensor<2x6x32xf32>
  %6 = nn.reshape %down : tensor<1x32x8xf32> -> tensor<32x8xf32>
  %7 = nn.dot_general %5, %6 contract = [2] x [0] : tensor<2x6x32xf32>, tensor<32x8xf32> -> tensor<2x6x8xf32>
  %8 = arith.addf %x, %7 : tensor<2x6x8xf32>
  return %8 : tensor<2x6x8xf32>
}
