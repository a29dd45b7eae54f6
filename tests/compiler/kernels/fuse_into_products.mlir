// RUN: partita-opt %s --partita-fuse-into-products --split-input-file | FileCheck %s

// The activation of an inference joins the product.
// CHECK-LABEL: @inference
// CHECK-NEXT: %[[Y:.*]] = exec.gemm %arg0, %arg1 bias(%arg2 : tensor<16xbf16>) {{.*}} activation = gelu_tanh : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
// CHECK-NEXT: return %[[Y]]
func.func @inference(%x: tensor<8x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xbf16>) -> tensor<8x16xbf16> {
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %slope = arith.constant dense<0.797884583> : tensor<8x16xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<8x16xf32>
  %p = exec.gemm %x, %w bias(%b : tensor<16xbf16>) sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %u = arith.extf %p : tensor<8x16xbf16> to tensor<8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<8x16xf32>
  %i = arith.addf %u, %c : tensor<8x16xf32>
  %a = arith.mulf %i, %slope : tensor<8x16xf32>
  %t = math.tanh %a : tensor<8x16xf32>
  %t1 = arith.addf %t, %one : tensor<8x16xf32>
  %h = arith.mulf %u, %half : tensor<8x16xf32>
  %y = arith.mulf %h, %t1 : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xbf16>
  return %r : tensor<8x16xbf16>
}

// -----

// In training, the product is read as well: x * sigmoid(2 z) is the same function.
// CHECK-LABEL: @training
// CHECK-NEXT: %[[Y:.*]], %[[U:.*]] = exec.gemm {{.*}} activation = gelu_tanh : {{.*}} -> tensor<8x16xbf16> kept tensor<8x16xbf16>
// CHECK-NEXT: return %[[Y]], %[[U]]
func.func @training(%x: tensor<8x8xbf16>, %w: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %slope = arith.constant dense<-1.595769167> : tensor<8x16xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<8x16xf32>
  %p = exec.gemm %x, %w sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %u = arith.extf %p : tensor<8x16xbf16> to tensor<8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<8x16xf32>
  %i = arith.addf %u, %c : tensor<8x16xf32>
  %a = arith.mulf %i, %slope : tensor<8x16xf32>
  %e = math.exp %a : tensor<8x16xf32>
  %s = arith.addf %e, %one : tensor<8x16xf32>
  %y = arith.divf %u, %s : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xbf16>
  return %r, %p : tensor<8x16xbf16>, tensor<8x16xbf16>
}

// -----

// GELU by erf stays a kernel.
// CHECK-LABEL: @erf
// CHECK-NOT: gelu_tanh
// CHECK: math.erf
func.func @erf(%x: tensor<8x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %root = arith.constant dense<0.707106769> : tensor<8x16xf32>
  %p = exec.gemm %x, %w sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %u = arith.extf %p : tensor<8x16xbf16> to tensor<8x16xf32>
  %a = arith.mulf %u, %root : tensor<8x16xf32>
  %t = math.erf %a : tensor<8x16xf32>
  %t1 = arith.addf %t, %one : tensor<8x16xf32>
  %h = arith.mulf %u, %half : tensor<8x16xf32>
  %y = arith.mulf %h, %t1 : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xbf16>
  return %r : tensor<8x16xbf16>
}

// -----

// The library has no rows of 12 elements.
// CHECK-LABEL: @odd
// CHECK: exec.gemm {{.*}} -> tensor<16x12xbf16>
// CHECK-NEXT: nn.reduce
func.func @odd(%x: tensor<8x16xbf16>, %g: tensor<8x12xbf16>) -> (tensor<16x12xbf16>, tensor<12xbf16>) {
  %p = exec.gemm %x, %g sizes = [1, 16, 12, 8] lhs_strides = [0, 1, 16] rhs_strides = [0, 12, 1] : (tensor<8x16xbf16>, tensor<8x12xbf16>) -> tensor<16x12xbf16>
  %s = nn.reduce sum %g dims = [0] : tensor<8x12xbf16> -> tensor<12xbf16>
  return %p, %s : tensor<16x12xbf16>, tensor<12xbf16>
}

