// RUN: not partita-opt %s "--partita-apply-plan=mesh=data=2 shard=B=data;E=data" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not partita-opt %s "--partita-apply-plan=mesh=data=2,t=2 shard=B=data;L=t" 2>&1 | FileCheck %s --check-prefix=SUM

// AXIS: --shard: expected no axis of B for another dimension with --train 0/1-adam, whose parameters differ between the devices that share the batch; found shard 'E' over data; give it another axis, or leave it out
// SUM: expected every device's own gradient of 'w', a sum over data, the axes of B, found one over data{{.*}}t{{.*}}; --shard: shard 'L' divides it too; with --train 0/1-adam leave that out, or take --train 1bit-adam
func.func @main(%x: tensor<8x4x60xf32> {nn.dims = ["B", "L", "E"]},
                %u: tensor<60xf32> {nn.dims = ["E"], nn.kind = "state", nn.name = "w/local_sum"})
    -> (tensor<60xf32> {nn.updates = "w/local_sum"}) attributes {nn.own_states} {
  %g = nn.reduce sum %x dims = [0, 1] : tensor<8x4x60xf32> -> tensor<60xf32>
  %0 = call @add(%u, %g) {nn.own_gradient = "w"} : (tensor<60xf32>, tensor<60xf32>) -> tensor<60xf32>
  return %0 : tensor<60xf32>
}

func.func private @add(%u: tensor<60xf32>, %g: tensor<60xf32>) -> tensor<60xf32> {
  %0 = arith.addf %u, %g : tensor<60xf32>
  return %0 : tensor<60xf32>
}
