// RUN: partita-opt %s --partita-round-float8-factors "--partita-apply-plan=mesh=data=2 shard=B=data" --partita-partition --canonicalize --cse | FileCheck %s

// Devices that divide a factor agree on its largest number, so all have one scale. The weight, which is whole on each
// device, needs no exchange.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<16x64xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : tensor<16x64xbf16> to tensor<16x64xf32>
// CHECK: %[[SIZE:.*]] = math.absf %[[WIDE]]
// CHECK: %[[OWN:.*]] = nn.reduce max %[[SIZE]] dims = [0, 1] : tensor<16x64xf32> -> tensor<f32>
// CHECK: %[[MAX:.*]] = dist.all_reduce %[[OWN]] over ["data"] max
// CHECK: arith.bitcast %[[MAX]] : tensor<f32> to tensor<i32>
// CHECK-NOT: dist.
// CHECK: return
func.func @main(%x: tensor<32x64xbf16> {nn.kind = "input", nn.name = "x", nn.dims = ["B", "E"]},
                %w: tensor<64x48xbf16> {nn.kind = "parameter", nn.name = "w", nn.dims = ["E", "M"]}) -> tensor<32x48xbf16> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] {nn.float8 = "forward"} : tensor<32x64xbf16>, tensor<64x48xbf16> -> tensor<32x48xbf16>
  return %0 : tensor<32x48xbf16>
}
