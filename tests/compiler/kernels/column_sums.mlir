// RUN: partita-opt %s --partita-split-reductions --partita-form-kernels --split-input-file | FileCheck %s

// The kernel that computes and writes a gradient sums its columns on the way: the gradient of a bias. %t and %u, which the library calls
// read, are written by the same kernel, because they share work.
// CHECK-LABEL: @activation_grad
// CHECK: %[[ALL:.*]]:3 = exec.launch @[[K:.*]](%arg0, %arg1)
// CHECK-SAME: -> (tensor<8192x1024xbf16>, tensor<8192x1024xbf16>, tensor<{{[0-9]+}}x1024xf32>)
// CHECK: exec.gemm %[[ALL]]#1
// CHECK: exec.gemm %[[ALL]]#0
// CHECK: func.func private @[[K]]
// CHECK: kernel.column_sums
func.func @activation_grad(%x: tensor<8192x1024xbf16>, %g: tensor<8192x1024xbf16>, %w: tensor<1024x256xbf16>)
    -> (tensor<1024xf32>, tensor<8192x256xbf16>, tensor<8192x256xbf16>) {
  %a = arith.extf %x : tensor<8192x1024xbf16> to tensor<8192x1024xf32>
  %tanh = math.tanh %a : tensor<8192x1024xf32>
  %t = arith.truncf %tanh : tensor<8192x1024xf32> to tensor<8192x1024xbf16>
  %b = arith.extf %g : tensor<8192x1024xbf16> to tensor<8192x1024xf32>
  %m = arith.mulf %b, %tanh : tensor<8192x1024xf32>
  %u = arith.truncf %m : tensor<8192x1024xf32> to tensor<8192x1024xbf16>
  %v = arith.extf %u : tensor<8192x1024xbf16> to tensor<8192x1024xf32>
  %bias = nn.reduce sum %v dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  %0 = exec.gemm %u, %w sizes = [1, 8192, 256, 1024] lhs_strides = [0, 1024, 1] rhs_strides = [0, 256, 1] : (tensor<8192x1024xbf16>, tensor<1024x256xbf16>) -> tensor<8192x256xbf16>
  %1 = exec.gemm %t, %w sizes = [1, 8192, 256, 1024] lhs_strides = [0, 1024, 1] rhs_strides = [0, 256, 1] : (tensor<8192x1024xbf16>, tensor<1024x256xbf16>) -> tensor<8192x256xbf16>
  return %bias, %0, %1 : tensor<1024xf32>, tensor<8192x256xbf16>, tensor<8192x256xbf16>
}

// -----

// A value that only the sum reads is computed by the kernel of the sum, and never written.
// CHECK-LABEL: @only_summed
// CHECK-NOT: kernel.column_sums
// CHECK: exec.launch @{{.*}}(%arg0) : (tensor<8192x1024xf32>) -> tensor<{{[0-9]+}}x1024xf32>
func.func @only_summed(%x: tensor<8192x1024xf32>) -> tensor<1024xf32> {
  %t = math.tanh %x : tensor<8192x1024xf32>
  %0 = nn.reduce sum %t dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// -----

// The warps of a norm walk along rows, not down columns: the sum of its result is another kernel.
// CHECK-LABEL: @norm
// CHECK-NOT: kernel.column_sums
// CHECK: return
func.func @norm(%x: tensor<8192x1024xf32>) -> (tensor<1024xf32>, tensor<8192x1024xf32>) {
  %s = nn.reduce sum %x dims = [1] : tensor<8192x1024xf32> -> tensor<8192xf32>
  %m = nn.broadcast %s dims = [0] : tensor<8192xf32> -> tensor<8192x1024xf32>
  %c = arith.subf %x, %m : tensor<8192x1024xf32>
  %0 = nn.reduce sum %c dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  return %0, %c : tensor<1024xf32>, tensor<8192x1024xf32>
}
