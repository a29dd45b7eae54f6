// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @main
// CHECK-SAME: tensor<2xi8> {nn.kind = "input", nn.name = "x", nn.unsigned}
// CHECK-SAME: {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"gpt2/model.safetensors", 4096, 3072, bf16>}
// CHECK-SAME: {nn.kind = "buffer", nn.source = #nn.init<"normal", 2.000000e-02 : f64, 7>}
// CHECK-SAME: -> (tensor<2xi8> {nn.name = "y", nn.unsigned})
func.func @main(%x: tensor<2xi8> {nn.kind = "input", nn.name = "x", nn.unsigned},
                %w: tensor<1536xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.file<"gpt2/model.safetensors", 4096, 3072, bf16>},
                %b: tensor<4xf32> {nn.kind = "buffer", nn.source = #nn.init<"normal", 2.0e-02 : f64, 7>})
    -> (tensor<2xi8> {nn.name = "y", nn.unsigned}) {
  return %x : tensor<2xi8>
}

// CHECK-LABEL: @coordinate
// CHECK-SAME: tensor<i64> {nn.axes = array<i64: 0, 1, 2, 1, 2, 2>, nn.kind = "coordinate", nn.name = "i"}
func.func private @coordinate(tensor<i64> {nn.kind = "coordinate", nn.name = "i", nn.axes = array<i64: 0, 1, 2, 1, 2, 2>})

// CHECK-LABEL: @step
// CHECK-SAME: nn.kind = "state"
// CHECK-SAME: nn.role = "learning_rate"
// CHECK-SAME: nn.updates = "m"
func.func private @step(tensor<2xf32> {nn.kind = "state", nn.name = "m"}, tensor<f32> {nn.kind = "input", nn.role = "learning_rate"}) -> (tensor<2xf32> {nn.updates = "m"})
