// RUN: partita-opt %s --partita-reduce-precision --canonicalize --cse | FileCheck %s
// RUN: partita-opt %s --partita-reduce-precision=type=f16 | FileCheck %s --check-prefix=F16

// Inputs, results and buffers of @main stay f32. Parameters become 16 bits.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32> {nn.kind = "input"
// CHECK-SAME: %[[T:.*]]: tensor<2xi64>
// CHECK-SAME: %[[W:.*]]: tensor<8x8xbf16> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"w", 0, 256, f32>}
// CHECK-SAME: %[[MEAN:.*]]: tensor<8xf32> {nn.kind = "buffer"
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<8xf32> {nn.updates = "mean"})
// F16-LABEL: func.func @main(
// F16-SAME: tensor<8x8xf16> {nn.kind = "parameter"
func.func @main(
    %x: tensor<2x8xf32> {nn.kind = "input", nn.name = "x"},
    %targets: tensor<2xi64> {nn.kind = "input", nn.name = "targets"},
    %w: tensor<8x8xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"w", 0, 256, f32>},
    %mean: tensor<8xf32> {nn.kind = "buffer", nn.name = "mean"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<8xf32> {nn.updates = "mean"}) {
  // The input is rounded once.
  // CHECK: %[[X16:.*]] = arith.truncf %[[X]] : tensor<2x8xf32> to tensor<2x8xbf16>
  // CHECK: %[[H:.*]] = nn.dot_general %[[X16]], %[[W]] {{.*}} -> tensor<2x8xbf16>
  %h = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  // A chain of elementwise operations is rounded at its end only.
  // CHECK: %[[H32:.*]] = arith.extf %[[H]] : tensor<2x8xbf16> to tensor<2x8xf32>
  // CHECK: %[[E:.*]] = math.erf %[[H32]] : tensor<2x8xf32>
  // CHECK: %[[G:.*]] = arith.mulf %[[E]], %[[H32]] : tensor<2x8xf32>
  // CHECK: %[[G16:.*]] = arith.truncf %[[G]] : tensor<2x8xf32> to tensor<2x8xbf16>
  %e = math.erf %h : tensor<2x8xf32>
  %g = arith.mulf %e, %h : tensor<2x8xf32>
  // Positions stay f32 across the call.
  // CHECK: %[[P:.*]] = nn.iota dim = 0 : tensor<2x8xf32>
  %p = nn.iota dim = 0 : tensor<2x8xf32>
  // Batch norm statistics stay f32 across the call.
  // CHECK: %[[Y:.*]]:2 = call @layer(%[[G16]], %[[P]], %[[W]], %[[MEAN]]) : (tensor<2x8xbf16>, tensor<2x8xf32>, tensor<8x8xbf16>, tensor<8xf32>) -> (tensor<2x8xbf16>, tensor<8xf32>)
  %y:2 = call @layer(%g, %p, %w, %mean) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>)
  // CHECK: %[[L:.*]] = nn.cross_entropy %[[Y]]#0, %[[T]] : tensor<2x8xbf16>, tensor<2xi64> -> tensor<2xf32>
  // CHECK: %[[S:.*]] = nn.reduce sum %[[L]] dims = [0] : tensor<2xf32> -> tensor<f32>
  // CHECK: return %[[S]], %[[Y]]#1
  %l = nn.cross_entropy %y#0, %targets ignore_index = -100 : tensor<2x8xf32>, tensor<2xi64> -> tensor<2xf32>
  %s = nn.reduce sum %l dims = [0] : tensor<2xf32> -> tensor<f32>
  return %s, %y#1 : tensor<f32>, tensor<8xf32>
}

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xbf16>, %[[P:.*]]: tensor<2x8xf32>, %[[W:.*]]: tensor<8x8xbf16>, %[[MEAN:.*]]: tensor<8xf32>) -> (tensor<2x8xbf16>, tensor<8xf32>)
func.func private @layer(%x: tensor<2x8xf32>, %p: tensor<2x8xf32>, %w: tensor<8x8xf32>, %mean: tensor<8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>) {
  // If a non-elementwise operation uses a value too, all users get the rounded value.
  // CHECK: %[[C:.*]] = math.cos %[[P]] : tensor<2x8xf32>
  // CHECK: %[[X32:.*]] = arith.extf %[[X]]
  // CHECK: %[[R:.*]] = arith.mulf %[[X32]], %[[C]] : tensor<2x8xf32>
  // CHECK: %[[R16:.*]] = arith.truncf %[[R]]
  // CHECK: %[[N:.*]] = nn.softmax %[[R16]] axis = 1 : tensor<2x8xbf16>
  // CHECK: %[[R32:.*]] = arith.extf %[[R16]]
  // CHECK: %[[N32:.*]] = arith.extf %[[N]]
  // CHECK: %[[A:.*]] = arith.addf %[[R32]], %[[N32]] : tensor<2x8xf32>
  %c = math.cos %p : tensor<2x8xf32>
  %r = arith.mulf %x, %c : tensor<2x8xf32>
  %n = nn.softmax %r axis = 1 : tensor<2x8xf32>
  %a = arith.addf %r, %n : tensor<2x8xf32>
  // CHECK: %[[SUM:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<8x8xf32> -> tensor<8xf32>
  %scale = nn.reduce sum %w dims = [0] : tensor<8x8xf32> -> tensor<8xf32>
  // CHECK: %[[B:.*]], %[[M:.*]]:2 = nn.batch_norm %[[A]], %[[SUM]], %[[SUM]], %[[MEAN]], %[[MEAN]]
  // CHECK: %[[B16:.*]] = arith.truncf %[[B]]
  // CHECK: return %[[B16]], %[[M]]#0 : tensor<2x8xbf16>, tensor<8xf32>
  %b, %m, %v = nn.batch_norm %a, %scale, %scale, %mean, %mean feature = 1 epsilon = 1.0e-5 training momentum = 1.0e-1 : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %b, %m : tensor<2x8xf32>, tensor<8xf32>
}
