// RUN: partita-opt %s --split-input-file "--partita-apply-plan=mesh=data=2,tensor=2 shard=E=tensor" 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=LOST --input-file=%t.err

// The model's annotations take precedence over every entry of the plan, and propagate.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.*}}: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{"tensor"}, {}]>
// CHECK: math.exp %{{.*}} {dist.shardings = [#dist.sharding<[{}, {"data"}]>]}
// CHECK: math.absf %{{.*}} {dist.shardings = [#dist.sharding<[{?}, {"data", ?}]>]}
dist.mesh @mesh <["data"=2, "tensor"=2]>
func.func @main(%x: tensor<4x8xf32> {nn.dims = ["B", "E"], dist.sharding = #dist.sharding<[{"tensor"}, {}]>}) -> tensor<4x8xf32> {
  %0 = math.exp %x {dist.shardings = [#dist.sharding<[{}, {"data"}]>]} : tensor<4x8xf32>
  %1 = math.absf %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Annotations that passes lost are counted, once per call of their layer.
// LOST: remark: 3 of the model's 5 annotations of values within it are not used
// CHECK-NOT: dist.annotations
module attributes {dist.annotations = 5 : i64} {
  dist.mesh @mesh <["data"=2, "tensor"=2]>
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = math.exp %x {dist.shardings = [#dist.sharding<[{"data"}]>]} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @main(%x: tensor<4xf32> {nn.dims = ["E"]}) -> tensor<4xf32> {
    %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