// -----

// The gradient of a bias is the sum of a factor of the weight's gradient, also of weights stored as [out, in]. A
// product computes the sums of one factor only.
// CHECK-LABEL: @sums
// CHECK-NEXT: %[[P:.*]], %[[S:.*]] = exec.gemm {{.*}} -> tensor<16x24xbf16> lhs_sums tensor<16xbf16>
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %arg1
// CHECK-NEXT: return %[[P]], %[[S]], %[[R]]
func.func @sums(%x: tensor<2x4x16xbf16>, %g: tensor<2x4x24xbf16>) -> (tensor<16x24xbf16>, tensor<16xbf16>, tensor<24xbf16>) {
  %p = exec.gemm %x, %g sizes = [1, 16, 24, 8] lhs_strides = [0, 1, 16] rhs_strides = [0, 24, 1] : (tensor<2x4x16xbf16>, tensor<2x4x24xbf16>) -> tensor<16x24xbf16>
  %s = nn.reduce sum %x dims = [0, 1] : tensor<2x4x16xbf16> -> tensor<16xbf16>
  %r = nn.reduce sum %g dims = [0, 1] : tensor<2x4x24xbf16> -> tensor<24xbf16>
  return %p, %s, %r : tensor<16x24xbf16>, tensor<16xbf16>, tensor<24xbf16>
}

// -----

// Sums over another dimension, largest elements, and sums that are read before the product stay.
// CHECK-LABEL: @other
// CHECK: nn.reduce sum %arg1 dims = [0]
// CHECK: exec.gemm
// CHECK-NOT: sums
// CHECK: nn.reduce sum %arg1 dims = [1]
// CHECK: nn.reduce max %arg1 dims = [0]
func.func @other(%x: tensor<8x16xbf16>, %g: tensor<8x8xbf16>) -> (tensor<16x8xbf16>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>) {
  %a = nn.reduce sum %g dims = [0] : tensor<8x8xbf16> -> tensor<8xbf16>
  %n = arith.negf %a : tensor<8xbf16>
  %p = exec.gemm %x, %g sizes = [1, 16, 8, 8] lhs_strides = [0, 1, 16] rhs_strides = [0, 8, 1] : (tensor<8x16xbf16>, tensor<8x8xbf16>) -> tensor<16x8xbf16>
  %s = nn.reduce sum %g dims = [1] : tensor<8x8xbf16> -> tensor<8xbf16>
  %m = nn.reduce max %g dims = [0] : tensor<8x8xbf16> -> tensor<8xbf16>
  return %p, %n, %s, %m : tensor<16x8xbf16>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>
}

// -----

// The gradient of GELU joins the product behind it.
// CHECK-LABEL: @gradient
// CHECK-NEXT: %[[D:.*]] = exec.gemm %arg0, %arg1 preactivation(%arg2 : tensor<8x16xbf16>) {{.*}} activation = gelu_tanh : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
// CHECK-NEXT: return %[[D]]
func.func @gradient(%x: tensor<8x8xbf16>, %w: tensor<8x16xbf16>, %v: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %slope = arith.constant dense<0.797884583> : tensor<8x16xf32>
  %steep = arith.constant dense<0.3989422917> : tensor<8x16xf32>
  %cubic = arith.constant dense<0.044715> : tensor<8x16xf32>
  %three = arith.constant dense<0.134145> : tensor<8x16xf32>
  %p = exec.gemm %x, %w sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %g = arith.extf %p : tensor<8x16xbf16> to tensor<8x16xf32>
  %u = arith.extf %v : tensor<8x16xbf16> to tensor<8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<8x16xf32>
  %i = arith.addf %u, %c : tensor<8x16xf32>
  %a = arith.mulf %i, %slope : tensor<8x16xf32>
  %t = math.tanh %a : tensor<8x16xf32>
  %t1 = arith.addf %t, %one : tensor<8x16xf32>
  %l = arith.mulf %t1, %half : tensor<8x16xf32>
  %tt = arith.mulf %t, %t : tensor<8x16xf32>
  %o = arith.subf %one, %tt : tensor<8x16xf32>
  %k = arith.mulf %u2, %three : tensor<8x16xf32>
  %k1 = arith.addf %k, %one : tensor<8x16xf32>
  %f = arith.mulf %k1, %o : tensor<8x16xf32>
  %h = arith.mulf %u, %steep : tensor<8x16xf32>
  %q = arith.mulf %f, %h : tensor<8x16xf32>
  %d = arith.addf %l, %q : tensor<8x16xf32>
  %y = arith.mulf %g, %d : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xbf16>
  return %r : tensor<8x16xbf16>
}

