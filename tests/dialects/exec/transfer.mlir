// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: exec.send %arg0 axes = [0, 1, 2] peer = 1 : tensor<4x6xf32>
// CHECK: exec.receive axes = [0, 1, 2] peer = 0 : tensor<6xbf16>
func.func @transfers(%x: tensor<4x6xf32>) -> tensor<6xbf16> {
  exec.send %x axes = [0, 1, 2] peer = 1 : tensor<4x6xf32>
  %y = exec.receive axes = [0, 1, 2] peer = 0 : tensor<6xbf16>
  return %y : tensor<6xbf16>
}
