// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @layer_norm
// CHECK: nn.layer_norm %arg0 scale(%arg1 : tensor<8xf32>) bias(%arg2 : tensor<8xf32>) axis = 1 epsilon = 1.000000e-05 : tensor<2x8xf32>
// CHECK: nn.layer_norm %arg0 axis = 0 epsilon = 1.000000e-05 : tensor<2x8xf32>
func.func @layer_norm(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  %y = nn.layer_norm %x scale(%g : tensor<8xf32>) bias(%b : tensor<8xf32>) axis = 1 epsilon = 1.0e-5 : tensor<2x8xf32>
  %z = nn.layer_norm %x axis = 0 epsilon = 1.000000e-05 : tensor<2x8xf32>
  return
}
