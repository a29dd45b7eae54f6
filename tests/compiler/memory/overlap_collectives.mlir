// RUN: partita-opt %s --partita-overlap-collectives --split-input-file | FileCheck %s
// RUN: partita-opt %s --partita-overlap-collectives=most-bytes=128 --split-input-file | FileCheck %s --check-prefix=LITTLE
// RUN: partita-opt %s --partita-overlap-collectives --partita-plan-memory --split-input-file | FileCheck %s --check-prefix=PLAN

// A bucket is packed and reduced as soon as its gradients exist, in parallel with the rest of the backward pass. It is unpacked
// before the update that needs it. With little memory, the first bucket is awaited and unpacked before the second starts.
func.func private @pack(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  %0 = arith.constant dense<0.0> : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @unpack(%a: tensor<16xf32>) -> tensor<8xf32> attributes {exec.kernel} {
  %0 = arith.constant dense<0.0> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @backward(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %c = arith.constant dense<0.0> : tensor<16xf32>
  %0 = exec.launch @unpack(%c) : (tensor<16xf32>) -> tensor<8xf32>
  %1 = exec.launch @unpack(%c) : (tensor<16xf32>) -> tensor<8xf32>
  return %0, %1, %1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func private @update(%g: tensor<8xf32>) -> tensor<8xf32> {
  return %g : tensor<8xf32>
}
// CHECK-LABEL: @main
// CHECK: %[[L:.*]]:3 = call @backward(%arg0)
// CHECK-NEXT: %[[P:.*]] = exec.launch @pack(%[[L]]#1, %[[L]]#2)
// CHECK-NEXT: %[[S:.*]] = exec.collective all_reduce %[[P]] axes = [0, 1, 2] {token = 1 : i64}
// CHECK-NEXT: %[[M:.*]]:3 = call @backward(%[[L]]#0)
// CHECK-NEXT: %[[Q:.*]] = exec.launch @pack(%[[M]]#1, %[[M]]#2)
// CHECK-NEXT: %[[T:.*]] = exec.collective all_reduce %[[Q]] axes = [0, 1, 2] {token = 2 : i64}
// CHECK-NEXT: %[[A:.*]] = exec.await %[[S]], %[[P]] token = 1
// CHECK-NEXT: %[[U:.*]] = exec.launch @unpack(%[[A]])
// CHECK-NEXT: call @update(%[[U]])
// CHECK-NEXT: %[[B:.*]] = exec.await %[[T]], %[[Q]] token = 2
// CHECK-NEXT: exec.launch @unpack(%[[B]])

// LITTLE-LABEL: @main
// LITTLE: exec.collective {{.*}} {token = 1 : i64}
// LITTLE-NEXT: call @backward
// LITTLE-NEXT: exec.launch @pack
// LITTLE-NEXT: exec.await {{.*}} token = 1
// LITTLE-NEXT: exec.launch @unpack
// LITTLE-NEXT: exec.collective {{.*}} {token = 2 : i64}
// LITTLE-NEXT: call @update
// LITTLE-NEXT: exec.await {{.*}} token = 2

// Buffers of a collective in flight stay allocated: the results of the call have higher offsets.
// PLAN-LABEL: func.func @main
// PLAN: exec.launch @pack{{.*}}exec.offsets = array<i64: 0>}
// PLAN-NEXT: exec.collective {{.*}}exec.offsets = array<i64: 64>, token = 1
// PLAN-NEXT: call @backward{{.*}}exec.offsets = array<i64: 192, 256, 320>}
// PLAN-NEXT: exec.launch @pack{{.*}}exec.offsets = array<i64: 128>}
// PLAN-NEXT: exec.collective {{.*}}exec.offsets = array<i64: 192>, token = 2
// PLAN-NEXT: exec.await
// PLAN-NEXT: exec.launch @unpack{{.*}}exec.offsets = array<i64: 0>}
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:3 = call @backward(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %1:3 = call @backward(%0#0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %2 = exec.launch @pack(%0#1, %0#2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %3 = exec.collective all_reduce %2 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %4 = exec.launch @unpack(%3) : (tensor<16xf32>) -> tensor<8xf32>
  %5 = exec.launch @pack(%1#1, %1#2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  %6 = exec.collective all_reduce %5 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %7 = exec.launch @unpack(%6) : (tensor<16xf32>) -> tensor<8xf32>
  %8 = call @update(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %9 = call @update(%7) : (tensor<8xf32>) -> tensor<8xf32>
  return %8, %9 : tensor<8xf32>, tensor<8xf32>
}

// -----

// These collectives stay as they are: one without work to overlap, one that moves no data, and one that depends on nothing but
// arguments.
// CHECK-LABEL: @main
// CHECK-NOT: token
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.collective all_gather %w axes = [0, 1, 2] {dim = 0 : i64} : tensor<2xf32> -> tensor<4xf32>
  %2 = call @layer(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = exec.collective all_reduce %2 axes = [0, 1, 2] : tensor<4xf32> -> tensor<4xf32>
  %4 = call @layer(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = exec.collective all_slice %4 axes = [0, 1, 2] {dim = 0 : i64} : tensor<4xf32> -> tensor<2xf32>
  %6 = call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %6, %5 : tensor<4xf32>, tensor<2xf32>
}

// -----

// A kernel reads two collectives in flight. When a third starts, only the first is awaited early; the kernel runs after both.
func.func private @work(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func private @half(%a: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
  return %a : tensor<8xf32>
}
func.func private @sum(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
  return %a : tensor<8xf32>
}
// CHECK-LABEL: @main
// LITTLE-LABEL: @main
// LITTLE: exec.collective {{.*}} {token = 1 : i64}
// LITTLE: exec.collective {{.*}} {token = 2 : i64}
// LITTLE: %[[A:.*]] = exec.await {{.*}} token = 1
// LITTLE-NEXT: exec.collective {{.*}} {token = 3 : i64}
// LITTLE-NEXT: call @work
// LITTLE-NEXT: %[[B:.*]] = exec.await {{.*}} token = 2
// LITTLE-NEXT: exec.launch @half(%[[B]])
// LITTLE-NEXT: call @work
// LITTLE-NEXT: exec.launch @sum(%[[A]], %[[B]])
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = call @work(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %a = exec.collective all_reduce %0 axes = [0, 1, 2] : tensor<8xf32> -> tensor<8xf32>
  %1 = call @work(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %b = exec.collective all_reduce %1 axes = [0, 1, 2] : tensor<8xf32> -> tensor<8xf32>
  %2 = call @work(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %c = exec.collective all_reduce %2 axes = [0, 1, 2] : tensor<8xf32> -> tensor<8xf32>
  %3 = call @work(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %h = exec.launch @half(%b) : (tensor<8xf32>) -> tensor<8xf32>
  %s = exec.launch @sum(%a, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = call @work(%h) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @work(%s) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @work(%c) : (tensor<8xf32>) -> tensor<8xf32>
  return %4, %5, %6 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A sum over microbatches does not move down to the collective that uses it, since its operands would be kept until then.
func.func private @add(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
  %0 = arith.addf %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @gradient(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = exec.launch @add(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: @sums
// CHECK: %[[A:.*]] = call @gradient(%arg0)
// CHECK-NEXT: %[[B:.*]] = call @gradient(%arg1)
// CHECK-NEXT: %[[AB:.*]] = exec.launch @add(%[[A]], %[[B]])
// CHECK-NEXT: %[[C:.*]] = call @gradient(%arg2)
// CHECK-NEXT: %[[ABC:.*]] = exec.launch @add(%[[AB]], %[[C]])
// CHECK-NEXT: exec.collective all_reduce %[[ABC]]
func.func @sums(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @gradient(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @gradient(%y) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = exec.launch @add(%0, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = call @gradient(%z) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = exec.launch @add(%2, %3) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %5 = exec.collective all_reduce %4 axes = [0, 1, 2] : tensor<8xf32> -> tensor<8xf32>
  return %5 : tensor<8xf32>
}

// -----

// A send to another rank comes before the packing of a bucket.
func.func private @pack(%a: tensor<8xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  %0 = arith.constant dense<0.0> : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @backward(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  return %x, %x : tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: @main
// CHECK: call @backward
// CHECK-NEXT: exec.send
// CHECK-NEXT: exec.launch @pack
// CHECK-NEXT: exec.collective
func.func @main(%x: tensor<8xf32>) -> tensor<16xf32> {
  %0:2 = call @backward(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  exec.send %0#0 axes = [1, 1, 2] peer = 1 : tensor<8xf32>
  %1 = exec.launch @pack(%0#1) : (tensor<8xf32>) -> tensor<16xf32>
  %2 = exec.collective all_reduce %1 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  return %2 : tensor<16xf32>
}

// -----

// A collective too large to be in flight moves behind the sends of its cell. Such collectives keep their order.
func.func private @large(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<64xf32>) {
  %c = arith.constant dense<0.0> : tensor<64xf32>
  return %x, %c : tensor<8xf32>, tensor<64xf32>
}
// LITTLE-LABEL: func.func private @large
// LITTLE-LABEL: @main
// LITTLE: %[[A:.*]]:2 = call @large
// LITTLE-NEXT: %[[B:.*]]:2 = call @large
// LITTLE-NEXT: exec.send
// LITTLE-NEXT: exec.collective all_reduce %[[A]]#1
// LITTLE-NEXT: exec.collective all_reduce %[[B]]#1
// LITTLE-NEXT: call @large
func.func @main(%x: tensor<8xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0:2 = call @large(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<64xf32>)
  %1 = exec.collective all_reduce %0#1 axes = [0, 1, 2] : tensor<64xf32> -> tensor<64xf32>
  %2:2 = call @large(%0#0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<64xf32>)
  %3 = exec.collective all_reduce %2#1 axes = [0, 1, 2] : tensor<64xf32> -> tensor<64xf32>
  exec.send %2#0 axes = [1, 1, 2] peer = 1 : tensor<8xf32>
  %4:2 = call @large(%2#0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<64xf32>)
  exec.send %4#0 axes = [1, 1, 2] peer = 1 : tensor<8xf32>
  return %1, %3 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Rows of a layer travel back beside the product of shared experts. The sum of the layer stays where it is.
func.func private @add(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel} {
  %0 = arith.constant dense<0.0> : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @choose(%x: tensor<4x8xf32>) -> tensor<4x1xi64> attributes {exec.kernel} {
  %0 = arith.constant dense<0> : tensor<4x1xi64>
  return %0 : tensor<4x1xi64>
}
// CHECK-LABEL: @layer
// CHECK-NEXT: %[[H:.*]] = exec.collective all_reduce %arg0
// CHECK-NOT: token
// CHECK: %[[TO:.*]] = exec.launch @choose
// CHECK-NEXT: %[[S:.*]] = exec.collective return_rows %arg2 to %[[TO]] {{.*}}token = 1
// CHECK-NEXT: %[[P:.*]] = exec.gemm
// CHECK-NEXT: %[[R:.*]] = exec.await %[[S]], %arg2 to %[[TO]] : tensor<4x1xi64> token = 1
// CHECK-NEXT: exec.launch @add(%[[R]], %[[P]])

// The destinations and the rows stay allocated: the product has a higher offset than both.
// PLAN-LABEL: @layer
// PLAN: exec.launch @choose{{.*}}exec.offsets = array<i64: [[TO:[0-9]+]]>}
// PLAN-NEXT: exec.collective return_rows
// PLAN-NEXT: exec.gemm
// PLAN-NOT: exec.offsets = array<i64: [[TO]]>
// PLAN: exec.await
func.func private @layer(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %held: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %h = exec.collective all_reduce %x axes = [0, 1, 2] : tensor<4x8xf32> -> tensor<4x8xf32>
  %to = exec.launch @choose(%h) : (tensor<4x8xf32>) -> tensor<4x1xi64>
  %back = exec.collective return_rows %held to %to : tensor<4x1xi64> axes = [0, 1, 2] {dim = 0 : i64, size = 4 : i64} : tensor<8x8xf32> -> tensor<4x8xf32>
  %p = exec.gemm %h, %w sizes = [1, 4, 8, 8] lhs_strides = [0, 8, 1] rhs_strides = [0, 8, 1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %r = exec.launch @add(%back, %p) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %held: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = call @layer(%x, %w, %held) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
