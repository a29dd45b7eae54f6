// RUN: partita-opt %s --split-input-file --partita-hoist-parameter-work | FileCheck %s

// The exp moves to @init, with its parameter, which @main no longer needs. The broadcast stays.
// CHECK-LABEL: func @init
// CHECK-SAME: (%[[B:.*]]: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", {{.*}}, 0>}) -> (tensor<4xf32> {nn.name = "derived.0"})
// CHECK-NEXT: %[[E:.*]] = math.exp %[[B]] : tensor<4xf32>
// CHECK-NEXT: return %[[E]]
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32> {{{.*}}}, %[[A:.*]]: tensor<4xf32> {{{.*}}nn.name = "a"{{.*}}}, %[[D:.*]]: tensor<4xf32> {nn.kind = "derived", nn.name = "derived.0"})
// CHECK-DAG: nn.broadcast %[[A]]
// CHECK-DAG: nn.broadcast %[[D]]
// CHECK-NOT: math.exp
func.func @main(%x: tensor<2x4xf32> {nn.kind = "input", nn.name = "x"},
                %a: tensor<4xf32> {nn.kind = "parameter", nn.name = "a", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<2x4xf32> {
  %a_b = nn.broadcast %a dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %y = arith.addf %x, %a_b : tensor<2x4xf32>
  %e = math.exp %b : tensor<4xf32>
  %e_b = nn.broadcast %e dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  %z = arith.mulf %y, %e_b : tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// -----

// Work moves out of layers, once per call. Calls with the same parameter share the result.
// CHECK-LABEL: func @init
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32> {{{.*}}"a"{{.*}}}, %[[B:.*]]: tensor<4xf32> {{{.*}}"b"{{.*}}})
// CHECK-NEXT: %[[EA:.*]] = math.exp %[[A]]
// CHECK-NEXT: %[[EB:.*]] = math.exp %[[B]]
// CHECK-NEXT: return %[[EA]], %[[EB]]
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32> {{{.*}}}, %[[D0:.*]]: tensor<4xf32> {{{.*}}"derived.0"}, %[[D1:.*]]: tensor<4xf32> {{{.*}}"derived.1"})
// CHECK: call @layer(%{{.*}}, %{{.*}}, %[[D0]])
// CHECK: call @layer(%{{.*}}, %{{.*}}, %[[D1]])
// CHECK: call @layer(%{{.*}}, %{{.*}}, %[[D0]])
// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>, %[[E:.*]]: tensor<4xf32>)
// CHECK-NEXT: arith.mulf %[[X]], %[[E]]
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"},
                %a: tensor<4xf32> {nn.kind = "parameter", nn.name = "a", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<4xf32> {
  %0 = call @layer(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = call @layer(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = call @layer(%1, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %e = math.exp %w : tensor<4xf32>
  %y = arith.mulf %x, %e : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// One call passes an input, so the work stays in the layer.
// CHECK-NOT: @init
// CHECK-LABEL: func private @layer
// CHECK: math.exp
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"},
                %a: tensor<4xf32> {nn.kind = "parameter", nn.name = "a", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<4xf32> {
  %0 = call @layer(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = call @layer(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %e = math.exp %w : tensor<4xf32>
  %y = arith.mulf %x, %e : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A broadcast, a widening and an iota stay, because storing them would take more bytes.
// CHECK-NOT: @init
// CHECK-LABEL: func @main
// CHECK: nn.iota
// CHECK: arith.extf
func.func @main(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                %a: tensor<4xbf16> {nn.kind = "parameter", nn.name = "a", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<8x4xf32> {
  %i = nn.iota dim = 0 : tensor<8x4xi64>
  %f = arith.sitofp %i : tensor<8x4xi64> to tensor<8x4xf32>
  %w = arith.extf %a : tensor<4xbf16> to tensor<4xf32>
  %w_b = nn.broadcast %w dims = [1] : tensor<4xf32> -> tensor<8x4xf32>
  %y = arith.mulf %x, %w_b : tensor<8x4xf32>
  %z = arith.addf %y, %f : tensor<8x4xf32>
  return %z : tensor<8x4xf32>
}

// -----

// A second run of the pass extends @init.
// CHECK-LABEL: func @init
// CHECK: %[[E:.*]] = math.exp %{{.*}}
// CHECK: %[[T:.*]] = math.tanh %[[E]]
// CHECK: return %[[E]], %[[T]]
// CHECK-LABEL: func @main
// CHECK-SAME: "derived.0"}, %[[D1:.*]]: tensor<4xf32> {nn.kind = "derived", nn.name = "derived.1"})
func.func @init(%a: tensor<4xf32> {nn.kind = "parameter", nn.name = "a", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> (tensor<4xf32> {nn.name = "derived.0"}) {
  %e = math.exp %a : tensor<4xf32>
  return %e : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"},
                %d: tensor<4xf32> {nn.kind = "derived", nn.name = "derived.0"}) -> tensor<4xf32> {
  %t = math.tanh %d : tensor<4xf32>
  %y = arith.mulf %x, %t : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A convolution of integers reads the weight's integers, too.
// CHECK-LABEL: func @main
// CHECK: arith.sitofp %{{.*}} : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
func.func @main(%x: tensor<1x3x1x1xi8> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x3x1x1xi8> {nn.kind = "buffer", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<1x4x1x1xf32> {
  %0 = arith.uitofp %x : tensor<1x3x1x1xi8> to tensor<1x3x1x1xf32>
  %1 = arith.sitofp %w : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
  %2 = nn.conv %0, %1 strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x1x1xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x1x1xf32>
  return %2 : tensor<1x4x1x1xf32>
}

// -----

// Libraries do not multiply unsigned weights, or weights with a zero point: they read floats.
// CHECK-LABEL: func @init
// CHECK-DAG: arith.uitofp %{{.*}} : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
// CHECK-DAG: arith.subi %{{.*}} : tensor<4x3x1x1xi32>
// CHECK: return %{{.*}}, %{{.*}} : tensor<4x3x1x1xf32>, tensor<4x3x1x1xf32>
func.func @main(%x: tensor<1x3x1x1xi8> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x3x1x1xi8> {nn.kind = "buffer", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %v: tensor<4x3x1x1xi8> {nn.kind = "buffer", nn.name = "v", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> (tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>) {
  %zero = arith.constant dense<3> : tensor<4x3x1x1xi32>
  %0 = arith.uitofp %x : tensor<1x3x1x1xi8> to tensor<1x3x1x1xf32>
  %1 = arith.uitofp %w : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
  %2 = nn.conv %0, %1 strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x1x1xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x1x1xf32>
  %3 = arith.extsi %v : tensor<4x3x1x1xi8> to tensor<4x3x1x1xi32>
  %4 = arith.subi %3, %zero : tensor<4x3x1x1xi32>
  %5 = arith.sitofp %4 : tensor<4x3x1x1xi32> to tensor<4x3x1x1xf32>
  %6 = nn.conv %0, %5 strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x1x1xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x1x1xf32>
  return %2, %6 : tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>
}

// -----

// A quantized weight is widened once for a convolution of floats, and in every run for a product, which reads the integers.
// CHECK-LABEL: func @init
// CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
// CHECK-NEXT: return %[[F]]
// CHECK-LABEL: func @main
// CHECK: nn.conv %{{.*}}, %{{arg[0-9]+}}
// CHECK: %[[V:.*]] = arith.sitofp %{{.*}} : tensor<4x5xi8> to tensor<4x5xf32>
// CHECK: nn.dot_general %{{.*}}, %[[V]]
func.func @main(%x: tensor<1x3x1x1xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<4x3x1x1xi8> {nn.kind = "buffer", nn.name = "w", nn.source = #nn.init<"ones", 1.0 : f64, 0>},
                %v: tensor<4x5xi8> {nn.kind = "buffer", nn.name = "v", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<1x1x1x5xf32> {
  %0 = arith.sitofp %w : tensor<4x3x1x1xi8> to tensor<4x3x1x1xf32>
  %1 = nn.conv %x, %0 strides = [1, 1] dilations = [1, 1] low = [0, 0] high = [0, 0] groups = 1 : tensor<1x3x1x1xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x1x1xf32>
  %2 = arith.sitofp %v : tensor<4x5xi8> to tensor<4x5xf32>
  %3 = nn.dot_general %1, %2 contract = [1] x [0] : tensor<1x4x1x1xf32>, tensor<4x5xf32> -> tensor<1x1x1x5xf32>
  return %3 : tensor<1x1x1x5xf32>
}

// -----

// A packed weight stays packed: its product unpacks it.
// CHECK-LABEL: func @main
// CHECK-SAME: tensor<4x2x2xi8>
// CHECK: nn.dequantize
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: nn.transpose
func.func @main(%x: tensor<3x8xf32> {nn.kind = "input", nn.name = "x"},
                %q: tensor<4x2x2xi8> {nn.kind = "buffer", nn.name = "q", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
                %s: tensor<4x2xf32> {nn.kind = "buffer", nn.name = "s", nn.source = #nn.init<"ones", 1.0 : f64, 0>}) -> tensor<3x4xf32> {
  %0 = nn.dequantize %q scale(%s) : (tensor<4x2x2xi8>, tensor<4x2xf32>) -> tensor<4x2x4xf32>
  %1 = nn.reshape %0 : tensor<4x2x4xf32> -> tensor<4x8xf32>
  %2 = nn.transpose %1 perm = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %3 = nn.dot_general %x, %2 contract = [1] x [0] : tensor<3x8xf32>, tensor<8x4xf32> -> tensor<3x4xf32>
  return %3 : tensor<3x4xf32>
}
