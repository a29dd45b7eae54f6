// RUN: partita-opt %s --partita-hoist-parameter-work | FileCheck %s

// Values computed from the device's coordinate are known at load time. An all-gather is not hoisted, because it would store a
// divided parameter whole. An all-slice is hoisted, because it stores less.
// CHECK-LABEL: func @init
// CHECK-SAME: nn.kind = "coordinate"
// CHECK-NOT: all_gather
// CHECK: exec.collective all_slice
// CHECK-LABEL: func @main
// CHECK: exec.collective all_gather
// CHECK-NOT: exec.collective all_slice
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"},
                %a: tensor<2xf32> {nn.kind = "parameter", nn.name = "a", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<8xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %i: tensor<i64> {nn.kind = "coordinate", nn.name = "coordinate(\22a\22)", nn.axes = array<i64: 0, 1, 2>}) -> (tensor<4xf32>, tensor<1xf32>) {
  %g = exec.collective all_gather %a axes = [0, 1, 2] {dim = 0 : i64} : tensor<2xf32> -> tensor<4xf32>
  %s = exec.collective all_slice %b axes = [0, 1, 2] {dim = 0 : i64} : tensor<8xf32> -> tensor<4xf32>
  %y = arith.addf %x, %g : tensor<4xf32>
  %z = arith.mulf %y, %s : tensor<4xf32>
  %f = arith.sitofp %i : tensor<i64> to tensor<f32>
  %e = math.exp %f : tensor<f32>
  %r = nn.reshape %e : tensor<f32> -> tensor<1xf32>
  %one = nn.slice %x starts = [0] strides = [1] : tensor<4xf32> -> tensor<1xf32>
  %w = arith.mulf %one, %r : tensor<1xf32>
  return %z, %w : tensor<4xf32>, tensor<1xf32>
}
