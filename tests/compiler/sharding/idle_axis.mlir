// RUN: partita-opt %s "--partita-apply-plan=mesh=d=2,t=3,one=1 shard=B=d" 2>&1 | FileCheck %s
// RUN: partita-opt %s "--partita-apply-plan=mesh=d=2 shard=B=d" 2>&1 | FileCheck %s --check-prefix=BUSY
// RUN: partita-opt %s "--partita-apply-plan=mesh=t=3 shard=M=t" 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: partita-opt %s "--partita-apply-plan=mesh=p=2,d=2 shard=D=p;B=d" 2>&1 | FileCheck %s --check-prefix=DEPTH

// CHECK-NOT: axis 'd'
// CHECK: warning: axis 't' divides nothing: its 3 devices compute the same; add an entry for it, or leave it out of the mesh
// CHECK-NOT: axis 'one'
// BUSY-NOT: divides nothing
// An entry that divides nothing has a warning; its axis gets no second one.
// ENTRY: shard 'M' divides nothing
// ENTRY-NOT: axis 't' divides nothing
// Pipeline stages along D have different layers, so no tensor is divided over the axis.
// DEPTH-NOT: divides nothing
// DEPTH: @main({{.*}}dist.sharding = {{[^:]*}}{"d"
// DEPTH-NOT: {"p"
func.func @main(%x: tensor<8x6xf32> {nn.dims = ["B", "E"], nn.kind = "input", nn.name = "x"}) -> tensor<8x6xf32> {
  %0 = math.tanh %x {nn.dims = [["B", "E"]]} : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
