// RUN: partita-opt %s --partita-delay-stages="weights=newest rate-steps=100" | FileCheck %s

// Three stages and one microbatch: the first stage's weights are two updates
// old, so its learning rate is divided by 2 at first. The second stage's weights
// are one update old, and the last stage's are the newest.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {nn.kind = "input", nn.name = "x"}, %[[R:[a-z0-9]+]]: tensor<f32> {nn.kind = "input"
// CHECK-SAME: tensor<i64> {nn.kind = "state", nn.name = "delayed/0.steps"
// CHECK: %[[DONE:.*]] = arith.sitofp
// CHECK: %[[HUNDRED:.*]] = arith.constant dense<1.000000e+02>
// CHECK: arith.divf %[[DONE]], %[[HUNDRED]]
// CHECK: arith.subf
// CHECK: arith.maximumf
// CHECK: %[[REST:.*]] = arith.minimumf
// CHECK: %[[LOG:.*]] = arith.constant dense<-0.693147182> : tensor<f32>
// CHECK: %[[POWER:.*]] = arith.mulf %[[REST]], %[[LOG]]
// CHECK: %[[FACTOR:.*]] = math.exp %[[POWER]]
// CHECK: %[[SLOW:.*]] = arith.mulf %[[OLD_R:.*]], %[[FACTOR]]
// CHECK-NOT: math.exp
// CHECK-DAG: call @sgd(%{{[a-z0-9]+}}, %{{[a-z0-9#]+}}, %[[SLOW]])
// CHECK-DAG: call @sgd(%{{[a-z0-9]+}}, %{{[a-z0-9#]+}}, %[[OLD_R]])
// CHECK-DAG: call @sgd(%{{[a-z0-9]+}}, %{{[a-z0-9#]+}}, %[[OLD_R]])
func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func private @b(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func private @sgd(tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"},
                %r: tensor<f32> {nn.kind = "input", nn.name = "lr", nn.role = "learning_rate"},
                %u: tensor<4xf32> {nn.kind = "parameter", nn.name = "u"}, %v: tensor<4xf32> {nn.kind = "parameter", nn.name = "v"},
                %w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<4xf32> {nn.updates = "u"}, tensor<4xf32> {nn.updates = "v"}, tensor<4xf32> {nn.updates = "w"}) {
  %a = call @f(%x, %u) {nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = call @f(%a, %v) {nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = call @f(%b, %w) {nn.microbatch = 0 : i64, nn.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2:2 = call @b(%b, %w, %y) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = call @b(%a, %v, %2#0) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %0:2 = call @b(%x, %u, %1#0) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %nu = call @sgd(%u, %0#1, %r) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %nv = call @sgd(%v, %1#1, %r) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %nw = call @sgd(%w, %2#1, %r) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %nu, %nv, %nw : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
