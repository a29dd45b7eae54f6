// RUN: partita-opt %s --partita-choose-float8-products 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING < %t

// A size is no multiple of 16: the user learns that --precision f8 has no effect.
// WARNING: warning: --precision f8: expected products of linear layers whose sizes are multiples of 16, found none among 2 products; the program is that of bf16
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.float8
func.func @main(%x: tensor<16x24xbf16>, %w: tensor<24x64xbf16>) -> tensor<16x24xbf16> {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<16x24xbf16>, tensor<24x64xbf16> -> tensor<16x64xbf16>
  %1 = nn.dot_general %0, %w contract = [1] x [1] : tensor<16x64xbf16>, tensor<24x64xbf16> -> tensor<16x24xbf16>
  return %1 : tensor<16x24xbf16>
}
