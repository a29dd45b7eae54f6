// RUN: not partita-opt %s --partita-join-scatters 2>&1 | FileCheck %s

// CHECK: error: expected a function @main with a body, found none
func.func private @backward(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
