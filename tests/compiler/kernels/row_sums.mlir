// RUN: partita-opt %s --partita-split-reductions --partita-form-kernels --split-input-file | FileCheck %s

// The backward pass of a norm walks its rows once: one kernel computes the rows' statistics, their gradient and sums of blocks of rows.
// CHECK-LABEL: @norm_grad
// CHECK-NEXT: %[[ALL:.*]]:3 = exec.launch @[[K:.*]](%arg1, %arg0, %arg2)
// CHECK-SAME: (tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>) -> (tensor<8x128x1024xf32>, tensor<8x128x1024xf32>, tensor<8x1024x1024xf32>)
// CHECK: return %{{.*}}, %{{.*}}, %[[ALL]]#2
// CHECK: func.func private @[[K]]
// CHECK: kernel.row_sums
// CHECK: kernel.row_sums
func.func @norm_grad(%x: tensor<8x1024x1024xf32>, %g: tensor<8x1024x1024xf32>, %r: tensor<8x1024x1024xf32>)
    -> (tensor<1024xf32>, tensor<1024xf32>, tensor<8x1024x1024xf32>) {
  %beta = nn.reduce sum %g dims = [0, 1] : tensor<8x1024x1024xf32> -> tensor<1024xf32>
  %s = nn.reduce sum %x dims = [2] : tensor<8x1024x1024xf32> -> tensor<8x1024xf32>
  %m = nn.broadcast %s dims = [0, 1] : tensor<8x1024xf32> -> tensor<8x1024x1024xf32>
  %c = arith.subf %x, %m : tensor<8x1024x1024xf32>
  %gc = arith.mulf %g, %c : tensor<8x1024x1024xf32>
  %gamma = nn.reduce sum %gc dims = [0, 1] : tensor<8x1024x1024xf32> -> tensor<1024xf32>
  %t = nn.reduce sum %gc dims = [2] : tensor<8x1024x1024xf32> -> tensor<8x1024xf32>
  %b = nn.broadcast %t dims = [0, 1] : tensor<8x1024xf32> -> tensor<8x1024x1024xf32>
  %d = arith.mulf %c, %b : tensor<8x1024x1024xf32>
  %dx = arith.subf %g, %d : tensor<8x1024x1024xf32>
  %all = arith.addf %dx, %r : tensor<8x1024x1024xf32>
  return %beta, %gamma, %all : tensor<1024xf32>, tensor<1024xf32>, tensor<8x1024x1024xf32>
}

// -----

// 197 rows are prime: 64 blocks of whole rows would leave most of a GPU idle.
// CHECK-LABEL: @few_blocks
// CHECK-NOT: kernel.row_sums
func.func @few_blocks(%x: tensor<64x197x768xf32>, %g: tensor<64x197x768xf32>, %r: tensor<64x197x768xf32>)
    -> (tensor<768xf32>, tensor<768xf32>, tensor<64x197x768xf32>) {
  %beta = nn.reduce sum %g dims = [0, 1] : tensor<64x197x768xf32> -> tensor<768xf32>
  %s = nn.reduce sum %x dims = [2] : tensor<64x197x768xf32> -> tensor<64x197xf32>
  %m = nn.broadcast %s dims = [0, 1] : tensor<64x197xf32> -> tensor<64x197x768xf32>
  %c = arith.subf %x, %m : tensor<64x197x768xf32>
  %gc = arith.mulf %g, %c : tensor<64x197x768xf32>
  %gamma = nn.reduce sum %gc dims = [0, 1] : tensor<64x197x768xf32> -> tensor<768xf32>
  %t = nn.reduce sum %gc dims = [2] : tensor<64x197x768xf32> -> tensor<64x197xf32>
  %b = nn.broadcast %t dims = [0, 1] : tensor<64x197xf32> -> tensor<64x197x768xf32>
  %d = arith.mulf %c, %b : tensor<64x197x768xf32>
  %dx = arith.subf %g, %d : tensor<64x197x768xf32>
  %all = arith.addf %dx, %r : tensor<64x197x768xf32>
  return %beta, %gamma, %all : tensor<768xf32>, tensor<768xf32>, tensor<64x197x768xf32>
}

// -----

// A sum of rows that no one reduces along their elements, such as the gradient of a bias, stays a kernel that divides rows among warps.
// CHECK-LABEL: @bias_grad
// CHECK-NOT: kernel.row_sums
func.func @bias_grad(%g: tensor<8x1024x1024xf32>) -> (tensor<1024xf32>, tensor<8x1024x1024xf32>) {
  %bias = nn.reduce sum %g dims = [0, 1] : tensor<8x1024x1024xf32> -> tensor<1024xf32>
  %t = math.tanh %g : tensor<8x1024x1024xf32>
  return %bias, %t : tensor<1024xf32>, tensor<8x1024x1024xf32>
}

// -----

// The rows' gradient depends on the sum: they cannot be one kernel.
// CHECK-LABEL: @dependent
// CHECK: exec.launch
// CHECK: exec.launch
// CHECK: exec.launch
// CHECK: return
func.func @dependent(%g: tensor<8x1024x1024xf32>) -> tensor<8x1024x1024xf32> {
  %sum = nn.reduce sum %g dims = [0, 1] : tensor<8x1024x1024xf32> -> tensor<1024xf32>
  %b = nn.broadcast %sum dims = [2] : tensor<1024xf32> -> tensor<8x1024x1024xf32>
  %s = nn.reduce sum %g dims = [2] : tensor<8x1024x1024xf32> -> tensor<8x1024xf32>
  %m = nn.broadcast %s dims = [0, 1] : tensor<8x1024xf32> -> tensor<8x1024x1024xf32>
  %c = arith.subf %g, %m : tensor<8x1024x1024xf32>
  %d = arith.mulf %c, %b : tensor<8x1024x1024xf32>
  return %d : tensor<8x1024x1024xf32>
}

// -----

// The sum joins the kernel that reads its operand, not another one with rows of the same shape.
// CHECK-LABEL: @two
// CHECK-DAG: %{{.*}}:2 = exec.launch @kernel_{{[0-9]+}}(%arg0)
// CHECK-DAG: exec.launch @kernel_{{[0-9]+}}(%arg1) : (tensor<8x1024x1024xf32>) -> tensor<8x1024x1024xf32>
func.func @two(%x: tensor<8x1024x1024xf32>, %y: tensor<8x1024x1024xf32>) -> (tensor<1024xf32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>) {
  %sum = nn.reduce sum %x dims = [0, 1] : tensor<8x1024x1024xf32> -> tensor<1024xf32>
  %s = nn.reduce sum %x dims = [2] : tensor<8x1024x1024xf32> -> tensor<8x1024xf32>
  %m = nn.broadcast %s dims = [0, 1] : tensor<8x1024xf32> -> tensor<8x1024x1024xf32>
  %c = arith.subf %x, %m : tensor<8x1024x1024xf32>
  %t = nn.reduce max %y dims = [2] : tensor<8x1024x1024xf32> -> tensor<8x1024xf32>
  %n = nn.broadcast %t dims = [0, 1] : tensor<8x1024xf32> -> tensor<8x1024x1024xf32>
  %d = arith.subf %y, %n : tensor<8x1024x1024xf32>
  return %sum, %c, %d : tensor<1024xf32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>
}
