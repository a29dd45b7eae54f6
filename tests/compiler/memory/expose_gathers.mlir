// RUN: partita-opt %s --partita-expose-gathers | FileCheck %s
// RUN: partita-opt %s --partita-expose-gathers --partita-overlap-collectives=ahead=1 | FileCheck %s --check-prefix=AHEAD
// RUN: partita-opt %s --partita-expose-gathers --partita-overlap-collectives=ahead=2 | FileCheck %s --check-prefix=TWO
// RUN: partita-opt %s --partita-expose-gathers --partita-overlap-collectives=ahead=1 --partita-plan-memory | FileCheck %s --check-prefix=PLAN

// Gathers of a layer's parameters move to the calls, with the kernels that pack them. Collectives on computed values and gathers of
// inputs stay.
func.func private @pack(%w: tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel} {
  %0 = arith.addf %w, %w : tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} {
  %0 = arith.addf %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2xf32>, %[[G:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[A:.*]] = exec.launch @add(%[[X]], %[[G]])
// CHECK-NEXT: exec.collective all_reduce %[[A]]
// CHECK-NEXT: exec.collective all_gather %arg2
func.func private @layer(%x: tensor<4xf32>, %w: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<4xf32> {
  %0 = exec.launch @pack(%w) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = exec.collective all_gather %0 axes = [0, 1, 2] {dim = 0 : i64} : tensor<2xf32> -> tensor<4xf32>
  %2 = exec.launch @add(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = exec.collective all_reduce %2 axes = [0, 1, 2] : tensor<4xf32> -> tensor<4xf32>
  %4 = exec.collective all_gather %z axes = [0, 1, 2] {dim = 0 : i64} : tensor<2xf32> -> tensor<4xf32>
  %5 = exec.launch @add(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[P:.*]] = exec.launch @pack(%arg1)
// CHECK-NEXT: %[[Q:.*]] = exec.collective all_gather %[[P]]
// CHECK-NEXT: %[[L:.*]] = call @layer(%arg0, %arg1, %arg3, %[[Q]])
// CHECK-NEXT: %[[R:.*]] = exec.launch @pack(%arg2)
// CHECK-NEXT: %[[S:.*]] = exec.collective all_gather %[[R]]
// CHECK-NEXT: %[[M:.*]] = call @layer(%[[L]], %arg2, %arg3, %[[S]])
// CHECK-NEXT: exec.launch @pack(%arg1)
// CHECK-NEXT: exec.collective
// CHECK-NEXT: call @layer(%[[M]],

// The first gather cannot start earlier, because no call comes before it.
// AHEAD-LABEL: func.func @main
// AHEAD-NEXT: exec.launch @pack(%arg1)
// AHEAD-NEXT: %[[F:.*]] = exec.collective all_gather {{.*}} {dim = 0 : i64}
// AHEAD-NEXT: exec.launch @pack(%arg2)
// AHEAD-NEXT: exec.collective all_gather {{.*}} token = 1
// AHEAD-NEXT: call @layer({{.*}}, %[[F]])
// AHEAD-NEXT: exec.launch @pack(%arg1)
// AHEAD-NEXT: exec.collective all_gather {{.*}} token = 2
// AHEAD-NEXT: %[[G:.*]] = exec.await {{.*}} token = 1
// AHEAD-NEXT: call @layer({{.*}}, %[[G]])
// AHEAD-NEXT: exec.await {{.*}} token = 2
// AHEAD-NEXT: call @layer

// TWO-LABEL: func.func @main
// TWO-COUNT-3: exec.collective
// TWO: call @layer
// TWO-NEXT: exec.await
// TWO-NEXT: call @layer
// TWO-NEXT: exec.await
// TWO-NEXT: call @layer

// PLAN-LABEL: func.func @main
// PLAN: exec.await
func.func @main(%x: tensor<4xf32>, %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}, %v: tensor<2xf32> {nn.kind = "parameter", nn.name = "v"},
                %z: tensor<2xf32> {nn.kind = "input", nn.name = "z"}) -> tensor<4xf32> {
  %0 = call @layer(%x, %w, %z) : (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %1 = call @layer(%0, %v, %z) : (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %2 = call @layer(%1, %w, %z) : (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