// -----

// If another operation reads the product, too, it stays a kernel.
// CHECK-LABEL: @two_readers
// CHECK: exec.gemm {{.*}} rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
// CHECK: math.tanh
func.func @two_readers(%x: tensor<8x8xbf16>, %w: tensor<8x16xbf16>, %v: tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %slope = arith.constant dense<0.797884583> : tensor<8x16xf32>
  %steep = arith.constant dense<0.3989422917> : tensor<8x16xf32>
  %cubic = arith.constant dense<0.044715> : tensor<8x16xf32>
  %three = arith.constant dense<0.134145> : tensor<8x16xf32>
  %p = exec.gemm %x, %w sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %g = arith.extf %p : tensor<8x16xbf16> to tensor<8x16xf32>
  %u = arith.extf %v : tensor<8x16xbf16> to tensor<8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<8x16xf32>
  %i = arith.addf %u, %c : tensor<8x16xf32>
  %a = arith.mulf %i, %slope : tensor<8x16xf32>
  %t = math.tanh %a : tensor<8x16xf32>
  %t1 = arith.addf %t, %one : tensor<8x16xf32>
  %l = arith.mulf %t1, %half : tensor<8x16xf32>
  %tt = arith.mulf %t, %t : tensor<8x16xf32>
  %o = arith.subf %one, %tt : tensor<8x16xf32>
  %k = arith.mulf %u2, %three : tensor<8x16xf32>
  %k1 = arith.addf %k, %one : tensor<8x16xf32>
  %f = arith.mulf %k1, %o : tensor<8x16xf32>
  %h = arith.mulf %u, %steep : tensor<8x16xf32>
  %q = arith.mulf %f, %h : tensor<8x16xf32>
  %d = arith.addf %l, %q : tensor<8x16xf32>
  %y = arith.mulf %g, %d : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xbf16>
  return %r, %p : tensor<8x16xbf16>, tensor<8x16xbf16>
}

// -----

// A kernel that reads the activation computes both.
// CHECK-LABEL: @elementwise_reader
// CHECK: exec.gemm
// CHECK-NOT: gelu_tanh
// CHECK: math.tanh
// CHECK: arith.negf
func.func @elementwise_reader(%x: tensor<8x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xbf16>) -> tensor<8x16xbf16> {
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %slope = arith.constant dense<0.797884583> : tensor<8x16xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<8x16xf32>
  %p = exec.gemm %x, %w bias(%b : tensor<16xbf16>) sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %u = arith.extf %p : tensor<8x16xbf16> to tensor<8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<8x16xf32>
  %i = arith.addf %u, %c : tensor<8x16xf32>
  %a = arith.mulf %i, %slope : tensor<8x16xf32>
  %t = math.tanh %a : tensor<8x16xf32>
  %t1 = arith.addf %t, %one : tensor<8x16xf32>
  %h = arith.mulf %u, %half : tensor<8x16xf32>
  %y = arith.mulf %h, %t1 : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xbf16>
  %n = arith.negf %r : tensor<8x16xbf16>
  return %n : tensor<8x16xbf16>
}

// -----

