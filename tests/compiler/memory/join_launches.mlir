// Updates with the same code become one launch, unless one writes memory that another reads or writes.
// RUN: partita-opt %s --partita-join-launches --split-input-file | FileCheck %s

// Operands and results of both launches are concatenated. Views of results follow. A launch of other code separates the launches.
// CHECK-LABEL: @step
// CHECK-NEXT: %[[C:.*]] = arith.constant
// CHECK-NEXT: %[[V:.*]] = exec.view %arg2
// CHECK-NEXT: %[[ALL:.*]]:2 = exec.launch_pieces [@add_0, @add_1](%arg0, %[[C]], %arg1, %[[V]]) ranges = [4, 2]
// CHECK-SAME: {exec.offsets = array<i64: -1, 0>, grain = 3 : i64, operations = 5 : i64, scratch = 0 : i64, unread = 12 : i64}
// CHECK-SAME: (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>)
// CHECK-NEXT: %[[W:.*]] = exec.view %[[ALL]]#0
// CHECK-NEXT: exec.launch @sum
// CHECK-NEXT: exec.launch @add_1(%[[ALL]]#1
// CHECK-NEXT: return %[[W]]
func.func private @add_0(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel = "add"} { return %x : tensor<4xf32> }
func.func private @add_1(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel = "add"} { return %x : tensor<2xf32> }
func.func private @sum(%x: tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel = "sum"} { return %x : tensor<2xf32> }
func.func @step(%p: tensor<4xf32> {nn.name = "p"}, %q: tensor<2xf32> {nn.name = "q"}, %x: tensor<1x2xf32>)
    -> (tensor<2x2xf32> {nn.updates = "p"}, tensor<2xf32> {nn.updates = "q"}) attributes {exec.frame_bytes = 128 : i64} {
  %c = arith.constant dense<1.0> : tensor<4xf32>
  %0 = exec.launch @add_0(%p, %c) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, unread = 8 : i64, exec.offsets = array<i64: -1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w = exec.view %0 : tensor<4xf32> -> tensor<2x2xf32>
  %v = exec.view %x : tensor<1x2xf32> -> tensor<2xf32>
  %1 = exec.launch @add_1(%q, %v) {range = 2 : i64, grain = 3 : i64, scratch = 0 : i64, operations = 5 : i64, unread = 4 : i64, exec.offsets = array<i64: 0>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = exec.launch @sum(%q) {range = 2 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: 64>} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = exec.launch @add_1(%1, %2) {range = 2 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: -2>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %w, %3 : tensor<2x2xf32>, tensor<2xf32>
}

// -----

// The launch of result 0 writes %arg0's memory, so no launch that reads %arg0 joins it. Nor do launches that write common bytes join.
// CHECK-LABEL: @apart
// CHECK-NEXT: exec.launch @add(%arg0, %arg1)
// CHECK-NEXT: exec.launch_pieces [@add, @add](%arg1, %arg1, %arg1, %arg1) ranges = [4, 4] {exec.offsets = array<i64: -1, 32>
// CHECK-NEXT: exec.launch @add
// CHECK-NEXT: exec.copy
func.func private @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel = "add"} { return %x : tensor<4xf32> }
func.func @apart(%p: tensor<4xf32> {nn.name = "p"}, %q: tensor<4xf32>) -> (tensor<4xf32> {nn.updates = "p"}, tensor<4xf32>)
    attributes {exec.frame_bytes = 64 : i64} {
  %0 = exec.launch @add(%p, %q) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.launch @add(%q, %q) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: -1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = exec.launch @add(%q, %q) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: 32>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = exec.launch @add(%0, %q) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: 40>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = exec.copy %3 {exec.offsets = array<i64: -2>} : tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Joins only launches that update stored tensors. On GPUs, code that takes no pieces has no range.
// CHECK-LABEL: @inference
// CHECK-COUNT-2: exec.launch @add
// CHECK-LABEL: @gpu
// CHECK-COUNT-2: exec.launch @add
func.func private @add(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel = "add"} { return %x : tensor<4xf32> }
func.func @inference(%p: tensor<4xf32> {nn.name = "p"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = exec.launch @add(%p) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.launch @add(%p) {range = 4 : i64, grain = 1 : i64, scratch = 0 : i64, exec.offsets = array<i64: -2>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @gpu(%p: tensor<4xf32> {nn.name = "p"}, %q: tensor<4xf32> {nn.name = "q"}) -> (tensor<4xf32> {nn.updates = "p"}, tensor<4xf32> {nn.updates = "q"}) {
  %0 = exec.launch @add(%p) {blocks = 1 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.launch @add(%q) {blocks = 1 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -2>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// On GPUs, blocks add up, and a single launch of code that takes pieces is joined with none. Launches of other code in between do not
// separate launches, which move to the last one.
// CHECK-LABEL: @gpu
// CHECK-NEXT: exec.launch_pieces [@sub](%arg2) ranges = [2] {blocks = 1 : i64, exec.offsets = array<i64: -3>
// CHECK-NEXT: exec.launch_pieces [@add, @add](%arg0, %arg1) ranges = [4, 4] {blocks = 3 : i64, exec.offsets = array<i64: -1, -2>, grain = 1 : i64, scratch = 0 : i64, threads = 128 : i64}
// CHECK-NOT: exec.launch
func.func private @add(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel = "add"} { return %x : tensor<4xf32> }
func.func private @sub(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel = "sub"} { return %x : tensor<4xf32> }
func.func @gpu(%p: tensor<4xf32> {nn.name = "p"}, %q: tensor<4xf32> {nn.name = "q"}, %r: tensor<4xf32> {nn.name = "r"})
    -> (tensor<4xf32> {nn.updates = "p"}, tensor<4xf32> {nn.updates = "q"}, tensor<4xf32> {nn.updates = "r"}) {
  %0 = exec.launch @add(%p) {range = 4 : i64, blocks = 1 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.launch @sub(%r) {range = 2 : i64, blocks = 1 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -3>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = exec.launch @add(%q) {range = 4 : i64, blocks = 2 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -2>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %2, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
