// RUN: partita-opt %s --partita-form-kernels --split-input-file | FileCheck %s

// Elementwise operations before and after a row operation join its kernel.
// CHECK-LABEL: @rows
// CHECK-NEXT: exec.launch @kernel_0(%arg0, %arg1)
// CHECK-NEXT: return
// CHECK: func.func private @kernel_0
// CHECK: arith.addf
// CHECK: nn.softmax
// CHECK: math.tanh
func.func @rows(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = arith.addf %x, %y : tensor<4x8xf32>
  %1 = nn.softmax %0 axis = 1 : tensor<4x8xf32>
  %2 = math.tanh %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// The residual sum is a second result of the kernel that normalises it.
// CHECK-LABEL: @residual
// CHECK-NEXT: %[[R:.*]]:2 = exec.launch @kernel_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: return %[[R]]
func.func @residual(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %g: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = arith.addf %x, %y : tensor<4x8xf32>
  %1 = nn.layer_norm %0 scale(%g : tensor<8xf32>) axis = 1 epsilon = 1.0e-5 : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Equal kernels share one function.
// CHECK-LABEL: @twice
// CHECK: exec.launch @kernel_0
// CHECK: exec.gemm
// CHECK: exec.launch @kernel_0
// CHECK-NOT: @kernel_1
func.func @twice(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = math.tanh %x : tensor<4x4xf32>
  %1 = exec.gemm %0, %w sizes = [1, 4, 4, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 4, 1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = math.tanh %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Operations before and after a library call cannot share a kernel if the call depends on the first.
// CHECK-LABEL: @around
// CHECK: exec.launch @kernel_0(%arg0)
// CHECK: exec.gemm
// CHECK: exec.launch @kernel_1
func.func @around(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = math.tanh %x : tensor<4x4xf32>
  %1 = exec.gemm %0, %w sizes = [1, 4, 4, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 4, 1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = arith.addf %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// A reshape between kernels and library calls becomes a view.
// CHECK-LABEL: @view
// CHECK: exec.launch
// CHECK: exec.view
// CHECK: exec.gemm
func.func @view(%x: tensor<2x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = math.tanh %x : tensor<2x2x4xf32>
  %1 = nn.reshape %0 : tensor<2x2x4xf32> -> tensor<4x4xf32>
  %2 = exec.gemm %1, %w sizes = [1, 4, 4, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 4, 1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Row statistics, elementwise work on them and their broadcast along the row form one kernel.
// CHECK-LABEL: @statistics
// CHECK-NEXT: exec.launch @kernel_0(%arg0)
// CHECK-NEXT: return
func.func @statistics(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.reduce sum %x dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  %2 = nn.broadcast %1 dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %3 = arith.mulf %x, %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// A vector that is broadcast to all rows is computed once, in a separate kernel.
// CHECK-LABEL: @column
// CHECK: exec.launch @kernel
// CHECK: exec.launch @kernel
func.func @column(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = math.exp %b : tensor<8xf32>
  %1 = nn.broadcast %0 dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %2 = arith.mulf %x, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// The transpose of attention's result joins the kernel, which writes the heads of a position side by side.
// CHECK-LABEL: @attention
// CHECK-NEXT: exec.launch @kernel_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: return
// CHECK: nn.attention
// CHECK: nn.transpose
func.func @attention(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32> {
  %0 = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  %1 = nn.transpose %0 perm = [0, 2, 1, 3] : tensor<1x2x4x8xf32> -> tensor<1x4x2x8xf32>
  return %1 : tensor<1x4x2x8xf32>
}

// -----

// So it does if the kernel returns the log-sum-exp for the backward pass, too.
// CHECK-LABEL: @attention_with_lse
// CHECK-NEXT: exec.launch @kernel_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: return
// CHECK: nn.attention
// CHECK: nn.transpose
func.func @attention_with_lse(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>) {
  %0, %lse = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %1 = nn.transpose %0 perm = [0, 2, 1, 3] : tensor<1x2x4x8xf32> -> tensor<1x4x2x8xf32>
  return %1, %lse : tensor<1x4x2x8xf32>, tensor<1x2x4xf32>
}

// -----

// The transpose is a kernel of its own if its kernel would read the log-sum-exp.
// CHECK-LABEL: @attention_with_lse_read
// CHECK-COUNT-2: exec.launch
// CHECK: return
func.func @attention_with_lse_read(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32> {
  %0, %lse = nn.attention %q, %k, %v scale = 1.0 : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %1 = nn.transpose %0 perm = [0, 2, 1, 3] : tensor<1x2x4x8xf32> -> tensor<1x4x2x8xf32>
  %2 = nn.transpose %lse perm = [0, 2, 1] : tensor<1x2x4xf32> -> tensor<1x4x2xf32>
  %3 = nn.broadcast %2 dims = [0, 1, 2] : tensor<1x4x2xf32> -> tensor<1x4x2x8xf32>
  %4 = arith.addf %1, %3 : tensor<1x4x2x8xf32>
  return %4 : tensor<1x4x2x8xf32>
}

// -----

// A value read at several indices gets a kernel. Recomputing it at each index would take exponential time in a chain of such values.
// CHECK-LABEL: @shifted
// CHECK-COUNT-2: exec.launch
// CHECK-NOT: exec.launch
// CHECK: return
func.func @shifted(%x: tensor<8xf32>, %z: tensor<f32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  %1 = nn.slice %0 starts = [1] strides = [1] : tensor<8xf32> -> tensor<7xf32>
  %2 = nn.pad %1, %z low = [0] high = [1] : tensor<7xf32>, tensor<f32> -> tensor<8xf32>
  %3 = arith.addf %0, %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// A kernel gets another name if the model has a function with the name kernel_0.
// CHECK-LABEL: func.func @kernel_0
// CHECK: exec.launch @kernel_0_0
func.func @kernel_0(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Collectives separate kernels. A kernel writes the collective's operand with the required order of dimensions.
// CHECK-LABEL: @collective
// CHECK: %[[A:.*]] = exec.launch @kernel_{{.*}}(%arg0)
// CHECK: %[[C:.*]] = exec.collective all_reduce %[[A]] axes = [0, 1, 2] : tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK: exec.launch @kernel_{{.*}}(%[[C]])
func.func @collective(%x: tensor<8x4xf32>) -> tensor<32xf32> {
  %0 = math.exp %x : tensor<8x4xf32>
  %1 = nn.transpose %0 perm = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %2 = exec.collective all_reduce %1 axes = [0, 1, 2] : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = nn.reshape %2 : tensor<4x8xf32> -> tensor<32xf32>
  %4 = math.exp %3 : tensor<32xf32>
  return %4 : tensor<32xf32>
}

// -----

// A sum is launched before a later call, since delaying it would keep both
// operands alive. The exp is delayed: its operand is no larger than its result.
// CHECK-LABEL: @sums
// CHECK: %[[A:.*]] = call @part
// CHECK: %[[B:.*]] = call @part
// CHECK: %[[S:.*]] = exec.launch @kernel_{{.*}}(%[[A]], %[[B]])
// CHECK: %[[C:.*]] = call @part
// CHECK-NEXT: %[[D:.*]] = call @part
// CHECK-NEXT: exec.launch @kernel_{{.*}}(%[[C]], %[[S]], %[[D]]) :
// CHECK-NEXT: return
func.func private @part(tensor<8xf32>) -> tensor<8xf32>
func.func @sums(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = call @part(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = call @part(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %0 = arith.addf %a, %b : tensor<8xf32>
  %c = call @part(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = math.exp %c : tensor<8xf32>
  %d = call @part(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = arith.addf %0, %1 : tensor<8xf32>
  %3 = arith.addf %2, %d : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// A private function that consists of one launch is inlined. Other functions stay.
// CHECK-LABEL: @updates
// CHECK-NEXT: %[[A:.*]]:2 = exec.launch @[[K:kernel_.*]](%arg0, %arg1)
// CHECK-NEXT: %[[B:.*]]:2 = exec.launch @[[K]](%[[A]]#1, %arg2)
// CHECK-NEXT: call @nothing
// CHECK-NEXT: return %[[B]]#0, %[[B]]#1
// CHECK-NOT: @update(
func.func @updates(%p: tensor<8xf32>, %g: tensor<8xf32>, %h: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = call @update(%p, %g) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1:2 = call @update(%0#1, %h) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %2 = call @nothing(%p) : (tensor<8xf32>) -> tensor<8xf32>
  return %1#0, %1#1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @update(%p: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = arith.subf %p, %g : tensor<8xf32>
  %1 = arith.mulf %0, %g : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @nothing(%p: tensor<8xf32>) -> tensor<8xf32> {
  return %p : tensor<8xf32>
}

// -----

// Two independent kernels read the same values: one kernel writes both results, and stores nothing in between.
// CHECK-LABEL: @both
// CHECK-NEXT: %[[BOTH:.*]]:2 = exec.launch @kernel_0(%arg0, %arg1)
// CHECK-NEXT: exec.gemm %[[BOTH]]#{{[01]}}
// CHECK-NEXT: exec.gemm %[[BOTH]]#{{[01]}}
// CHECK-NEXT: return
func.func @both(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %t = math.tanh %x : tensor<4x4xf32>
  %h = math.exp %x : tensor<4x4xf32>
  %0 = arith.mulf %t, %h : tensor<4x4xf32>
  %1 = exec.gemm %0, %x sizes = [1, 4, 4, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 4, 1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = arith.addf %t, %h : tensor<4x4xf32>
  %3 = arith.mulf %2, %g : tensor<4x4xf32>
  %4 = exec.gemm %3, %x sizes = [1, 4, 4, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 4, 1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A kernel that depends on another one stays apart.
// CHECK-LABEL: @dependent
// CHECK: exec.launch
// CHECK: exec.gemm
// CHECK: exec.launch
// CHECK: return
func.func @dependent(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %t = math.tanh %x : tensor<4x4xf32>
  %0 = math.exp %t : tensor<4x4xf32>
  %1 = exec.gemm %0, %x sizes = [1, 4, 4, 4] lhs_strides = [0, 4, 1] rhs_strides = [0, 4, 1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = arith.mulf %1, %t : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Both kernels read 16-bit values and widen them for themselves; no kernel writes wide ones.
// CHECK-LABEL: @widened
// CHECK-NOT: -> tensor<4x8xf32>
// CHECK: return
func.func @widened(%x: tensor<4x8xbf16>) -> (tensor<8xf32>, tensor<4x8xbf16>) {
  %0 = arith.extf %x : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %2 = math.tanh %0 : tensor<4x8xf32>
  %3 = arith.truncf %2 : tensor<4x8xf32> to tensor<4x8xbf16>
  return %1, %3 : tensor<8xf32>, tensor<4x8xbf16>
}
