// RUN: partita-opt %s --partita-accumulate=microbatches=2 --split-input-file | FileCheck %s

// The step counts the targets of all microbatches first, and sums losses and
// gradients. An input without a batch dimension is passed to every microbatch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x6xf32> {nn.dims = ["2", "B", "E"], nn.kind = "input", nn.name = "x", nn.view_of = tensor<8x6xf32>}
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<6xf32> {nn.dims = ["E"], nn.kind = "input", nn.name = "p"}
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<2x4xi64> {nn.dims = ["2", "B"], nn.kind = "input", nn.name = "targets", nn.view_of = tensor<8xi64>}
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<6xf32>
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<6xf32> {nn.name = "grad.w"})
// CHECK: %[[X0S:.*]] = nn.slice %[[X]] starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x4x6xf32> -> tensor<1x4x6xf32>
// CHECK: %[[X0:.*]] = nn.reshape %[[X0S]] : tensor<1x4x6xf32> -> tensor<4x6xf32>
// CHECK: %[[X1S:.*]] = nn.slice %[[X]] starts = [1, 0, 0]
// CHECK: %[[X1:.*]] = nn.reshape %[[X1S]]
// CHECK: %[[N0:.*]] = call @count_targets
// CHECK: %[[N1:.*]] = call @count_targets
// CHECK: %[[N:.*]] = arith.addi %[[N0]], %[[N1]]
// CHECK: %[[D:.*]] = arith.maxsi %[[N]]
// CHECK: %[[A:.*]]:2 = call @step(%[[X0]], %[[P]], %{{.*}}, %[[W]], %[[D]])
// CHECK: %[[B:.*]]:2 = call @step(%[[X1]], %[[P]], %{{.*}}, %[[W]], %[[D]])
// CHECK: %[[L:.*]] = arith.addf %[[A]]#0, %[[B]]#0
// CHECK: %[[G:.*]] = arith.addf %[[A]]#1, %[[B]]#1
// CHECK: return %[[L]], %[[G]]
func.func private @count_targets(tensor<4xi64>) -> tensor<i64>
func.func private @step(tensor<4x6xf32>, tensor<6xf32>, tensor<4xi64>, tensor<6xf32>, tensor<i64>) -> (tensor<f32>, tensor<6xf32>)
func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %p: tensor<6xf32> {nn.dims = ["E"], nn.kind = "input", nn.name = "p"},
                %t: tensor<4xi64> {nn.dims = ["B"], nn.kind = "input", nn.name = "targets"},
                %d: tensor<i64> {nn.kind = "input", nn.name = "loss_divisor"},
                %w: tensor<6xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<i64> {nn.name = "target_count"}, tensor<6xf32> {nn.name = "grad.w"}) {
  %n = call @count_targets(%t) : (tensor<4xi64>) -> tensor<i64>
  %0:2 = call @step(%x, %p, %t, %w, %d) : (tensor<4x6xf32>, tensor<6xf32>, tensor<4xi64>, tensor<6xf32>, tensor<i64>) -> (tensor<f32>, tensor<6xf32>)
  return %0#0, %n, %0#1 : tensor<f32>, tensor<i64>, tensor<6xf32>
}

// -----

// Each microbatch reads the buffers that the previous one updated. Gradients
// are summed in f32. Other results are taken from the last microbatch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<3xf32> {nn.kind = "buffer", nn.name = "mean"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "loss_scale"}, tensor<3xf32> {nn.name = "grad.w"}, tensor<3xf32> {nn.updates = "mean"})
// CHECK: %[[A:.*]]:4 = call @step(%{{.*}}, %[[M]], %{{.*}})
// CHECK: %[[GA:.*]] = arith.extf %[[A]]#2 : tensor<3xbf16> to tensor<3xf32>
// CHECK: %[[B:.*]]:4 = call @step(%{{.*}}, %[[A]]#3, %{{.*}})
// CHECK: %[[L:.*]] = arith.addf %[[A]]#0, %[[B]]#0
// CHECK: %[[GB:.*]] = arith.extf %[[B]]#2
// CHECK: %[[G:.*]] = arith.addf %[[GA]], %[[GB]] : tensor<3xf32>
// CHECK: return %[[L]], %[[B]]#1, %[[G]], %[[B]]#3
func.func private @step(tensor<4x3xf32>, tensor<3xf32>, tensor<3xbf16>) -> (tensor<f32>, tensor<f32>, tensor<3xbf16>, tensor<3xf32>)
func.func @main(%x: tensor<4x3xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %w: tensor<3xbf16> {nn.kind = "parameter", nn.name = "w"},
                %m: tensor<3xf32> {nn.kind = "buffer", nn.name = "mean"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "loss_scale"}, tensor<3xbf16> {nn.name = "grad.w"}, tensor<3xf32> {nn.updates = "mean"}) {
  %0:4 = call @step(%x, %m, %w) : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xbf16>) -> (tensor<f32>, tensor<f32>, tensor<3xbf16>, tensor<3xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<f32>, tensor<f32>, tensor<3xbf16>, tensor<3xf32>
}

// -----

// Each microbatch gets a different random seed.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<i64>
// CHECK: %[[STEP:.*]] = arith.constant dense<1099511627776> : tensor<i64>
// CHECK: %[[S1:.*]] = arith.addi %[[S]], %[[STEP]]
// CHECK: call @step(%{{.*}}, %[[S1]], %{{.*}})
func.func private @step(tensor<4x3xf32>, tensor<i64>, tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>)
func.func @main(%x: tensor<4x3xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
                %s: tensor<i64> {nn.kind = "input", nn.name = "seed", nn.role = "seed"},
                %w: tensor<3xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<3xf32> {nn.name = "grad.w"}) {
  %0:2 = call @step(%x, %s, %w) : (tensor<4x3xf32>, tensor<i64>, tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<f32>, tensor<3xf32>
}