// The library finishes a single matrix only.
// CHECK-LABEL: @batch
// CHECK: exec.gemm
// CHECK-NOT: gelu_tanh
// CHECK: math.tanh
func.func @batch(%x: tensor<2x8x8xbf16>, %w: tensor<2x8x16xbf16>, %b: tensor<16xbf16>) -> tensor<2x8x16xbf16> {
  %half = arith.constant dense<0.5> : tensor<2x8x16xf32>
  %one = arith.constant dense<1.0> : tensor<2x8x16xf32>
  %slope = arith.constant dense<0.797884583> : tensor<2x8x16xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<2x8x16xf32>
  %p = exec.gemm %x, %w bias(%b : tensor<16xbf16>) sizes = [2, 8, 16, 8] lhs_strides = [64, 8, 1] rhs_strides = [128, 16, 1] : (tensor<2x8x8xbf16>, tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  %u = arith.extf %p : tensor<2x8x16xbf16> to tensor<2x8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<2x8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<2x8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<2x8x16xf32>
  %i = arith.addf %u, %c : tensor<2x8x16xf32>
  %a = arith.mulf %i, %slope : tensor<2x8x16xf32>
  %t = math.tanh %a : tensor<2x8x16xf32>
  %t1 = arith.addf %t, %one : tensor<2x8x16xf32>
  %h = arith.mulf %u, %half : tensor<2x8x16xf32>
  %y = arith.mulf %h, %t1 : tensor<2x8x16xf32>
  %r = arith.truncf %y : tensor<2x8x16xf32> to tensor<2x8x16xbf16>
  return %r : tensor<2x8x16xbf16>
}

// -----

// Floats of the other 16-bit type join as well.
// CHECK-LABEL: @f16
// CHECK-NEXT: exec.gemm {{.*}} activation = gelu_tanh :
// CHECK-NEXT: return
func.func @f16(%x: tensor<8x8xf16>, %w: tensor<8x16xf16>, %b: tensor<16xf16>) -> tensor<8x16xf16> {
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %slope = arith.constant dense<0.797884583> : tensor<8x16xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<8x16xf32>
  %p = exec.gemm %x, %w bias(%b : tensor<16xf16>) sizes = [1, 8, 16, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 16, 1] : (tensor<8x8xf16>, tensor<8x16xf16>) -> tensor<8x16xf16>
  %u = arith.extf %p : tensor<8x16xf16> to tensor<8x16xf32>
  %u2 = arith.mulf %u, %u : tensor<8x16xf32>
  %u3 = arith.mulf %u2, %u : tensor<8x16xf32>
  %c = arith.mulf %u3, %cubic : tensor<8x16xf32>
  %i = arith.addf %u, %c : tensor<8x16xf32>
  %a = arith.mulf %i, %slope : tensor<8x16xf32>
  %t = math.tanh %a : tensor<8x16xf32>
  %t1 = arith.addf %t, %one : tensor<8x16xf32>
  %h = arith.mulf %u, %half : tensor<8x16xf32>
  %y = arith.mulf %h, %t1 : tensor<8x16xf32>
  %r = arith.truncf %y : tensor<8x16xf32> to tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

// Sums in f32 that are rounded later.
// CHECK-LABEL: @rounded_sums
// CHECK-NEXT: %[[P:.*]], %[[S:.*]] = exec.gemm {{.*}} -> tensor<16x24xbf16> rhs_sums tensor<24xbf16>
// CHECK-NEXT: return %[[P]], %[[S]]
func.func @rounded_sums(%x: tensor<8x16xbf16>, %g: tensor<8x24xbf16>) -> (tensor<16x24xbf16>, tensor<24xbf16>) {
  %p = exec.gemm %x, %g sizes = [1, 16, 24, 8] lhs_strides = [0, 1, 16] rhs_strides = [0, 24, 1] : (tensor<8x16xbf16>, tensor<8x24xbf16>) -> tensor<16x24xbf16>
  %e = arith.extf %g : tensor<8x24xbf16> to tensor<8x24xf32>
  %s = nn.reduce sum %e dims = [0] : tensor<8x24xf32> -> tensor<24xf32>
  %r = arith.truncf %s : tensor<24xf32> to tensor<24xbf16>
  return %p, %r : tensor<16x24xbf16>, tensor<24xbf16>
}
