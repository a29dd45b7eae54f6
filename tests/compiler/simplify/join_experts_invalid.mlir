// RUN: not partita-opt %s --partita-join-experts 2>&1 | FileCheck %s

// CHECK: error: expected a function @main with a body, found none
func.func private @main(tensor<2xf32>) -> tensor<2xf32>
