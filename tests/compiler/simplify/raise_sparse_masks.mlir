// RUN: partita-opt %s --split-input-file --partita-raise-composites | FileCheck %s

// Keys of the query's own block and of the first one, from a constant bias.
// CHECK-LABEL: func @blocks_from_bias
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 blocks = dense<{{\[\[\[}}true, false, false], [true, true, false], [true, false, true]]]> : tensor<1x3x3xi1> block_size = 16 :
func.func @blocks_from_bias(%q: tensor<1x2x48x4xf32>, %k: tensor<1x2x48x4xf32>, %v: tensor<1x2x48x4xf32>) -> tensor<1x2x48x4xf32> {
  %i = nn.iota dim = 0 : tensor<48x48xi64>
  %j = nn.iota dim = 1 : tensor<48x48xi64>
  %size = arith.constant dense<16> : tensor<48x48xi64>
  %none = arith.constant dense<0> : tensor<48x48xi64>
  %row = arith.divsi %i, %size : tensor<48x48xi64>
  %column = arith.divsi %j, %size : tensor<48x48xi64>
  %own = arith.cmpi eq, %row, %column : tensor<48x48xi64>
  %first = arith.cmpi eq, %column, %none : tensor<48x48xi64>
  %sees = arith.ori %own, %first : tensor<48x48xi1>
  %zero = arith.constant dense<0.0> : tensor<48x48xf32>
  %low = arith.constant dense<0xFF800000> : tensor<48x48xf32>
  %mask = arith.select %sees, %zero, %low : tensor<48x48xi1>, tensor<48x48xf32>
  %bias = nn.reshape %mask : tensor<48x48xf32> -> tensor<1x1x48x48xf32>
  %y = nn.attention %q, %k, %v, %bias scale = 5.0e-1 : (tensor<1x2x48x4xf32>, tensor<1x2x48x4xf32>, tensor<1x2x48x4xf32>, tensor<1x1x48x48xf32>) -> tensor<1x2x48x4xf32>
  return %y : tensor<1x2x48x4xf32>
}

// -----

// The last three keys and the first two ones.
// CHECK-LABEL: func @sinks_from_bias
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal_offset = 0 window = 3 sinks = 2 :
func.func @sinks_from_bias(%q: tensor<1x2x9x4xf32>, %k: tensor<1x2x9x4xf32>, %v: tensor<1x2x9x4xf32>) -> tensor<1x2x9x4xf32> {
  %i = nn.iota dim = 0 : tensor<9x9xi64>
  %j = nn.iota dim = 1 : tensor<9x9xi64>
  %window = arith.constant dense<3> : tensor<9x9xi64>
  %sinks = arith.constant dense<2> : tensor<9x9xi64>
  %first = arith.subi %i, %window : tensor<9x9xi64>
  %near = arith.cmpi sgt, %j, %first : tensor<9x9xi64>
  %sink = arith.cmpi slt, %j, %sinks : tensor<9x9xi64>
  %either = arith.ori %near, %sink : tensor<9x9xi1>
  %causal = arith.cmpi sle, %j, %i : tensor<9x9xi64>
  %sees = arith.andi %either, %causal : tensor<9x9xi1>
  %zero = arith.constant dense<0.0> : tensor<9x9xf32>
  %low = arith.constant dense<0xFF800000> : tensor<9x9xf32>
  %mask = arith.select %sees, %zero, %low : tensor<9x9xi1>, tensor<9x9xf32>
  %bias = nn.reshape %mask : tensor<9x9xf32> -> tensor<1x1x9x9xf32>
  %y = nn.attention %q, %k, %v, %bias scale = 5.0e-1 : (tensor<1x2x9x4xf32>, tensor<1x2x9x4xf32>, tensor<1x2x9x4xf32>, tensor<1x1x9x9xf32>) -> tensor<1x2x9x4xf32>
  return %y : tensor<1x2x9x4xf32>
}
