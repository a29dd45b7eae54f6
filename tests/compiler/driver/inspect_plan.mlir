// RUN: printf 'shard:\n  - {B: d}\n  - {M: t, at: "h.*"}\nmesh: {d: 2, t: 3}\n' > %t.yaml
// RUN: partita inspect %t.yaml | FileCheck %s
// RUN: partita inspect %t.yaml --json | FileCheck %s --check-prefix=JSON
// RUN: printf 'mesh: {d: 2}\nshard: [{B: d}]\ngather: {prefetch: 1, hold: step}\n' > %t.later.yaml
// RUN: partita inspect %t.later.yaml | FileCheck %s --check-prefix=LATER
// RUN: printf 'mesh: {d: 2}\nshard: [{B: dd}]\n' > %t.wrong.yaml
// RUN: not partita inspect %t.wrong.yaml 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: # a plan for 6 devices
// CHECK-NEXT: mesh: {d: 2, t: 3}
// CHECK-NEXT: shard:
// CHECK-NEXT: - {B: d}
// CHECK-NEXT: - {at: "h.*", M: t}

// JSON: "devices":6,"entries":["{B: d}","{at: \"h.*\", M: t}"],"kind":"plan","mesh":"{d: 2, t: 3}","refused":"","text":"mesh:

// LATER: gather: {prefetch: 1, hold: step}
// LATER-NOT: does not compile

// WRONG: error: {{.*}}.yaml:2:13: shard 'B': expected an axis of the mesh (d), found 'dd'
