// RUN: not partita-opt %s --partita-append-optimizer=optimizer=adagrad 2>&1 | FileCheck %s
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=sgd nesterov" 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not partita-opt %s --partita-append-optimizer=lr-scale=w 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not partita-opt %s "--partita-append-optimizer=lr-scale=w=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not partita-opt %s "--partita-append-optimizer=lr-scale=w=2;v*=0.5" 2>&1 | FileCheck %s --check-prefix=NAME

// RUN: not partita-opt %s "--partita-append-optimizer=no-decay=w;*bias" 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=1bit-adam" 2>&1 | FileCheck %s --check-prefix=WARMUP
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=adamw onebit-warmup=3" 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=1bit-adam onebit-warmup=3 clip-norm=1" 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=0/1-adam zero-one-step=first" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not partita-opt %s "--partita-append-optimizer=optimizer=0/1-adam clip-norm=1" 2>&1 | FileCheck %s --check-prefix=CLIP01

// CHECK: expected the optimizer to be sgd, adam, adamw, lamb, adafactor, 1bit-adam, 1bit-lamb or 0/1-adam, found 'adagrad'
// NESTEROV: expected --nesterov with --train sgd and --momentum above 0, found sgd and no momentum
// FACTOR: --lr-scale: expected GLOB=FACTOR with a factor above 0, as "h.*=0.1", found 'w'
// ZERO: --lr-scale: expected GLOB=FACTOR with a factor above 0, as "h.*=0.1", found 'w=0'
// NAME: --lr-scale: expected 'v*=0.5' to match a parameter that is trained, found none; one is 'w'
// DECAY: --no-decay: expected '*bias' to match a parameter that is trained, found none; one is 'w'
// WARMUP: expected --train 1bit-adam and --onebit-warmup, the steps that --train adamw has made before, together, or --train 1bit-lamb; found 1bit-adam and 0 steps
// STEPS: 1bit-lamb; found adamw and 3 steps
// CLIP: expected no --clip-norm with --train 1bit-adam: the norm needs whole gradients
// KIND: expected the step of 0/1-adam to be variance, exchange or local, found 'first'
// CLIP01: expected no --clip-norm with --train 0/1-adam: the norm needs whole gradients
func.func @main(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "grad.w"}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0, %w : tensor<f32>, tensor<4xf32>
}
