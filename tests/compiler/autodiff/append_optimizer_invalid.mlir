// RUN: not partita-opt %s --partita-append-optimizer=optimizer=adagrad 2>&1 | FileCheck %s
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=sgd nesterov" 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not partita-opt %s --partita-append-optimizer=lr-scale=w 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not partita-opt %s "--partita-append-optimizer=lr-scale=w=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not partita-opt %s "--partita-append-optimizer=lr-scale=w=2;v*=0.5" 2>&1 | FileCheck %s --check-prefix=NAME

// CHECK: expected the optimizer to be sgd, adam, adamw, lamb or adafactor, found 'adagrad'
// NESTEROV: expected --nesterov with --train sgd and --momentum above 0, found sgd and momentum 0
// FACTOR: --lr-scale: expected GLOB=FACTOR with a factor above 0, as "h.*=0.1", found 'w'
// ZERO: --lr-scale: expected GLOB=FACTOR with a factor above 0, as "h.*=0.1", found 'w=0'
// NAME: --lr-scale: expected 'v*=0.5' to match a parameter that is trained, found none; one is 'w'
func.func @main(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "grad.w"}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0, %w : tensor<f32>, tensor<4xf32>
}
