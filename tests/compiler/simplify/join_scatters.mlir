// RUN: partita-opt %s --split-input-file --partita-join-scatters --partita-remove-dead-arguments | FileCheck %s

// One scatter for all calls. The function does not return updates that are its arguments.
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X0:.*]]: tensor<2xi64>, %[[X1:.*]]: tensor<2xi64>, %[[D0:.*]]: tensor<2x3xf32>, %[[D1:.*]]: tensor<2x3xf32>)
// CHECK: %[[I0:.*]] = call @backward(%[[X0]])
// CHECK-NEXT: %[[I1:.*]] = call @backward(%[[X1]])
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<9x3xf32>
// CHECK-DAG: %[[I:.*]] = nn.concat %[[I0]], %[[I1]] axis = 0 : (tensor<2x1xi64>, tensor<2x1xi64>) -> tensor<4x1xi64>
// CHECK-DAG: %[[U:.*]] = nn.concat %[[D0]], %[[D1]] axis = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK: %[[G:.*]] = nn.scatter %[[ZERO]][%[[I]]], %[[U]] axes = [0] kind = add
// CHECK-NEXT: return %[[G]]
// CHECK-LABEL: func private @backward
// CHECK-NOT: nn.scatter
func.func @main(%x0: tensor<2xi64>, %x1: tensor<2xi64>, %d0: tensor<2x3xf32>, %d1: tensor<2x3xf32>) -> tensor<9x3xf32> {
  %g0 = call @backward(%x0, %d0) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %g1 = call @backward(%x1, %d1) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %g = arith.addf %g0, %g1 : tensor<9x3xf32>
  return %g : tensor<9x3xf32>
}
func.func private @backward(%x: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<9x3xf32> {
  %zeros = arith.constant dense<0.0> : tensor<9x3xf32>
  %i = nn.reshape %x : tensor<2xi64> -> tensor<2x1xi64>
  %g = nn.scatter %zeros[%i], %d axes = [0] kind = add : tensor<9x3xf32>, tensor<2x1xi64>, tensor<2x3xf32> -> tensor<9x3xf32>
  return %g : tensor<9x3xf32>
}

// -----

// A table used twice: the other summands are added first, each sum once.
// CHECK-LABEL: func @main
// CHECK-SAME: %[[H0:[^:]*]]: tensor<9x3xf32>, %[[H1:[^:]*]]: tensor<9x3xf32>
// CHECK: %[[H:.*]] = arith.addf %[[H0]], %[[H1]]
// CHECK: nn.concat
// CHECK: nn.concat
// CHECK: %[[G:.*]] = nn.scatter %[[H]][
// CHECK-NEXT: return %[[G]]
func.func @main(%x0: tensor<2xi64>, %x1: tensor<2xi64>, %d: tensor<2x3xf32>, %h0: tensor<9x3xf32>, %h1: tensor<9x3xf32>) -> tensor<9x3xf32> {
  %g0 = call @backward(%x0, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %s0 = arith.addf %h0, %g0 : tensor<9x3xf32>
  %g1 = call @backward(%x1, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %s1 = arith.addf %h1, %g1 : tensor<9x3xf32>
  %s = arith.addf %s0, %s1 : tensor<9x3xf32>
  return %s : tensor<9x3xf32>
}
func.func private @backward(%x: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<9x3xf32> {
  %zeros = arith.constant dense<0.0> : tensor<9x3xf32>
  %i = nn.reshape %x : tensor<2xi64> -> tensor<2x1xi64>
  %g = nn.scatter %zeros[%i], %d axes = [0] kind = add : tensor<9x3xf32>, tensor<2x1xi64>, tensor<2x3xf32> -> tensor<9x3xf32>
  return %g : tensor<9x3xf32>
}

// -----

// A partial sum that is returned stays.
// CHECK-LABEL: func @main
// CHECK: %[[S0:.*]] = nn.scatter
// CHECK: %[[S1:.*]] = nn.scatter %[[S0]][
// CHECK: return %[[S0]], %[[S1]]
func.func @main(%x0: tensor<2xi64>, %x1: tensor<2xi64>, %d: tensor<2x3xf32>, %h: tensor<9x3xf32>) -> (tensor<9x3xf32>, tensor<9x3xf32>) {
  %g0 = call @backward(%x0, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %s0 = arith.addf %g0, %h : tensor<9x3xf32>
  %g1 = call @backward(%x1, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %s1 = arith.addf %s0, %g1 : tensor<9x3xf32>
  return %s0, %s1 : tensor<9x3xf32>, tensor<9x3xf32>
}
func.func private @backward(%x: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<9x3xf32> {
  %zeros = arith.constant dense<0.0> : tensor<9x3xf32>
  %i = nn.reshape %x : tensor<2xi64> -> tensor<2x1xi64>
  %g = nn.scatter %zeros[%i], %d axes = [0] kind = add : tensor<9x3xf32>, tensor<2x1xi64>, tensor<2x3xf32> -> tensor<9x3xf32>
  return %g : tensor<9x3xf32>
}

// -----

// Not joined: the updates together are larger than the tensor.
// CHECK-LABEL: func @main
// CHECK-NOT: nn.concat
// CHECK: arith.addf
// CHECK-LABEL: func private @backward
// CHECK: nn.scatter
func.func @main(%x0: tensor<2xi64>, %x1: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<3x3xf32> {
  %g0 = call @backward(%x0, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
  %g1 = call @backward(%x1, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
  %g = arith.addf %g0, %g1 : tensor<3x3xf32>
  return %g : tensor<3x3xf32>
}
func.func private @backward(%x: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<3x3xf32> {
  %zeros = arith.constant dense<0.0> : tensor<3x3xf32>
  %i = nn.reshape %x : tensor<2xi64> -> tensor<2x1xi64>
  %g = nn.scatter %zeros[%i], %d axes = [0] kind = add : tensor<3x3xf32>, tensor<2x1xi64>, tensor<2x3xf32> -> tensor<3x3xf32>
  return %g : tensor<3x3xf32>
}

// -----

// Not joined: the result is used by an operation other than a sum.
// CHECK-LABEL: func @main
// CHECK: call @backward
// CHECK-NEXT: math.exp
// CHECK-LABEL: func private @backward
// CHECK: nn.scatter
func.func @main(%x: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<9x3xf32> {
  %g = call @backward(%x, %d) : (tensor<2xi64>, tensor<2x3xf32>) -> tensor<9x3xf32>
  %e = math.exp %g : tensor<9x3xf32>
  return %e : tensor<9x3xf32>
}
func.func private @backward(%x: tensor<2xi64>, %d: tensor<2x3xf32>) -> tensor<9x3xf32> {
  %zeros = arith.constant dense<0.0> : tensor<9x3xf32>
  %i = nn.reshape %x : tensor<2xi64> -> tensor<2x1xi64>
  %g = nn.scatter %zeros[%i], %d axes = [0] kind = add : tensor<9x3xf32>, tensor<2x1xi64>, tensor<2x3xf32> -> tensor<9x3xf32>
  return %g : tensor<9x3xf32>
}
