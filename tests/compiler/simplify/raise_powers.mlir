// RUN: partita-opt %s --partita-raise-composites | FileCheck %s

// CHECK-LABEL: func @cube
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[S:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: arith.mulf %[[S]], %[[X]]
func.func @cube(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<3.0> : tensor<4xf32>
  %y = math.powf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @root
// CHECK-NEXT: math.sqrt
func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<0.5> : tensor<4xf32>
  %y = math.powf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @other_exponent
// CHECK: math.powf
func.func @other_exponent(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<0.3> : tensor<4xf32>
  %y = math.powf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}

// The product is exact, because 1/8 is a float.
// CHECK-LABEL: func @divided_by_8
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<1.250000e-01>
// CHECK-NEXT: arith.mulf %{{.*}}, %[[C]]
func.func @divided_by_8(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<8.0> : tensor<4xf32>
  %y = arith.divf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @divided_by_3
// CHECK: arith.divf
func.func @divided_by_3(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<3.0> : tensor<4xf32>
  %y = arith.divf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}
