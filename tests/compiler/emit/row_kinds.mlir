// Executes sending and returning rows on 4 devices: the last gets the first row of each, and all get theirs back.
// RUN: partita compile %s -o %t.partita
// RUN: partita-run %t.partita --input x=arange --output-dir %t.out
// RUN: od -An -v -tf4 -j128 -w8 %t.out/sent.npy | FileCheck %s --check-prefix=SENT
// RUN: od -An -v -tf4 -j128 -w8 %t.out/returned.npy | FileCheck %s --check-prefix=RETURNED

// SENT-COUNT-15: {{^ *}}-1 {{ *}}-1{{$}}
// SENT-NEXT: {{^ *}}0 {{ *}}1{{$}}
// SENT-NEXT: {{^ *}}4 {{ *}}5{{$}}
// SENT-NEXT: {{^ *}}8 {{ *}}9{{$}}
// SENT-NEXT: {{^ *}}12 {{ *}}13{{$}}
// SENT-NEXT: {{^ *}}-1 {{ *}}-1{{$}}
// SENT-NOT: {{.}}

// RETURNED:      {{^ *}}0 {{ *}}1{{$}}
// RETURNED-NEXT: {{^ *}}0 {{ *}}0{{$}}
// RETURNED-NEXT: {{^ *}}4 {{ *}}5{{$}}
// RETURNED-NEXT: {{^ *}}0 {{ *}}0{{$}}
// RETURNED-NEXT: {{^ *}}8 {{ *}}9{{$}}
// RETURNED-NEXT: {{^ *}}0 {{ *}}0{{$}}
// RETURNED-NEXT: {{^ *}}12 {{ *}}13{{$}}

dist.mesh @mesh <["a"=4]>
func.func @main(%x: tensor<2x2xf32> {nn.kind = "input", nn.name = "x", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<8x2xf32>})
    -> (tensor<5x2xf32> {nn.name = "sent", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<20x2xf32>},
        tensor<2x2xf32> {nn.name = "returned", dist.sharding = #dist.sharding<[{"a"}, {}]>, dist.global_type = tensor<8x2xf32>}) {
  %to = arith.constant dense<[[3], [-1]]> : tensor<2x1xi64>
  %sent = dist.send_rows %x to %to over ["a"] fill = -1.0 : tensor<2x2xf32>, tensor<2x1xi64> -> tensor<5x2xf32>
  %returned = dist.return_rows %sent to %to over ["a"] : tensor<5x2xf32>, tensor<2x1xi64> -> tensor<2x2xf32>
  return %sent, %returned : tensor<5x2xf32>, tensor<2x2xf32>
}
