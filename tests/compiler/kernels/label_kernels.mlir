// A kernel's label has at most four operations, without data movement, and the module path with a star for the words that
// differ. Equal labels get numbers. A kernel that different modules launch has no path.
// RUN: partita-opt %s --split-input-file --partita-label-kernels | FileCheck %s

// Locations inside the function are copied from layer 0 and begin with m, the wrapper module of an exporter.
!t = tensor<8xf32>
// CHECK-LABEL: func.func @main
// CHECK: call @h({{.*}}) {layer = "h.0"}
// CHECK: call @h({{.*}}) {layer = "h.1"}
// CHECK: exec.launch @norm({{.*}}) {layer = "ln_f"}
// CHECK: exec.launch @move({{.*}}) : (
func.func @main(%x: !t, %w: !t {nn.kind = "parameter", nn.name = "h.0.ln.weight"}, %v: !t {nn.kind = "parameter", nn.name = "ln_f.weight"}) -> tensor<2x4xf32> {
  %0 = call @h(%x) : (!t) -> !t loc("/m/h.0/ln/Norm")
  %1 = call @h(%0) : (!t) -> !t loc("/m/h.1/ln/Norm")
  %2 = exec.launch @norm(%1) : (!t) -> !t loc("/m/ln_f/Norm")
  %3 = exec.launch @move(%2) : (!t) -> tensor<2x4xf32> loc("Reshape_7")
  return %3 : tensor<2x4xf32>
}
// CHECK: func.func private @h(
// CHECK: exec.launch @norm({{.*}}) {layer = ".ln"}
// CHECK: exec.launch @long({{.*}}) {layer = ".mlp"}
// CHECK: exec.launch @again({{.*}}) {layer = ".mlp"}
func.func private @h(%x: !t) -> !t {
  %0 = exec.launch @norm(%x) : (!t) -> !t loc("/m/h.0/ln/Norm")
  %1 = exec.launch @long(%0) : (!t) -> !t loc("/m/h.0/mlp/Add")
  %2 = exec.launch @again(%1) : (!t) -> !t loc("/m/h.0/mlp/Add")
  return %2 : !t
}
// CHECK: func.func private @norm({{.*}} kernel.label = "exp+add"}
func.func private @norm(%x: !t) -> !t attributes {exec.kernel} {
  %c = arith.constant dense<1.0> : !t
  %0 = math.exp %x : !t
  %1 = arith.addf %0, %c : !t
  return %1 : !t
}
// CHECK: func.func private @move({{.*}} kernel.label = "broadcast+slice"}
func.func private @move(%x: !t) -> tensor<2x4xf32> attributes {exec.kernel} {
  %0 = nn.broadcast %x dims = [1] : !t -> tensor<2x8xf32>
  %1 = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<2x8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
// CHECK: func.func private @long({{.*}} kernel.label = "exp+reduce_sum+div+tanh+1[h.*.mlp]"}
func.func private @long(%x: !t) -> !t attributes {exec.kernel} {
  %0 = math.exp %x : !t
  %1 = nn.reduce sum %0 dims = [0] : !t -> tensor<f32>
  %2 = nn.broadcast %1 dims = [] : tensor<f32> -> !t
  %3 = arith.divf %0, %2 : !t
  %4 = math.tanh %3 : !t
  %5 = math.exp %4 : !t
  %6 = arith.maximumf %5, %x : !t
  return %6 : !t
}
// CHECK: func.func private @again({{.*}} kernel.label = "exp+reduce_sum+div+tanh+1[h.*.mlp]#2"}
func.func private @again(%x: !t) -> !t attributes {exec.kernel} {
  %0 = math.exp %x : !t
  %1 = nn.reduce sum %0 dims = [0] : !t -> tensor<f32>
  %2 = nn.broadcast %1 dims = [] : tensor<f32> -> !t
  %3 = arith.divf %0, %2 : !t
  %4 = math.tanh %3 : !t
  %5 = math.exp %4 : !t
  %6 = arith.minimumf %5, %x : !t
  return %6 : !t
}

// -----

// Locations inside the function begin with the kind of layer. A part of a kernel gets the label of the whole kernel.
!t = tensor<8xf32>
// CHECK-LABEL: func.func @main
// CHECK: call @block_forward({{.*}}) {layer = "model.layers.0"}
// CHECK: call @block_forward({{.*}}) {layer = "model.layers.1"}
func.func @main(%x: !t) -> !t {
  %0 = call @block_forward(%x) : (!t) -> !t loc("model.layers.0")
  %1 = call @block_forward(%0) : (!t) -> !t loc("model.layers.1")
  return %1 : !t
}
// CHECK: func.func private @block_forward(
// CHECK: exec.launch @whole_part_0({{.*}}) {layer = ".attn"}
// CHECK: exec.launch @whole({{.*}}) {layer = ".attn"}
// CHECK: exec.launch @unnamed({{.*}}) {layer = "."}
func.func private @block_forward(%x: !t) -> !t {
  %0 = exec.launch @whole_part_0(%x) : (!t) -> !t loc("block.attn")
  %1 = exec.launch @whole(%x) : (!t) -> !t loc("block.attn")
  %2 = exec.launch @unnamed(%1) : (!t) -> !t loc(unknown)
  return %2 : !t
}
// CHECK: func.func private @whole_part_0({{.*}} kernel.label = "exp[model.layers.*.attn]",
// CHECK: func.func private @whole({{.*}} kernel.label = "exp[model.layers.*.attn]#2"}
func.func private @whole_part_0(!t) -> !t attributes {exec.kernel, kernel.part_of = @whole}
func.func private @whole(%x: !t) -> !t attributes {exec.kernel} {
  %0 = math.exp %x : !t
  return %0 : !t
}
// CHECK: func.func private @unnamed({{.*}} kernel.label = "add[model.layers.*]"}
func.func private @unnamed(%x: !t) -> !t attributes {exec.kernel} {
  %0 = arith.addf %x, %x : !t
  return %0 : !t
}

// -----

// Updates of parameters that share code have one label. The path of a joined launch is the common module of its pieces.
!t = tensor<8xf32>
!s = tensor<4xf32>
// CHECK-LABEL: func.func @main
// CHECK: exec.launch_pieces [@update, @update_1]({{.*}} layer = "h.0"
func.func @main(%p: !t, %q: !s) -> (!t, !s) {
  %0:2 = exec.launch_pieces [@update, @update_1](%p, %q) ranges = [2, 1] {grain = 1 : i64, scratch = 0 : i64}
      : (!t, !s) -> (!t, !s) loc("h.0.ln.weight and 1 more"(fused<"pieces">["h.0.ln.weight", "h.0.ln.bias", "h.0.mlp.weight"]))
  return %0#0, %0#1 : !t, !s
}
// CHECK: func.func private @update({{.*}} kernel.label = "mul[h.0]"}
func.func private @update(%x: !t) -> !t attributes {exec.kernel = "update"} {
  %0 = arith.mulf %x, %x : !t
  return %0 : !t
}
// CHECK: func.func private @update_1({{.*}} kernel.label = "mul[h.0]"}
func.func private @update_1(%x: !s) -> !s attributes {exec.kernel = "update"} {
  %0 = arith.mulf %x, %x : !s
  return %0 : !s
}
