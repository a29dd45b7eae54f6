// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @rms_norm
// CHECK: nn.rms_norm %arg0 scale(%arg1 : tensor<8xf32>) axis = 1 epsilon = 9.9999999999999995E-7 : tensor<2x8xf32>
// CHECK: nn.rms_norm %arg0 axis = 0 epsilon = 1.000000e-05 : tensor<2x8xf32>
func.func @rms_norm(%x: tensor<2x8xf32>, %g: tensor<8xf32>) {
  %y = nn.rms_norm %x scale(%g : tensor<8xf32>) axis = 1 epsilon = 1.0e-6 : tensor<2x8xf32>
  %z = nn.rms_norm %x axis = 0 epsilon = 1.000000e-05 : tensor<2x8xf32>
  return
}
