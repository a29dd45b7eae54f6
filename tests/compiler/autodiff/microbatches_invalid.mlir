// RUN: not partita-opt %s --partita-attach-loss=microbatches=0 2>&1 | FileCheck %s
// RUN: not partita-opt %s --partita-accumulate=microbatches=0 2>&1 | FileCheck %s
// RUN: not partita-opt %s --partita-split-batch=microbatches=0 2>&1 | FileCheck %s

// CHECK: microbatches: expected at least 1, found 0
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
