// RUN: not partita-opt %s --partita-assign-stages="stages=2 last=*.h.1;*.h.9" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt %s --partita-assign-stages="stages=2 last=*.h.1;*.h.0" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not partita-opt %s --partita-assign-stages="stages=3 last=*.h.0;*.h.1" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not partita-opt %s --partita-assign-stages=stages=3 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not partita-opt %s --partita-assign-stages=stages=0 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: stages: expected at least 1, found 0
// NONE: stages to: expected a pattern of layers of the model, found '*.h.9', which matches none; similar names are 'm.h.0', 'm.h.1', 'm.h'
// ORDER: stages to: expected layers in the order in which they are computed, found '*.h.0' not behind '*.h.1'
// COUNT: stages: expected a last layer for each of 3 stages, found 2
// FEW: D: stages: expected at least one stage and a piece of the model for each, found 3 stages and 2 pieces; divide D over fewer devices, or let each have fewer stages
func.func @main(%a: tensor<6x6xf32> {nn.kind = "input", nn.name = "a"},
                %w0: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "m.h.0.w"},
                %w1: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "m.h.1.w"})
    -> tensor<6x6xf32> {
  %0 = arith.addf %a, %w0 : tensor<6x6xf32>
  %1 = arith.mulf %0, %w1 : tensor<6x6xf32>
  return %1 : tensor<6x6xf32>
}
