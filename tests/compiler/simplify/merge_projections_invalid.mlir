// RUN: not partita-opt %s --partita-merge-projections 2>&1 | FileCheck %s

// CHECK: error: expected a function @main with a body, found none
module {
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
