// Executes each kind of collective: 7 rows in blocks of 2 on 4 devices.
// RUN: partita compile %s -o %t.partita
// RUN: partita-run %t.partita --input x=arange --output-dir %t.out
// RUN: od -An -v -tf4 -j128 -w8 %t.out/gathered.npy | FileCheck %s --check-prefix=ROWS
// RUN: od -An -v -tf4 -j128 -w8 %t.out/turned.npy | FileCheck %s --check-prefix=ROWS
// RUN: od -An -v -tf4 -j128 -w8 %t.out/sliced.npy | FileCheck %s --check-prefix=ROWS
// RUN: od -An -v -tf4 -j128 -w8 %t.out/scattered.npy | FileCheck %s --check-prefix=SUMS
// RUN: od -An -v -tf4 -j128 -w8 %t.out/windows.npy | FileCheck %s --check-prefix=WINDOWS
// RUN: od -An -v -tf4 -j128 -w8 %t.out/permuted.npy | FileCheck %s --check-prefix=PERMUTED
// RUN: od -An -v -tf4 -j128 -w8 %t.out/of_one.npy | FileCheck %s --check-prefix=ONE
// RUN: od -An -v -tf4 -j128 -w8 %t.out/greatest.npy | FileCheck %s --check-prefix=GREATEST
// RUN: od -An -v -td8 -j128 -w32 %t.out/index.npy | FileCheck %s --check-prefix=INDEX

// ROWS:      {{^ *}}0 {{ *}}1{{$}}
// ROWS-NEXT: {{^ *}}2 {{ *}}3{{$}}
// ROWS-NEXT: {{^ *}}4 {{ *}}5{{$}}
// ROWS-NEXT: {{^ *}}6 {{ *}}7{{$}}
// ROWS-NEXT: {{^ *}}8 {{ *}}9{{$}}
// ROWS-NEXT: {{^ *}}10 {{ *}}11{{$}}
// ROWS-NEXT: {{^ *}}12 {{ *}}13{{$}}
// ROWS-NOT: {{.}}

// SUMS:      {{^ *}}0 {{ *}}4{{$}}
// SUMS-NEXT: {{^ *}}8 {{ *}}12{{$}}
// SUMS-NEXT: {{^ *}}16 {{ *}}20{{$}}
// SUMS-NEXT: {{^ *}}24 {{ *}}28{{$}}
// SUMS-NEXT: {{^ *}}32 {{ *}}36{{$}}
// SUMS-NEXT: {{^ *}}40 {{ *}}44{{$}}
// SUMS-NEXT: {{^ *}}48 {{ *}}52{{$}}

// WINDOWS:      {{^ *}}-1 {{ *}}-1{{$}}
// WINDOWS-NEXT: {{^ *}}0 {{ *}}1{{$}}
// WINDOWS-NEXT: {{^ *}}2 {{ *}}3{{$}}
// WINDOWS-NEXT: {{^ *}}2 {{ *}}3{{$}}
// WINDOWS-NEXT: {{^ *}}4 {{ *}}5{{$}}
// WINDOWS-NEXT: {{^ *}}6 {{ *}}7{{$}}
// WINDOWS-NEXT: {{^ *}}6 {{ *}}7{{$}}
// WINDOWS-NEXT: {{^ *}}8 {{ *}}9{{$}}
// WINDOWS-NEXT: {{^ *}}10 {{ *}}11{{$}}
// WINDOWS-NEXT: {{^ *}}10 {{ *}}11{{$}}
// WINDOWS-NEXT: {{^ *}}12 {{ *}}13{{$}}
// WINDOWS-NEXT: {{^ *}}-1 {{ *}}-1{{$}}

// The second and the third device exchange their rows.
// PERMUTED:      {{^ *}}0 {{ *}}1{{$}}
// PERMUTED-NEXT: {{^ *}}2 {{ *}}3{{$}}
// PERMUTED-NEXT: {{^ *}}8 {{ *}}9{{$}}
// PERMUTED-NEXT: {{^ *}}10 {{ *}}11{{$}}
// PERMUTED-NEXT: {{^ *}}4 {{ *}}5{{$}}
// PERMUTED-NEXT: {{^ *}}6 {{ *}}7{{$}}
// PERMUTED-NEXT: {{^ *}}12 {{ *}}13{{$}}

// ONE:      {{^ *}}4 {{ *}}5{{$}}
// ONE-NEXT: {{^ *}}6 {{ *}}7{{$}}

// GREATEST:      {{^ *}}12 {{ *}}13{{$}}
// GREATEST-NEXT: {{^ *}}10 {{ *}}11{{$}}

// INDEX: {{^ *}}0 {{ *}}1 {{ *}}2 {{ *}}3{{$}}

dist.mesh @mesh <["a"=4]>
func.func @main(%x: tensor<2x2xf32> {nn.kind = "input", nn.name = "x", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<7x2xf32>})
    -> (tensor<7x2xf32> {nn.name = "gathered"},
        tensor<7x1xf32> {nn.name = "turned", dist.sharding = #dist.sharding<[{}, {"a"}|1]>, dist.global_type = tensor<7x2xf32>},
        tensor<2x2xf32> {nn.name = "sliced", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<7x2xf32>},
        tensor<2x2xf32> {nn.name = "scattered", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<7x2xf32>},
        tensor<3x2xf32> {nn.name = "windows", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<12x2xf32>},
        tensor<2x2xf32> {nn.name = "permuted", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<8x2xf32>},
        tensor<2x2xf32> {nn.name = "of_one"},
        tensor<2x2xf32> {nn.name = "greatest"},
        tensor<1xi64> {nn.name = "index", dist.sharding = #dist.sharding<[{"a"}]>, dist.global_type = tensor<4xi64>}) {
  %gathered = dist.all_gather %x over ["a"] dim = 0 : tensor<2x2xf32> -> tensor<7x2xf32>
  %turned = dist.all_to_all %x over ["a"] split = 1 concat = 0 : tensor<2x2xf32> -> tensor<7x1xf32>
  %sliced = dist.all_slice %gathered over ["a"] dim = 0 : tensor<7x2xf32> -> tensor<2x2xf32>
  %scattered = dist.reduce_scatter %gathered over ["a"] dim = 0 sum : tensor<7x2xf32> -> tensor<2x2xf32>
  %windows = dist.exchange %x over ["a"] dim = 0 size = 7 step = 2 offset = -1 fill = -1.0 : tensor<2x2xf32> -> tensor<3x2xf32>
  %permuted = dist.permute %x over ["a"] to ["a":(2)2, "a":(1)2] : tensor<2x2xf32>
  %of_one = dist.broadcast %x over ["a"] root = 1 : tensor<2x2xf32>
  %greatest = dist.all_reduce %x over ["a"] max : tensor<2x2xf32>
  %i = dist.coordinate over ["a"] : tensor<i64>
  %index = nn.reshape %i : tensor<i64> -> tensor<1xi64>
  return %gathered, %turned, %sliced, %scattered, %windows, %permuted, %of_one, %greatest, %index
    : tensor<7x2xf32>, tensor<7x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<1xi64>
}
