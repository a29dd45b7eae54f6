// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: dist.mesh @mesh <["data"=2, "tensor"=4]>
dist.mesh @mesh <["data"=2, "tensor"=4]>

// CHECK: dist.constraint %arg0 <[{"data"}, {?}]> : tensor<8x6xf32>
func.func @constraint(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %y = dist.constraint %x <[{"data"}, {?} ]> : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// CHECK: dist.barrier %arg0 forward : tensor<8x6xf32>
func.func @barrier(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %y = dist.barrier %x forward : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// CHECK: dist.group %arg0 id = 3 : tensor<8x6xf32>
func.func @group(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %y = dist.group %x id = 3 : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// CHECK: dist.reshard %arg0 from <[{"data"}, {}]> to <[{}, {"data"}]> : tensor<8x6xf32>
func.func @reshard(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %y = dist.reshard %x from <[{"data"}, {} ]> to <[{}, {"data"} ]> : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// CHECK: dist.all_reduce %arg0 over ["tensor"] sum {why = ["h.0.mlp.down", "M"]} : tensor<4x6xf32>
func.func @all_reduce(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %y = dist.all_reduce %x over ["tensor"] sum : tensor<4x6xf32>
  %z = dist.all_reduce %x over ["tensor"] sum {why = ["h.0.mlp.down", "M"]} : tensor<4x6xf32>
  return %y, %z : tensor<4x6xf32>, tensor<4x6xf32>
}

// CHECK: dist.all_gather %arg0 over ["tensor"] dim = 1 : tensor<4x2xf32> -> tensor<4x7xf32>
func.func @all_gather(%x: tensor<4x2xf32>) -> tensor<4x7xf32> {
  %y = dist.all_gather %x over ["tensor"] dim = 1 : tensor<4x2xf32> -> tensor<4x7xf32>
  return %y : tensor<4x7xf32>
}

// CHECK: dist.reduce_scatter %arg0 over ["tensor"] dim = 1 sum : tensor<4x7xf32> -> tensor<4x2xf32>
func.func @reduce_scatter(%x: tensor<4x7xf32>) -> tensor<4x2xf32> {
  %y = dist.reduce_scatter %x over ["tensor"] dim = 1 sum : tensor<4x7xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// CHECK: dist.all_slice %arg0 over ["tensor"] dim = 1 : tensor<4x7xf32> -> tensor<4x2xf32>
func.func @all_slice(%x: tensor<4x7xf32>) -> tensor<4x2xf32> {
  %y = dist.all_slice %x over ["tensor"] dim = 1 : tensor<4x7xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// CHECK: dist.all_to_all %arg0 over ["tensor"] split = 0 concat = 1 : tensor<8x2xf32> -> tensor<2x7xf32>
func.func @all_to_all(%x: tensor<8x2xf32>) -> tensor<2x7xf32> {
  %y = dist.all_to_all %x over ["tensor"] split = 0 concat = 1 : tensor<8x2xf32> -> tensor<2x7xf32>
  return %y : tensor<2x7xf32>
}

// CHECK: dist.permute %arg0 over ["data", "tensor"] to ["tensor", "data"] : tensor<4x6xf32>
func.func @permute(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = dist.permute %x over ["data", "tensor"] to ["tensor", "data"] : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// A permutation between parts of one axis.
// CHECK: dist.permute %arg0 over ["tensor"] to ["tensor":(2)2, "tensor":(1)2] : tensor<4x6xf32>
func.func @permute_parts(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = dist.permute %x over ["tensor"] to ["tensor":(2)2, "tensor":(1)2] : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK: dist.permute %arg0 over ["tensor"] to ["tensor"] shift = 1 : tensor<4x6xf32>
func.func @permute_ring(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = dist.permute %x over ["tensor"] to ["tensor"] shift = 1 : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK: dist.exchange %arg0 over ["tensor"] dim = 0 size = 14 step = 4 offset = -1 fill = 0.000000e+00 : tensor<4x6xf32> -> tensor<6x6xf32>
func.func @exchange(%x: tensor<4x6xf32>) -> tensor<6x6xf32> {
  %y = dist.exchange %x over ["tensor"] dim = 0 size = 14 step = 4 offset = -1 fill = 0.0 : tensor<4x6xf32> -> tensor<6x6xf32>
  return %y : tensor<6x6xf32>
}

// Blocks in reverse order.
// CHECK: dist.exchange %arg0 over ["tensor"] dim = 0 size = 16 step = -4 offset = 12 fill = 0.000000e+00 : tensor<4x6xf32> -> tensor<4x6xf32>
func.func @exchange_reversed(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = dist.exchange %x over ["tensor"] dim = 0 size = 16 step = -4 offset = 12 fill = 0.0 : tensor<4x6xf32> -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK: dist.send_rows %arg0 to %arg1 over ["tensor"] fill = -1.000000e+00 : tensor<4x6xf32>, tensor<4x2xi64> -> tensor<32x6xf32>
func.func @send_rows(%x: tensor<4x6xf32>, %to: tensor<4x2xi64>) -> tensor<32x6xf32> {
  %y = dist.send_rows %x to %to over ["tensor"] fill = -1.0 : tensor<4x6xf32>, tensor<4x2xi64> -> tensor<32x6xf32>
  return %y : tensor<32x6xf32>
}

// CHECK: dist.return_rows %arg0 to %arg1 over ["tensor"] : tensor<32x6xf32>, tensor<4x2xi64> -> tensor<8x6xf32>
func.func @return_rows(%x: tensor<32x6xf32>, %to: tensor<4x2xi64>) -> tensor<8x6xf32> {
  %y = dist.return_rows %x to %to over ["tensor"] : tensor<32x6xf32>, tensor<4x2xi64> -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// CHECK: dist.broadcast %arg0 over ["tensor"] root = 0 : tensor<4x6xf32>
func.func @broadcast(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = dist.broadcast %x over ["tensor"] root = 0 : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK: dist.coordinate over ["data", "tensor"] : tensor<i64>
func.func @coordinate() -> tensor<i64> {
  %i = dist.coordinate over ["data", "tensor"] : tensor<i64>
  return %i : tensor<i64>
}

// CHECK-LABEL: @transfers
func.func @transfers(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // CHECK: dist.send %arg0 over ["data"] to = 1 : tensor<4x6xf32>
  dist.send %x over ["data"] to = 1 : tensor<4x6xf32>
  // CHECK: dist.receive over ["data"] from = 1 : tensor<4x6xf32>
  %y = dist.receive over ["data"] from = 1 : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
