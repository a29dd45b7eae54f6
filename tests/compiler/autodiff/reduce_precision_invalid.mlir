// RUN: partita-opt %s --partita-reduce-precision=type=f8 --verify-diagnostics

// expected-error@+1 {{expected the type to be bf16 or f16, found 'f8'}}
module {
  func.func @main(%w: tensor<f32>) -> tensor<f32> {
    return %w : tensor<f32>
  }
}
