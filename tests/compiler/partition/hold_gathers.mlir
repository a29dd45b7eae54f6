// RUN: partita-opt %s --partita-hold-gathers | FileCheck %s

// Gathers of parameters move to the calls, with the operations before them. Equal gathers of the forward and the backward
// pass are merged. Gathers of other values stay, as do gathers in a function that another private function calls.
dist.mesh @mesh <["d"=2]>

// CHECK-LABEL: func.func private @forward
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %{{.*}}: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>, %[[G:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[X]], %[[G]]
// CHECK-NEXT: %[[B:.*]] = dist.all_gather %[[Y]]
// CHECK-NEXT: arith.addf %[[A]], %[[B]]
func.func private @forward(%x: tensor<4xf32>, %w: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  %n = arith.negf %w : tensor<2xf32>
  %g = dist.all_gather %n over ["d"] dim = 0 {why = "the forward pass"} : tensor<2xf32> -> tensor<4xf32>
  %0 = arith.addf %x, %g : tensor<4xf32>
  %h = dist.all_gather %y over ["d"] dim = 0 : tensor<2xf32> -> tensor<4xf32>
  %1 = arith.addf %0, %h : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @backward
// CHECK-NOT: dist.all_gather
// CHECK: return
func.func private @backward(%x: tensor<4xf32>, %w: tensor<2xf32>) -> tensor<4xf32> {
  %n = arith.negf %w : tensor<2xf32>
  %g = dist.all_gather %n over ["d"] dim = 0 {why = "the backward pass"} : tensor<2xf32> -> tensor<4xf32>
  %0 = arith.mulf %x, %g : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @inner
// CHECK: dist.all_gather
func.func private @inner(%w: tensor<2xf32>) -> tensor<4xf32> {
  %g = dist.all_gather %w over ["d"] dim = 0 : tensor<2xf32> -> tensor<4xf32>
  return %g : tensor<4xf32>
}
func.func private @outer(%w: tensor<2xf32>) -> tensor<4xf32> {
  %0 = call @inner(%w) : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[IN:.*]]: tensor<4xf32> {{.*}}, %[[W:.*]]: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}, %[[V:.*]]: tensor<2xf32> {nn.kind = "parameter", nn.name = "v"}
// CHECK: %[[N:.*]] = arith.negf %[[W]]
// CHECK-NEXT: %[[GW:.*]] = dist.all_gather %[[N]] over ["d"] dim = 0 {why = "the forward pass"}
// CHECK-NEXT: call @forward(%{{.*}}, %[[W]], %{{.*}}, %[[GW]])
// CHECK: %[[M:.*]] = arith.negf %[[V]]
// CHECK-NEXT: %[[GV:.*]] = dist.all_gather %[[M]]
// CHECK-NEXT: call @forward(%{{.*}}, %[[V]], %{{.*}}, %[[GV]])
// CHECK-NOT: dist.all_gather
// CHECK: call @backward(%{{.*}}, %[[V]], %[[GV]])
// CHECK: call @backward(%{{.*}}, %[[W]], %[[GW]])
// CHECK-NOT: dist.all_gather
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}, %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"},
                %v: tensor<2xf32> {nn.kind = "parameter", nn.name = "v"}, %y: tensor<2xf32> {nn.kind = "input", nn.name = "y"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = call @forward(%x, %w, %y) : (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %1 = call @forward(%0, %v, %y) : (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %2 = call @backward(%1, %v) : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  %3 = call @backward(%2, %w) : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  %4 = call @outer(%w) : (tensor<2xf32>) -> tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}
