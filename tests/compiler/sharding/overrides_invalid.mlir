// RUN: printf 'mesh: {t: 2}\noverrides:\n  - {tensor: "h.0.upp.weight", sharding: "[{}, {t}]"}\n' > %t.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.yaml" 2>&1 | FileCheck %s

// CHECK: error: {{.*}}.yaml:3:5: expected overrides to name parameters or inputs of the model, found 'h.0.upp.weight', which matches none; similar names are 'h.0.up.weight', 'x'
func.func @main(%x: tensor<8x4xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"},
    %up: tensor<4x6xf32> {nn.dims = ["E", "M"], nn.kind = "parameter", nn.name = "h.0.up.weight"}) -> tensor<8x6xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
