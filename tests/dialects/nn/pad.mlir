// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @pad
// CHECK: nn.pad %arg0, %arg1 low = [0, 1] high = [0, 1] : tensor<2x4xf32>, tensor<f32> -> tensor<2x6xf32>
// CHECK: nn.pad %arg0, %arg1 low = [0, 1] high = [0, 2] mode = reflect : tensor<2x4xf32>, tensor<f32> -> tensor<2x7xf32>
func.func @pad(%x: tensor<2x4xf32>, %zero: tensor<f32>) {
  %y = nn.pad %x, %zero low = [0, 1] high = [0, 1] : tensor<2x4xf32>, tensor<f32> -> tensor<2x6xf32>
  %z = nn.pad %x, %zero low = [0, 1] high = [0, 2] mode = reflect : tensor<2x4xf32>, tensor<f32> -> tensor<2x7xf32>
  return
}

// CANON-LABEL: @by_nothing
// CANON-NEXT: return %arg0
func.func @by_nothing(%x: tensor<2xf32>, %v: tensor<f32>) -> tensor<2xf32> {
  %0 = nn.pad %x, %v low = [0] high = [0] : tensor<2xf32>, tensor<f32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CANON-LABEL: @a_splat_with_its_own_value
// CANON-NEXT: arith.constant dense<5> : tensor<1000000xi64>
func.func @a_splat_with_its_own_value() -> tensor<1000000xi64> {
  %x = arith.constant dense<5> : tensor<999999xi64>
  %v = arith.constant dense<5> : tensor<i64>
  %0 = nn.pad %x, %v low = [1] high = [0] : tensor<999999xi64>, tensor<i64> -> tensor<1000000xi64>
  return %0 : tensor<1000000xi64>
}

// CANON-LABEL: @a_splat_with_another_value
// CANON-NEXT: arith.constant dense<[0, 5, 5]> : tensor<3xi64>
func.func @a_splat_with_another_value() -> tensor<3xi64> {
  %x = arith.constant dense<5> : tensor<2xi64>
  %v = arith.constant dense<0> : tensor<i64>
  %0 = nn.pad %x, %v low = [1] high = [0] : tensor<2xi64>, tensor<i64> -> tensor<3xi64>
  return %0 : tensor<3xi64>
}
