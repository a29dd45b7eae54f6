// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @iota
// CHECK: nn.iota dim = 0 : tensor<4xi64>
func.func @iota() {
  %y = nn.iota dim = 0 : tensor<4xi64>
  return
}
