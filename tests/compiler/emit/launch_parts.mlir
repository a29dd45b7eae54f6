// A kernel whose code consists of several parts: the parts are launched one after the other, and the first part writes
// straight to the caller's memory. The frame of @main is empty.
// RUN: partita compile %s --target cuda:sm_80 -o %t.partita
// RUN: partita inspect %t.partita --all | FileCheck %s
// RUN: partita simulate %t.partita --cluster a100-80-sxm --json | FileCheck %s --check-prefix=KERNELS

// CHECK: kernels  {{ *}}3
// CHECK: main frame_bytes=0 B instructions=3

// KERNELS-DAG: "calls":1,"function":"main","kind":"kernel","label":"attention_grad"
// KERNELS-DAG: "calls":1,"function":"main","kind":"kernel","label":"attention_grad#2"
// KERNELS-DAG: "calls":1,"function":"main","kind":"kernel","label":"attention_grad#3"
!t = tensor<1x2x70x32xbf16>
func.func @main(%q: !t {nn.name = "q"}, %k: !t {nn.name = "k"}, %v: !t {nn.name = "v"}, %y: !t {nn.name = "y"}, %g: !t {nn.name = "g"})
    -> (!t {nn.name = "of_q"}, !t {nn.name = "of_k"}, !t {nn.name = "of_v"}) {
  %of_q, %of_k, %of_v = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 causal_offset = 0 : (!t, !t, !t, !t, !t) -> (!t, !t, !t)
  return %of_q, %of_k, %of_v : !t, !t, !t
}
