// RUN: partita-opt %s --partita-join-experts --split-input-file | FileCheck %s

// Every expert for every row. Their weights become one argument each.
// CHECK-LABEL: @main
// CHECK-SAME: %[[GATE:[a-z0-9]+]]: tensor<2x5x4xf32> {nn.kind = "parameter", nn.name = "experts.*.gate", nn.parts, nn.source = [#nn.file<"w", 0, 40, f16>, #nn.file<"w", 120, 40, f16>]}
// CHECK-SAME: %[[UP:[a-z0-9]+]]: tensor<2x5x4xf32> {{.*}}"experts.*.up"
// CHECK-SAME: %[[DOWN:[a-z0-9]+]]: tensor<2x4x5xf32> {{.*}}"experts.*.down"
// CHECK: nn.experts %{{.*}}[%{{.*}}], %{{.*}} gate(%[[GATE]] : {{.*}}) up(%[[UP]] : {{.*}}) down(%[[DOWN]] : {{.*}}) activation = silu
// CHECK-SAME: tensor<6x4xf32>, tensor<6x2xi64>, tensor<6x2xf32> -> tensor<6x4xf32>
// CHECK-NOT: nn.dot_general
func.func @main(%x: tensor<6x4xf32> {nn.kind = "input", nn.name = "x"}, %ids: tensor<6x2xi64> {nn.kind = "input", nn.name = "ids"},
                %weights: tensor<6x2xf32> {nn.kind = "input", nn.name = "weights"},
                %gate0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.gate", nn.source = #nn.file<"w", 0, 40, f16>},
                %up0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.up", nn.source = #nn.file<"w", 40, 40, f16>},
                %down0: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.0.down", nn.source = #nn.file<"w", 80, 40, f16>},
                %gate1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.gate", nn.source = #nn.file<"w", 120, 40, f16>},
                %up1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.up", nn.source = #nn.file<"w", 160, 40, f16>},
                %down1: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.1.down", nn.source = #nn.file<"w", 200, 40, f16>}) -> tensor<6x4xf32> {
  %one = arith.constant dense<1.0> : tensor<6x5xf32>
  %zeros = arith.constant dense<0.0> : tensor<6x2xf32>
  %g0 = nn.dot_general %x, %gate0 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %n0 = arith.negf %g0 : tensor<6x5xf32>
  %e0 = math.exp %n0 : tensor<6x5xf32>
  %s0 = arith.addf %e0, %one : tensor<6x5xf32>
  %q0 = arith.divf %one, %s0 : tensor<6x5xf32>
  %a0 = arith.mulf %g0, %q0 : tensor<6x5xf32>
  %u0 = nn.dot_general %x, %up0 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %h0 = arith.mulf %a0, %u0 : tensor<6x5xf32>
  %y0 = nn.dot_general %h0, %down0 contract = [1] x [1] : tensor<6x5xf32>, tensor<4x5xf32> -> tensor<6x4xf32>
  %c0 = arith.constant dense<0> : tensor<6x2xi64>
  %is0 = arith.cmpi eq, %ids, %c0 : tensor<6x2xi64>
  %p0 = arith.select %is0, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
  %w0 = nn.reduce sum %p0 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
  %b0 = nn.broadcast %w0 dims = [0] : tensor<6xf32> -> tensor<6x4xf32>
  %m0 = arith.mulf %y0, %b0 : tensor<6x4xf32>
  %g1 = nn.dot_general %x, %gate1 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %n1 = arith.negf %g1 : tensor<6x5xf32>
  %e1 = math.exp %n1 : tensor<6x5xf32>
  %s1 = arith.addf %e1, %one : tensor<6x5xf32>
  %q1 = arith.divf %one, %s1 : tensor<6x5xf32>
  %a1 = arith.mulf %g1, %q1 : tensor<6x5xf32>
  %u1 = nn.dot_general %x, %up1 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %h1 = arith.mulf %a1, %u1 : tensor<6x5xf32>
  %y1 = nn.dot_general %h1, %down1 contract = [1] x [1] : tensor<6x5xf32>, tensor<4x5xf32> -> tensor<6x4xf32>
  %c1 = arith.constant dense<1> : tensor<6x2xi64>
  %is1 = arith.cmpi eq, %ids, %c1 : tensor<6x2xi64>
  %p1 = arith.select %is1, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
  %w1 = nn.reduce sum %p1 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
  %b1 = nn.broadcast %w1 dims = [0] : tensor<6xf32> -> tensor<6x4xf32>
  %m1 = arith.mulf %y1, %b1 : tensor<6x4xf32>
  %sum = arith.addf %m0, %m1 : tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// Expert 0 is in the sum twice.
// CHECK-LABEL: @main
// CHECK-NOT: nn.experts
// CHECK: return
func.func @main(%x: tensor<6x4xf32> {nn.kind = "input", nn.name = "x"}, %ids: tensor<6x2xi64> {nn.kind = "input", nn.name = "ids"},
                %weights: tensor<6x2xf32> {nn.kind = "input", nn.name = "weights"},
                %gate0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.gate", nn.source = #nn.file<"w", 0, 40, f16>},
                %up0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.up", nn.source = #nn.file<"w", 40, 40, f16>},
                %down0: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.0.down", nn.source = #nn.file<"w", 80, 40, f16>},
                %gate1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.gate", nn.source = #nn.file<"w", 120, 40, f16>},
                %up1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.up", nn.source = #nn.file<"w", 160, 40, f16>},
                %down1: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.1.down", nn.source = #nn.file<"w", 200, 40, f16>}) -> tensor<6x4xf32> {
  %one = arith.constant dense<1.0> : tensor<6x5xf32>
  %zeros = arith.constant dense<0.0> : tensor<6x2xf32>
  %g0 = nn.dot_general %x, %gate0 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %n0 = arith.negf %g0 : tensor<6x5xf32>
  %e0 = math.exp %n0 : tensor<6x5xf32>
  %s0 = arith.addf %e0, %one : tensor<6x5xf32>
  %q0 = arith.divf %one, %s0 : tensor<6x5xf32>
  %a0 = arith.mulf %g0, %q0 : tensor<6x5xf32>
  %u0 = nn.dot_general %x, %up0 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %h0 = arith.mulf %a0, %u0 : tensor<6x5xf32>
  %y0 = nn.dot_general %h0, %down0 contract = [1] x [1] : tensor<6x5xf32>, tensor<4x5xf32> -> tensor<6x4xf32>
  %c0 = arith.constant dense<0> : tensor<6x2xi64>
  %is0 = arith.cmpi eq, %ids, %c0 : tensor<6x2xi64>
  %p0 = arith.select %is0, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
  %w0 = nn.reduce sum %p0 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
  %b0 = nn.broadcast %w0 dims = [0] : tensor<6xf32> -> tensor<6x4xf32>
  %m0 = arith.mulf %y0, %b0 : tensor<6x4xf32>
  %g1 = nn.dot_general %x, %gate1 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %n1 = arith.negf %g1 : tensor<6x5xf32>
  %e1 = math.exp %n1 : tensor<6x5xf32>
  %s1 = arith.addf %e1, %one : tensor<6x5xf32>
  %q1 = arith.divf %one, %s1 : tensor<6x5xf32>
  %a1 = arith.mulf %g1, %q1 : tensor<6x5xf32>
  %u1 = nn.dot_general %x, %up1 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %h1 = arith.mulf %a1, %u1 : tensor<6x5xf32>
  %y1 = nn.dot_general %h1, %down1 contract = [1] x [1] : tensor<6x5xf32>, tensor<4x5xf32> -> tensor<6x4xf32>
  %c1 = arith.constant dense<0> : tensor<6x2xi64>
  %is1 = arith.cmpi eq, %ids, %c1 : tensor<6x2xi64>
  %p1 = arith.select %is1, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
  %w1 = nn.reduce sum %p1 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
  %b1 = nn.broadcast %w1 dims = [0] : tensor<6xf32> -> tensor<6x4xf32>
  %m1 = arith.mulf %y1, %b1 : tensor<6x4xf32>
  %sum = arith.addf %m0, %m1 : tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// Rows for each choice, which are zero unless they choose the expert, then the sum over choices. A third summand stays.
// CHECK-LABEL: @main
// CHECK: %[[Y:.*]] = nn.experts
// CHECK: arith.addf %[[Y]], %{{.*}} : tensor<6x4xf32>
// CHECK-NOT: nn.dot_general
func.func @main(%x: tensor<6x4xf32> {nn.kind = "input", nn.name = "x"}, %ids: tensor<6x2xi64> {nn.kind = "input", nn.name = "ids"},
                %weights: tensor<6x2xf32> {nn.kind = "input", nn.name = "weights"},
                %gate0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.gate", nn.source = #nn.file<"w", 0, 40, f16>},
                %up0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.up", nn.source = #nn.file<"w", 40, 40, f16>},
                %down0: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.0.down", nn.source = #nn.file<"w", 80, 40, f16>},
                %gate1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.gate", nn.source = #nn.file<"w", 120, 40, f16>},
                %up1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.up", nn.source = #nn.file<"w", 160, 40, f16>},
                %down1: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.1.down", nn.source = #nn.file<"w", 200, 40, f16>}) -> tensor<6x4xf32> {
  %one = arith.constant dense<1.0> : tensor<12x5xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x6x4xf32>
  %twice = nn.broadcast %x dims = [1, 2] : tensor<6x4xf32> -> tensor<2x6x4xf32>
  %rows = nn.reshape %twice : tensor<2x6x4xf32> -> tensor<12x4xf32>
  %turned = nn.transpose %weights perm = [1, 0] : tensor<6x2xf32> -> tensor<2x6xf32>
  %flat = nn.reshape %turned : tensor<2x6xf32> -> tensor<12xf32>
  %each = nn.broadcast %flat dims = [0] : tensor<12xf32> -> tensor<12x4xf32>
  %g0 = nn.dot_general %rows, %gate0 contract = [1] x [1] : tensor<12x4xf32>, tensor<5x4xf32> -> tensor<12x5xf32>
  %n0 = arith.negf %g0 : tensor<12x5xf32>
  %e0 = math.exp %n0 : tensor<12x5xf32>
  %s0 = arith.addf %e0, %one : tensor<12x5xf32>
  %q0 = arith.divf %one, %s0 : tensor<12x5xf32>
  %a0 = arith.mulf %g0, %q0 : tensor<12x5xf32>
  %u0 = nn.dot_general %rows, %up0 contract = [1] x [1] : tensor<12x4xf32>, tensor<5x4xf32> -> tensor<12x5xf32>
  %h0 = arith.mulf %a0, %u0 : tensor<12x5xf32>
  %y0 = nn.dot_general %h0, %down0 contract = [1] x [1] : tensor<12x5xf32>, tensor<4x5xf32> -> tensor<12x4xf32>
  %c0 = arith.constant dense<0> : tensor<6x2xi64>
  %is0 = arith.cmpi eq, %ids, %c0 : tensor<6x2xi64>
  %t0 = nn.transpose %is0 perm = [1, 0] : tensor<6x2xi1> -> tensor<2x6xi1>
  %k0 = nn.broadcast %t0 dims = [0, 1] : tensor<2x6xi1> -> tensor<2x6x4xi1>
  %m0 = arith.mulf %y0, %each : tensor<12x4xf32>
  %r0 = nn.reshape %m0 : tensor<12x4xf32> -> tensor<2x6x4xf32>
  %v0 = arith.select %k0, %r0, %zeros : tensor<2x6x4xi1>, tensor<2x6x4xf32>
  %z0 = nn.reduce sum %v0 dims = [0] : tensor<2x6x4xf32> -> tensor<6x4xf32>
  %g1 = nn.dot_general %rows, %gate1 contract = [1] x [1] : tensor<12x4xf32>, tensor<5x4xf32> -> tensor<12x5xf32>
  %n1 = arith.negf %g1 : tensor<12x5xf32>
  %e1 = math.exp %n1 : tensor<12x5xf32>
  %s1 = arith.addf %e1, %one : tensor<12x5xf32>
  %q1 = arith.divf %one, %s1 : tensor<12x5xf32>
  %a1 = arith.mulf %g1, %q1 : tensor<12x5xf32>
  %u1 = nn.dot_general %rows, %up1 contract = [1] x [1] : tensor<12x4xf32>, tensor<5x4xf32> -> tensor<12x5xf32>
  %h1 = arith.mulf %a1, %u1 : tensor<12x5xf32>
  %y1 = nn.dot_general %h1, %down1 contract = [1] x [1] : tensor<12x5xf32>, tensor<4x5xf32> -> tensor<12x4xf32>
  %c1 = arith.constant dense<1> : tensor<6x2xi64>
  %is1 = arith.cmpi eq, %ids, %c1 : tensor<6x2xi64>
  %t1 = nn.transpose %is1 perm = [1, 0] : tensor<6x2xi1> -> tensor<2x6xi1>
  %k1 = nn.broadcast %t1 dims = [0, 1] : tensor<2x6xi1> -> tensor<2x6x4xi1>
  %m1 = arith.mulf %y1, %each : tensor<12x4xf32>
  %r1 = nn.reshape %m1 : tensor<12x4xf32> -> tensor<2x6x4xf32>
  %v1 = arith.select %k1, %r1, %zeros : tensor<2x6x4xi1>, tensor<2x6x4xf32>
  %z1 = nn.reduce sum %v1 dims = [0] : tensor<2x6x4xf32> -> tensor<6x4xf32>
  %first = arith.addf %x, %z0 : tensor<6x4xf32>
  %sum = arith.addf %first, %z1 : tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// What an expert computes within has another user, so its weights stay: the other experts' are put beside them, and none is there twice.
// CHECK-LABEL: @main
// CHECK-SAME: "experts.0.gate"
// CHECK-SAME: "experts.0.up"
// CHECK-SAME: "experts.*.down"
// CHECK-SAME: "experts.1.gate"
// CHECK-SAME: "experts.1.up"
// CHECK: nn.concat
// CHECK: nn.concat
// CHECK: nn.experts
func.func @main(%x: tensor<6x4xf32> {nn.kind = "input", nn.name = "x"}, %ids: tensor<6x2xi64> {nn.kind = "input", nn.name = "ids"},
                %weights: tensor<6x2xf32> {nn.kind = "input", nn.name = "weights"},
                %gate0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.gate", nn.source = #nn.file<"w", 0, 40, f16>},
                %up0: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.0.up", nn.source = #nn.file<"w", 40, 40, f16>},
                %down0: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.0.down", nn.source = #nn.file<"w", 80, 40, f16>},
                %gate1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.gate", nn.source = #nn.file<"w", 120, 40, f16>},
                %up1: tensor<5x4xf32> {nn.kind = "parameter", nn.name = "experts.1.up", nn.source = #nn.file<"w", 160, 40, f16>},
                %down1: tensor<4x5xf32> {nn.kind = "parameter", nn.name = "experts.1.down", nn.source = #nn.file<"w", 200, 40, f16>}) -> (tensor<6x4xf32>, tensor<6x5xf32>) {
  %one = arith.constant dense<1.0> : tensor<6x5xf32>
  %zeros = arith.constant dense<0.0> : tensor<6x2xf32>
  %g0 = nn.dot_general %x, %gate0 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %n0 = arith.negf %g0 : tensor<6x5xf32>
  %e0 = math.exp %n0 : tensor<6x5xf32>
  %s0 = arith.addf %e0, %one : tensor<6x5xf32>
  %q0 = arith.divf %one, %s0 : tensor<6x5xf32>
  %a0 = arith.mulf %g0, %q0 : tensor<6x5xf32>
  %u0 = nn.dot_general %x, %up0 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %h0 = arith.mulf %a0, %u0 : tensor<6x5xf32>
  %y0 = nn.dot_general %h0, %down0 contract = [1] x [1] : tensor<6x5xf32>, tensor<4x5xf32> -> tensor<6x4xf32>
  %c0 = arith.constant dense<0> : tensor<6x2xi64>
  %is0 = arith.cmpi eq, %ids, %c0 : tensor<6x2xi64>
  %p0 = arith.select %is0, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
  %w0 = nn.reduce sum %p0 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
  %b0 = nn.broadcast %w0 dims = [0] : tensor<6xf32> -> tensor<6x4xf32>
  %m0 = arith.mulf %y0, %b0 : tensor<6x4xf32>
  %g1 = nn.dot_general %x, %gate1 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %n1 = arith.negf %g1 : tensor<6x5xf32>
  %e1 = math.exp %n1 : tensor<6x5xf32>
  %s1 = arith.addf %e1, %one : tensor<6x5xf32>
  %q1 = arith.divf %one, %s1 : tensor<6x5xf32>
  %a1 = arith.mulf %g1, %q1 : tensor<6x5xf32>
  %u1 = nn.dot_general %x, %up1 contract = [1] x [1] : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %h1 = arith.mulf %a1, %u1 : tensor<6x5xf32>
  %y1 = nn.dot_general %h1, %down1 contract = [1] x [1] : tensor<6x5xf32>, tensor<4x5xf32> -> tensor<6x4xf32>
  %c1 = arith.constant dense<1> : tensor<6x2xi64>
  %is1 = arith.cmpi eq, %ids, %c1 : tensor<6x2xi64>
  %p1 = arith.select %is1, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
  %w1 = nn.reduce sum %p1 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
  %b1 = nn.broadcast %w1 dims = [0] : tensor<6xf32> -> tensor<6x4xf32>
  %m1 = arith.mulf %y1, %b1 : tensor<6x4xf32>
  %sum = arith.addf %m0, %m1 : tensor<6x4xf32>
  return %sum, %h0 : tensor<6x4xf32>, tensor<6x5xf32>
}
