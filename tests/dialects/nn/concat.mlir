// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// CHECK-LABEL: @concat
// CHECK: nn.concat %arg0, %arg1 axis = 1 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
func.func @concat(%a: tensor<2x1xf32>, %b: tensor<2x3xf32>) {
  %y = nn.concat %a, %b axis = 1 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// CANON-LABEL: @of_one
// CANON-NEXT: return %arg0
func.func @of_one(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.concat %x axis = 0 : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CANON-LABEL: @with_an_empty_input
// CANON-NEXT: return %arg0
func.func @with_an_empty_input(%x: tensor<2xf32>, %empty: tensor<0xf32>) -> tensor<2xf32> {
  %0 = nn.concat %x, %empty axis = 0 : (tensor<2xf32>, tensor<0xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CANON-LABEL: @of_constants
// CANON-NEXT: arith.constant dense<[1, 2, 2]> : tensor<3xi64>
func.func @of_constants() -> tensor<3xi64> {
  %a = arith.constant dense<1> : tensor<1xi64>
  %b = arith.constant dense<2> : tensor<2xi64>
  %0 = nn.concat %a, %b axis = 0 : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  return %0 : tensor<3xi64>
}

// Concatenating equal splats gives a splat of any size; splats of different values are not folded.
// CANON-LABEL: @of_splats
// CANON-DAG: arith.constant dense<7> : tensor<120000xi64>
// CANON-DAG: nn.concat
func.func @of_splats() -> (tensor<120000xi64>, tensor<120000xi64>) {
  %a = arith.constant dense<7> : tensor<60000xi64>
  %b = arith.constant dense<8> : tensor<60000xi64>
  %0 = nn.concat %a, %a axis = 0 : (tensor<60000xi64>, tensor<60000xi64>) -> tensor<120000xi64>
  %1 = nn.concat %a, %b axis = 0 : (tensor<60000xi64>, tensor<60000xi64>) -> tensor<120000xi64>
  return %0, %1 : tensor<120000xi64>, tensor<120000xi64>
}
