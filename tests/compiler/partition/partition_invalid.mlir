// RUN: not partita-opt %s --partita-partition 2>&1 | FileCheck %s

// CHECK: expected a dist.mesh that says what devices there are, found none; give a plan, or --mesh
func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  return %x : tensor<8x6xf32>
}
