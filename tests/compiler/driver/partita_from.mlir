// partita-opt --partita-from continues from the dump of a phase and produces the compiler's result.
// RUN: rm -rf %t && mkdir %t
// RUN: partita compile %s -o %t/model.partita --dump-dir %t/ir
// RUN: partita-opt --partita-from="phase=memory" %t/ir/*-code.mlir > %t/memory.mlir
// RUN: diff -B %t/memory.mlir %t/ir/*-instructions.mlir
// RUN: partita-opt --partita-from="phase=library-calls" %t/ir/*-layouts.mlir | FileCheck %s
// RUN: partita-opt --partita-from="phase=lunch" %s 2>&1 | FileCheck --check-prefix=UNKNOWN %s

// CHECK: exec.gemm
// CHECK: exec.offsets
// UNKNOWN: partita-from: expected phase= with one of collectives merge-functions load-time layouts library-calls kernels order memory instructions, found 'lunch': nothing is run

func.func @main(%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"normal", 1.0 : f64, 0>})
    -> (tensor<4x16xf32> {nn.name = "y"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %1 = math.tanh %0 : tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
