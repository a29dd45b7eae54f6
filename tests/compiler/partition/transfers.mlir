// RUN: partita-opt %s --partita-partition | FileCheck %s
// RUN: partita-opt %s --partita-partition --partita-lower-collectives | FileCheck %s --check-prefix=EXEC

dist.mesh @mesh <["d"=2, "t"=2]>

// A value sent between stages has the sharding of its definition on both sides, even if it is a partial sum. It is reduced only
// where a whole value is used. A send and a receive are not taken for one value, and keep their order.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<4x3xf32>
// CHECK: dist.send %arg0 over ["d"] to = 1 : tensor<4x3xf32>
// CHECK: %[[R:.*]] = dist.receive over ["d"] from = 1 : tensor<4x3xf32>
// CHECK: %[[P:.*]] = dist.receive over ["d"] from = 1 : tensor<4xf32>
// CHECK: %[[S:.*]] = dist.all_reduce %[[P]] over ["t"] sum
// CHECK: return %[[R]], %[[S]]
// EXEC: exec.send %arg0 axes = [0, 1, 2] peer = 1 : tensor<4x3xf32>
// EXEC: exec.receive axes = [0, 1, 2] peer = 1 : tensor<4x3xf32>
// EXEC: exec.receive axes = [0, 1, 2] peer = 1 : tensor<4xf32>
func.func @main(%x: tensor<4x6xf32> {dist.sharding = #dist.sharding<[{}, {"t"}]>}) -> (tensor<4x6xf32>, tensor<4xf32>) {
  dist.send %x over ["d"] to = 1 : tensor<4x6xf32>
  %0 = dist.receive over ["d"] from = 1 {dist.shardings = [#dist.sharding<[{}, {"t"}]>]} : tensor<4x6xf32>
  %1 = dist.receive over ["d"] from = 1 {dist.shardings = [#dist.sharding<[{}] unreduced = {"t"}>]} : tensor<4xf32>
  %2 = dist.reshard %1 from <[{}] unreduced = {"t"}> to <[{}]> {dist.shardings = [#dist.sharding<[{}]>]} : tensor<4xf32>
  return %0, %2 : tensor<4x6xf32>, tensor<4xf32>
}
