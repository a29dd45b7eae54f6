// RUN: partita-opt %s --partita-round-float8-factors --canonicalize --cse | FileCheck %s

// Each factor gets one scale, a power of two by its largest magnitude. The gradient is e5m2.
// CHECK-LABEL: func.func @main
// CHECK: %[[TOP2:.*]] = arith.constant dense<1.638400e+04>
// CHECK: %[[G:.*]] = arith.extf %arg0 : tensor<16x32xbf16> to tensor<16x32xf32>
// CHECK: %[[SIZE:.*]] = math.absf %[[G]]
// CHECK: %[[MAX:.*]] = nn.reduce max %[[SIZE]] dims = [0, 1]
// CHECK: %[[BITS:.*]] = arith.bitcast %[[MAX]] : tensor<f32> to tensor<i32>
// CHECK: arith.addi %[[BITS]]
// CHECK: arith.andi
// CHECK: arith.maximumf
// CHECK: arith.truncf %{{.*}} : tensor<16x32xf32> to tensor<16x32xf8E5M2>
// CHECK: %[[LHS:.*]] = arith.truncf %{{.*}} : tensor<16x32xf32> to tensor<16x32xbf16>
// CHECK: arith.truncf %{{.*}} : tensor<32x64xf32> to tensor<32x64xf8E4M3FN>
// CHECK: %[[RHS:.*]] = arith.truncf %{{.*}} : tensor<32x64xf32> to tensor<32x64xbf16>
// CHECK: nn.dot_general %[[LHS]], %[[RHS]] contract = [1] x [0] : tensor<16x32xbf16>, tensor<32x64xbf16>
func.func @main(%g: tensor<16x32xbf16>, %w: tensor<32x64xbf16>) -> tensor<16x64xbf16> {
  %0 = nn.dot_general %g, %w contract = [1] x [0] {nn.float8 = "gradient_lhs"} : tensor<16x32xbf16>, tensor<32x64xbf16> -> tensor<16x64xbf16>
  return %0 : tensor<16x64xbf16>
}
