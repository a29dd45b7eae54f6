// RUN: echo 'mesh: {a: 2, b: 3}' > %t.yaml
// RUN: echo 'overrides: [{tensor: qkv, sharding: "[{a}, {b}]"}]' >> %t.yaml
// RUN: partita-opt %s --partita-expose-factors --partita-name-dimensions "--partita-apply-plan=plan=%t.yaml" | FileCheck %s
// RUN: echo 'mesh: {a: 2, b: 2}' > %t.view.yaml
// RUN: echo 'overrides: [{tensor: qkv, sharding: "[{}, {}, {a}]"}]' >> %t.view.yaml
// RUN: partita-opt %s --partita-expose-factors --partita-name-dimensions "--partita-apply-plan=plan=%t.view.yaml" | FileCheck %s --check-prefix=VIEW
// RUN: echo 'mesh: {a: 2}' > %t.cut.yaml
// RUN: echo 'overrides: [{tensor: qkv, sharding: "[{}, {a}]"}]' >> %t.cut.yaml
// RUN: not partita-opt %s --partita-expose-factors --partita-name-dimensions "--partita-apply-plan=plan=%t.cut.yaml" 2>&1 | FileCheck %s --check-prefix=CUT

// An override refers to the parameter's shape in the model's file, or to its view if it has as many dimensions as the view.
// CHECK: tensor<8x3x8xf32> {dist.sharding = #dist.sharding<[{"a"}, {"b"}, {}]>, {{.*}}nn.view_of = tensor<8x24xf32>}
// VIEW: tensor<8x3x8xf32> {dist.sharding = #dist.sharding<[{}, {}, {"a"}]>
// CUT: error: {{.*}}.cut.yaml:2:13: override of 'qkv': a dimension of 24 rows is divided into shards of 12, where the compiler views it as 3 x 8, which they would cut through; divide it into shards that are multiples of 8 rows, or write the override for the view ('tensor<8x3x8xf32>')
func.func @main(%x: tensor<2x8xf32> {nn.kind = "input", nn.name = "x"},
    %w: tensor<8x24xf32> {nn.kind = "parameter", nn.name = "qkv", nn.source = #nn.file<"w", 0, 768, f32>}) -> tensor<2x8xf32> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x24xf32> -> tensor<2x24xf32>
  %q = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x8xf32>
  %k = nn.slice %0 starts = [0, 8] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x8xf32>
  %v = nn.slice %0 starts = [0, 16] strides = [1, 1] : tensor<2x24xf32> -> tensor<2x8xf32>
  %1 = arith.mulf %q, %k : tensor<2x8xf32>
  %2 = arith.addf %1, %v : tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}
