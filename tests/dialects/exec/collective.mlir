// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: exec.collective all_gather %arg0 axes = [0, 1, 4] {dim = 1 : i64} : tensor<4x2xf32> -> tensor<4x7xf32>
func.func @all_gather(%x: tensor<4x2xf32>) -> tensor<4x7xf32> {
  %y = exec.collective all_gather %x axes = [0, 1, 4] {dim = 1 : i64} : tensor<4x2xf32> -> tensor<4x7xf32>
  return %y : tensor<4x7xf32>
}

// CHECK: exec.collective reduce_scatter %arg0 axes = [0, 1, 2, 1, 2, 2] reduction = max {dim = 0 : i64} : tensor<7xf32> -> tensor<2xf32>
func.func @reduce_scatter(%x: tensor<7xf32>) -> tensor<2xf32> {
  %y = exec.collective reduce_scatter %x axes = [0, 1, 2, 1, 2, 2] reduction = max {dim = 0 : i64} : tensor<7xf32> -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK: exec.collective exchange %arg0 axes = [0, 1, 4] {dim = 0 : i64, fill = 0xFFF0000000000000 : f64, offset = -1 : i64, size = 14 : i64, step = 4 : i64}
func.func @exchange(%x: tensor<4xf32>) -> tensor<6xf32> {
  %y = exec.collective exchange %x axes = [0, 1, 4] {dim = 0 : i64, size = 14 : i64, step = 4 : i64, offset = -1 : i64, fill = 0xFFF0000000000000 : f64} : tensor<4xf32> -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// A group of one device per position is valid, although it moves no data.
// CHECK: exec.collective all_reduce %arg0 axes = [] : tensor<4xf32> -> tensor<4xf32>
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = exec.collective all_reduce %x axes = [] : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
