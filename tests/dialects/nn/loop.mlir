// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: @loop
// CHECK: nn.loop @halve(%arg0, %arg1, %arg2) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)
func.func @loop(%more: tensor<i1>, %x: tensor<4xf32>, %tolerance: tensor<f32>) -> tensor<4xf32> {
  %go, %y = nn.loop @halve(%more, %x, %tolerance) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> (tensor<i1>, tensor<4xf32>)
  return %y : tensor<4xf32>
}

func.func private @halve(%go: tensor<i1>, %x: tensor<4xf32>, %tolerance: tensor<f32>) -> (tensor<i1>, tensor<4xf32>) {
  %half = arith.constant dense<0.5> : tensor<4xf32>
  %y = arith.mulf %x, %half : tensor<4xf32>
  %largest = nn.reduce max %y dims = [0] : tensor<4xf32> -> tensor<f32>
  %again = arith.cmpf ogt, %largest, %tolerance : tensor<f32>
  return %again, %y : tensor<i1>, tensor<4xf32>
}
