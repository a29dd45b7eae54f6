// RUN: echo 'mesh: {a: 2, b: 2}' > %t.yaml
// RUN: echo 'overrides: [{tensor: w, sharding: "[{b}, {}]"}]' >> %t.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.yaml" 2>&1 | FileCheck %s
// RUN: echo 'mesh: {a: 2, b: 2}' > %t.twice.yaml
// RUN: echo 'overrides: [{tensor: x, sharding: "[{b}, {}]"}, {tensor: "[xyz]", sharding: "[{?}, {b}]"}]' >> %t.twice.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.twice.yaml" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: echo 'mesh: {a: 3}' > %t.axes.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.axes.yaml" 2>&1 | FileCheck %s --check-prefix=AXES
// RUN: echo 'mesh: {axes: {a: 2, b: 2}, device_ids: [0, 2, 1, 3]}' > %t.order.yaml
// RUN: not partita-opt %s "--partita-apply-plan=plan=%t.order.yaml" 2>&1 | FileCheck %s --check-prefix=ORDER

// CHECK: annotations_invalid.mlir:[[# @LINE + 10]]:{{[0-9]+}}: error: {{.*}}.yaml:2:13: expected an override of 'w' that agrees with the model's own annotation, [{}, {a, ?}], found [{b}, {}]: dimension 0: it is closed there; change one of the two
// CHECK: annotations_invalid.mlir:[[# @LINE + 9]]:{{[0-9]+}}: note: the annotation is that of w

// TWICE: error: {{.*}}.twice.yaml:2:49: expected an override of 'x' that agrees with the override at {{.*}}.twice.yaml:2:13, [{b}, {}], found [{?}, {b}]: dimension 1: it is closed there; change one of the two

// Annotations refer to the model's mesh, so the plan must have the same mesh.
// AXES: error: expected a plan for the mesh of the model's own annotations, {a: 2, b: 2}, found {a: 3}; give that mesh, or import the model without its annotations (--onnx-configuration none, or --ignore-shardings)
// ORDER: error: expected a plan for the mesh of the model's own annotations, {a: 2, b: 2}, found {axes: {a: 2, b: 2}, device_ids: [0, 2, 1, 3]}; give that mesh
dist.mesh @mesh <["a"=2, "b"=2]>
func.func @main(%x: tensor<4x4xf32> {nn.kind = "input", nn.name = "x"},
    %w: tensor<4x4xf32> {dist.sharding = #dist.sharding<[{}, {"a":(1)2, ?}]>, nn.kind = "parameter", nn.name = "w"}) -> tensor<4x4xf32> {
  %0 = arith.addf %x, %w : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
