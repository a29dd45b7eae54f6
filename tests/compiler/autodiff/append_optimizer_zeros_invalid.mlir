// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=sgd keep-zeros=w;nothing*" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=sgd keep-zeros=b" 2>&1 | FileCheck %s --check-prefix=BIAS
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=sgd keep-zeros=!w" 2>&1 | FileCheck %s --check-prefix=EXCLUDED
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=sgd keep-zeros=*;!w" 2>&1 | FileCheck %s --check-prefix=ALL

// NOTHING: --keep-zeros: expected 'nothing*' to match a matrix that is trained, found none; one is 'w'
// BIAS: --keep-zeros: expected 'b' to match a matrix that is trained, found none; one is 'w'
// EXCLUDED: --keep-zeros: expected '!w' to match a matrix that is trained, found none; one is 'w'
// ALL: --keep-zeros: expected '*;!w' to match a matrix that is trained, found none; one is 'w'
func.func @main(%w: tensor<2x4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<2x4xf32> {nn.name = "grad.w"}, tensor<4xf32> {nn.name = "grad.b"}) {
  %1 = nn.reduce sum %b dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1, %w, %b : tensor<f32>, tensor<2x4xf32>, tensor<4xf32>
}
