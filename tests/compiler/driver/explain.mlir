// RUN: partita explain %s --mesh d=2,t=3 --shard "B=d;M=t" | FileCheck %s
// RUN: partita explain %s --mesh d=2,t=3 --shard "B=d;M=t" --json | FileCheck %s --check-prefix=JSON
// RUN: partita explain %s --mesh t=2 --shard "M=t" | FileCheck %s --check-prefix=EVEN
// RUN: printf 'mesh: {d: 2, t: 3}\nshard:\n  - {B: d}\noverrides:\n  - {tensor: up, sharding: "[{}, {t}]"}\n' > %t.yaml
// RUN: partita explain %s --plan %t.yaml | FileCheck %s --check-prefix=OVERRIDE

// RUN: partita explain %s --mesh d=2,t=3 --shard "B=d;M=t" --cluster "8x a100-80-sxm" | FileCheck %s --check-prefix=TIME
// RUN: not partita explain %s --mesh d=2,t=3 --shard "B=d;M=t" --cluster "4x a100-80-sxm" 2>&1 | FileCheck %s --check-prefix=SMALL

// TIME: mesh {d: 2, t: 3}
// TIME-NEXT: on {{.*}}a100-80-sxm{{.*}} a step is predicted to take {{[0-9.]+ [um]s$}}
// TIME: all_reduce over t (3 devices): 172 B x 1, {{[0-9.]+}} us exposed ({{[0-9.]+}}% of the step)
// SMALL: --cluster: expected at least 6 devices, which the plan's mesh has, found {{.*}} with 4; name a larger cluster

// 7 rows over 2 devices: 4 + 3. 16 columns over 3 devices: 6 + 6 + 4.
// CHECK: mesh {d: 2, t: 3}: each of 6 devices sends 172 B a step and pads 368 B, at most
// CHECK: all_reduce over t (3 devices): 172 B x 1
// CHECK: why each device along t has a partial result
// CHECK-NEXT: gone without M: t (--shard)
// CHECK: padding of M over t (3 devices): 16 rows to 6 on each, 192 B of rows beyond the end in 4 values
// CHECK-NEXT: most in dimension 1 of 'up'
// CHECK-NEXT: why M: t (--shard)
// CHECK-NEXT: gone with 18 rows instead of 16, or 2 devices instead of 3, or without M: t (--shard)
// CHECK: padding of B over d (2 devices): 7 rows to 4 on each, 176 B of rows beyond the end in 6 values
// CHECK: gone with 8 rows instead of 7, or 1 device instead of 2, or without B: d (--shard)

// JSON: "paddings":[{"axes":"t","bytes":192,"devices":3,"dimension":"M","fits":"18 rows instead of 16, or 2 devices instead of 3","local":6,"most":"dimension 1 of 'up'","size":16,"values":4,"why":"M: t (--shard)","without":"M: t (--shard)"}

// EVEN: and pads 0 B, at most
// EVEN-NOT: padding

// OVERRIDE: all_reduce over t
// OVERRIDE: gone without the override of 'up' ({{.*}}.yaml:5:5)
// OVERRIDE: padding of M over t
// OVERRIDE: why the override of 'up' ({{.*}}.yaml:5:5)
// OVERRIDE-NEXT: gone with {{.*}}, or without the override of 'up' ({{.*}}.yaml:5:5)
func.func @main(%x: tensor<7x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %down: tensor<16x8xf32> {nn.kind = "parameter", nn.name = "down", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<7x8xf32> {
  %0 = nn.layer_norm %x axis = 1 epsilon = 1.0e-5 : tensor<7x8xf32>
  %1 = nn.dot_general %0, %up contract = [1] x [0] : tensor<7x8xf32>, tensor<8x16xf32> -> tensor<7x16xf32>
  %2 = math.tanh %1 : tensor<7x16xf32>
  %3 = nn.dot_general %2, %down contract = [1] x [0] : tensor<7x16xf32>, tensor<16x8xf32> -> tensor<7x8xf32>
  %4 = arith.addf %3, %x : tensor<7x8xf32>
  return %4 : tensor<7x8xf32>
}
