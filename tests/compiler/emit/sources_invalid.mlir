// RUN: not partita compile %s -o %t.partita 2>&1 | FileCheck %s

// CHECK: error: expected parameter 'w' to have an nn.source, found none; give its numbers, as in nn.source = #nn.init<"normal", 2.0e-02 : f64, 7> [at {{.*}}sources_invalid.mlir:5:
func.func @main(%x: tensor<2xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}) -> tensor<2xf32> {
  %y = arith.mulf %x, %w : tensor<2xf32>
  return %y : tensor<2xf32>
}
