// Every exceeded budget is an error. Its notes list the collectives and the plan entry to remove.
// RUN: printf 'mesh: {d: 2, t: 2}\nshard:\n  - {B: d}\n  - {M: t}\nbudgets: {all_reduce: 100 B, all_gather: 0 B, total: 0.1 KB}\n' > %t.yaml
// RUN: not partita compile %s --plan %t.yaml -o %t.partita 2>&1 | FileCheck %s
// RUN: printf 'mesh: {d: 2, t: 2}\nshard:\n  - {B: d}\n  - {M: t}\nbudgets: {all_reduce: 128 B, all_gather: 0 B}\n' > %t.enough.yaml
// RUN: partita compile %s --plan %t.enough.yaml -o %t.partita | FileCheck %s --check-prefix=ENOUGH

// CHECK: error: {{.*}}.yaml:5:11: expected at most 100 B of all_reduce a step and device, found 128 B; raise the budget, or change what the notes name
// CHECK: note: all_reduce over t, 128 B: each device along t has a partial result; gone without M: t ({{.*}}.yaml:4:6)
// CHECK: error: {{.*}}.yaml:5:{{[0-9]+}}: expected at most 100 B of total a step and device, found 128 B
// CHECK: note: all_reduce over t, 128 B
// CHECK-NOT: error

// ENOUGH: wrote
func.func @main(%x: tensor<8x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<8x8xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = math.tanh %0 : tensor<8x16xf32>
  %2 = nn.dot_general %1, %down contract = [1] x [0] : tensor<8x16xf32>, tensor<16x8xf32> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
