// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: dist.mesh @mesh <["data"=2, "tensor"=4, "pipe"=1]> device_ids = [7, 6, 5, 4, 3, 2, 1, 0]
dist.mesh @mesh <["data"=2, "tensor"=4, "pipe"=1]> device_ids = [7, 6, 5, 4, 3, 2, 1, 0]

// CHECK: @sharding(%{{.*}}: tensor<2x8x7xf32> {dist.sharding = #dist.sharding<[{"data"}, {"tensor":(1)2, ?}p1, {}] replicated = {"pipe"} unreduced = {"tensor":(2)2}>})
func.func @sharding(%x: tensor<2x8x7xf32> {dist.sharding = #dist.sharding<[{"data"}, {"tensor":(1)2, ?}p1, {} ] replicated = {"pipe"} unreduced = {"tensor":(2)2}>}) {
  return
}

// CHECK: @priorities(%{{.*}}: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"data", "tensor", ?}p[1, 0], {"pipe"}p2]>})
func.func @priorities(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"data", "tensor", ?}p[1, 0], {"pipe"}p[2]]>}) {
  return
}

// An image of 7 x 7, flattened: each device has whole rows of the image.
// CHECK: {dist.sharding = #dist.sharding<[{"data", ?}p1|28]>}
func.func @block(%x: tensor<49xf32> {dist.sharding = #dist.sharding<[{"data", ?}p1|28]>}) {
  return
}

// CHECK: @scalar(%{{.*}}: tensor<f32> {dist.sharding = #dist.sharding<[] unreduced = {"data"}>})
func.func @scalar(%x: tensor<f32> {dist.sharding = #dist.sharding<[] unreduced = {"data"}>}) {
  return
}

// CHECK: @local(%{{.*}}: tensor<2x5xf32> {dist.global_type = tensor<7x5xf32>, dist.sharding = #dist.sharding<[{"tensor"}, {}]>}) -> (tensor<4x5xf32> {dist.global_type = tensor<7x5xf32>, dist.sharding = #dist.sharding<[{"data"}, {}]>})
func.func @local(%x: tensor<2x5xf32> {dist.sharding = #dist.sharding<[{"tensor"}, {}]>, dist.global_type = tensor<7x5xf32>})
    -> (tensor<4x5xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>, dist.global_type = tensor<7x5xf32>}) {
  %0 = arith.constant dense<0.0> : tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// CHECK: arith.addf %{{.*}} {dist.shardings = [#dist.sharding<[{"data"}]>]} : tensor<8xf32>
func.func @operation(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %x, %x {dist.shardings = [#dist.sharding<[{"data"}]>]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK: test.axes = #dist.axes<["data", "tensor":(1)2]>, test.axis = #dist.axis<"data":(2)4>
// CHECK-SAME: test.dim = #dist.dim<{"data", ?}p1|28>, test.mesh = #dist.mesh<["data"=2, "tensor"=4]>, test.mesh_axis = #dist.mesh_axis<"data"=2>
func.func @alone() attributes {test.axis = #dist.axis<"data":(2)4>, test.axes = #dist.axes<["data", "tensor":(1)2]>,
    test.dim = #dist.dim<{"data", ?}p1|28>, test.mesh = #dist.mesh<["data"=2, "tensor"=4]>, test.mesh_axis = #dist.mesh_axis<"data"=2>} {
  return
}
