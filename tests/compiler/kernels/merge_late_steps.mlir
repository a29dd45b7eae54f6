// RUN: partita-opt %s --partita-split-reductions --partita-form-kernels --split-input-file | FileCheck %s

// Each sum takes three steps. The second steps are one launch, and so are the last ones, even between other operations.
// CHECK-LABEL: @independent
// CHECK: %[[A:.*]] = exec.launch @{{.*}}(%arg0) : (tensor<8192x1024xf32>)
// CHECK: exec.gemm
// CHECK: %[[B:.*]] = exec.launch @{{.*}}(%arg1) : (tensor<8192x768xf32>)
// CHECK: %[[C:.*]]:2 = exec.launch @{{.*}}(%[[A]], %[[B]]) : (tensor<512x1024xf32>, tensor<512x768xf32>)
// CHECK: %[[D:.*]]:2 = exec.launch @{{.*}}(%[[C]]#0, %[[C]]#1)
// CHECK-SAME: -> (tensor<1024xf32>, tensor<768xf32>)
// CHECK-NOT: exec.launch
// CHECK: return
func.func @independent(%x: tensor<8192x1024xf32>, %y: tensor<8192x768xf32>) -> (tensor<1024xf32>, tensor<768xf32>, tensor<1024x768xf32>) {
  %0 = nn.reduce sum %x dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  %1 = exec.gemm %x, %y sizes = [1, 1024, 768, 8192] lhs_strides = [0, 1, 1024] rhs_strides = [0, 768, 1] : (tensor<8192x1024xf32>, tensor<8192x768xf32>) -> tensor<1024x768xf32>
  %2 = nn.reduce sum %y dims = [0] : tensor<8192x768xf32> -> tensor<768xf32>
  return %0, %2, %1 : tensor<1024xf32>, tensor<768xf32>, tensor<1024x768xf32>
}

// -----

// The second sum depends on the first.
// CHECK-LABEL: @dependent
// CHECK-COUNT-6: exec.launch
// CHECK: return
func.func @dependent(%x: tensor<8192x1024xf32>) -> tensor<1024xf32> {
  %0 = nn.reduce sum %x dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  %1 = nn.broadcast %0 dims = [1] : tensor<1024xf32> -> tensor<8192x1024xf32>
  %2 = arith.subf %x, %1 : tensor<8192x1024xf32>
  %3 = nn.reduce sum %2 dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  return %3 : tensor<1024xf32>
}

// -----

// A call in between may need memory that partial results would take.
// CHECK-LABEL: @around_a_call
// CHECK-COUNT-3: exec.launch
// CHECK: call
// CHECK-COUNT-3: exec.launch
// CHECK: return
func.func private @f(%x: tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
func.func @around_a_call(%x: tensor<8192x1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %0 = nn.reduce sum %x dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  %1 = func.call @f(%x) : (tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  %2 = nn.reduce sum %1 dims = [0] : tensor<8192x1024xf32> -> tensor<1024xf32>
  return %0, %2 : tensor<1024xf32>, tensor<1024xf32>
}
