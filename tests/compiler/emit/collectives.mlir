// The artifact of a divided program: mesh, local types of inputs, outputs and parameters, collectives, coordinates.
// RUN: partita compile %s -o %t.partita
// RUN: partita inspect %t.partita | FileCheck %s
// RUN: partita-run %t.partita --input x=arange --output-dir %t.out
// RUN: od -An -v -tf4 -j128 %t.out/sum.npy | FileCheck %s --check-prefix=SUM
// RUN: od -An -v -tf4 -j128 -w12 %t.out/y.npy | FileCheck %s --check-prefix=Y

// CHECK: devices {{ *}}2: data=2
// CHECK: inputs:
// CHECK-NEXT: x {{ *}}tensor<3x3xf32> [{data}, {}], tensor<2x3xf32> on each device
// CHECK: outputs:
// CHECK-NEXT: sum {{ *}}tensor<3xf32>
// CHECK-NEXT: y {{ *}}tensor<3x3xf32> [{data}, {}], tensor<2x3xf32> on each device

// SUM: {{^ *}}9 {{ *}}12 {{ *}}15{{$}}
// Y: {{^ *}}0 {{ *}}1 {{ *}}2{{$}}
// Y-NEXT: {{^ *}}3 {{ *}}4 {{ *}}5{{$}}
// Y-NEXT: {{^ *}}6 {{ *}}7 {{ *}}8{{$}}
dist.mesh @mesh <["data"=2]>
func.func @main(%x: tensor<2x3xf32> {nn.kind = "input", nn.name = "x", dist.sharding = #dist.sharding<[{"data"}, {}]>, dist.global_type = tensor<3x3xf32>},
                %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>,
                                   dist.sharding = #dist.sharding<[{"data"}]>, dist.global_type = tensor<3xf32>})
    -> (tensor<3xf32> {nn.name = "sum"}, tensor<2x3xf32> {nn.name = "y", dist.sharding = #dist.sharding<[{"data"}, {}]>, dist.global_type = tensor<3x3xf32>}) {
  %whole = dist.all_gather %w over ["data"] dim = 0 : tensor<2xf32> -> tensor<3xf32>
  %i = dist.coordinate over ["data"] : tensor<i64>
  %two = arith.constant dense<2> : tensor<i64>
  %begin = arith.muli %i, %two : tensor<i64>
  %row = nn.iota dim = 0 : tensor<2x3xi64>
  %begins = nn.broadcast %begin dims = [] : tensor<i64> -> tensor<2x3xi64>
  %global = arith.addi %row, %begins : tensor<2x3xi64>
  %size = arith.constant dense<3> : tensor<2x3xi64>
  %there = arith.cmpi slt, %global, %size : tensor<2x3xi64>
  %zero = arith.constant dense<0.0> : tensor<2x3xf32>
  %clean = arith.select %there, %x, %zero : tensor<2x3xi1>, tensor<2x3xf32>
  %part = nn.reduce sum %clean dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
  %sum = dist.all_reduce %part over ["data"] sum : tensor<3xf32>
  %scaled = nn.broadcast %whole dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
  %y = arith.mulf %x, %scaled : tensor<2x3xf32>
  return %sum, %y : tensor<3xf32>, tensor<2x3xf32>
}
