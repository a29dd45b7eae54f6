// The reason of a collective names the conflict behind it by the plan's entries, and no conflict of another operand.
// RUN: partita explain %s --mesh t=2 --shard "M=t;B=t" | FileCheck %s
// RUN: printf 'mesh: {t: 2}\nshard:\n  - {M: t}\n  - {B: t}\n' > %t.yaml
// RUN: partita explain %s --plan %t.yaml | FileCheck %s --check-prefix=FILE

// CHECK: all_gather over t (2 devices)
// CHECK: why operand of {{.*}}; Axis 't' stays with dimension 1 (M) of 'up': its entry ({M: t}, --shard) comes before that of dimension 0 (B) of {{.*}} ({B: t}, --shard)
// CHECK: gone without B: t (--shard)

// FILE: its entry ({M: t}, {{.*}}.yaml:3:5) comes before that of {{.*}} ({B: t}, {{.*}}.yaml:4:5)
func.func @main(%x: tensor<8x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<8x8xf32> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<8x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %2 = math.tanh %1 : tensor<8x16xf32>
  %3 = nn.dot_general %2, %down contract = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  %4 = arith.addf %3, %x : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
