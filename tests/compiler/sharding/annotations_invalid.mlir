// RUN: echo 'mesh: {a: 2, b: 2}' > %t.yaml
// RUN: echo 'overrides: [{tensor: w, sharding: "[{b}, {}]"}]' >> %t.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.yaml" 2>&1 | FileCheck %s
// RUN: echo 'mesh: {a: 2, b: 2}' > %t.twice.yaml
// RUN: echo 'overrides: [{tensor: x, sharding: "[{b}, {}]"}, {tensor: "[xyz]", sharding: "[{?}, {b}]"}]' >> %t.twice.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.twice.yaml" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: echo 'mesh: {a: 3}' > %t.axes.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.axes.yaml" 2>&1 | FileCheck %s --check-prefix=AXES

// CHECK: annotations_invalid.mlir:[[# @LINE + 8]]:{{[0-9]+}}: error: {{.*}}.yaml:2:13: expected an override of 'w' that agrees with the model's own annotation, [{}, {a, ?}], found [{b}, {}]: dimension 0: it is closed there; change one of the two
// CHECK: annotations_invalid.mlir:[[# @LINE + 7]]:{{[0-9]+}}: note: the annotation is that of w

// TWICE: error: {{.*}}.twice.yaml:2:49: expected an override of 'x' that agrees with the override at {{.*}}.twice.yaml:2:13, [{b}, {}], found [{?}, {b}]: dimension 1: it is closed there; change one of the two

// AXES: error: expected the annotation of w to divide it over the plan's mesh, found {{.*}}: axis 'a' of size 3 has no part a:(1)2
dist.mesh @mesh <["a"=2, "b"=2]>
func.func @main(%x: tensor<4x4xf32> {nn.kind = "input", nn.name = "x"},
    %w: tensor<4x4xf32> {dist.sharding = #dist.sharding<[{}, {"a":(1)2, ?}]>, nn.kind = "parameter", nn.name = "w"}) -> tensor<4x4xf32> {
  %0 = arith.addf %x, %w : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
