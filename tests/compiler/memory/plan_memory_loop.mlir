// RUN: partita-opt %s --partita-plan-memory --split-input-file | FileCheck %s

func.func private @k(%x: tensor<20xf32>) -> (tensor<i1>, tensor<20xf32>) attributes {exec.kernel} {
  %go = arith.constant dense<true> : tensor<i1>
  return %go, %x : tensor<i1>, tensor<20xf32>
}
func.func private @t(%x: tensor<20xf32>) -> tensor<20xf32> attributes {exec.kernel} {
  return %x : tensor<20xf32>
}

// The body's own frame has 128 bytes. Behind it are the results of an iteration, of 64 and 128 bytes.
// CHECK-LABEL: @body
// CHECK-SAME: exec.frame_bytes = 128
func.func private @body(%go: tensor<i1>, %x: tensor<20xf32>) -> (tensor<i1>, tensor<20xf32>) {
  %y = exec.launch @t(%x) : (tensor<20xf32>) -> tensor<20xf32>
  %r:2 = exec.launch @k(%y) : (tensor<20xf32>) -> (tensor<i1>, tensor<20xf32>)
  return %r#0, %r#1 : tensor<i1>, tensor<20xf32>
}

// %x1 lives beside the loop, which reads it; the carried values are apart from it.
// CHECK-LABEL: @main
// CHECK-SAME: exec.frame_bytes = 512
// CHECK: exec.launch @t{{.*}}exec.offsets = array<i64: [[X:[0-9]+]]>
// CHECK: call @body{{.*}} {exec.frame_offset = 0 : i64, exec.offsets = array<i64: {{[0-9]+}}, -1>, exec.repeats}
func.func @main(%more: tensor<i1>, %x: tensor<20xf32>) -> tensor<20xf32> {
  %x1 = exec.launch @t(%x) : (tensor<20xf32>) -> tensor<20xf32>
  %r:2 = call @body(%more, %x1) {exec.repeats} : (tensor<i1>, tensor<20xf32>) -> (tensor<i1>, tensor<20xf32>)
  return %r#1 : tensor<20xf32>
}
