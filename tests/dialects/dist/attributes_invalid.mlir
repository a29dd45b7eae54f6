// RUN: partita-opt %s --verify-diagnostics --split-input-file

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{argument 0 of 'c1': expected an axis of the mesh, found "b"}}
func.func private @c1(tensor<8xf32> {dist.sharding = #dist.sharding<[{"b"}]>})

// -----

dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{expected no axis to be used twice, found "a" and "a":(1)2}}
func.func private @c2(tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"a"}, {"a":(1)2}]>})

// -----

dist.mesh @mesh <["a"=8]>
// expected-error@+1 {{expected no axis to be used twice, found "a":(1)4 and "a":(2)4}}
func.func private @c2_parts(tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"a":(1)4}, {}] unreduced = {"a":(2)4}>})

// -----

dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{result 0 of 'c3': expected a sharding with 2 entries, one per dimension of 'tensor<8x8xf32>', found #dist.sharding<[{"a"}]>}}
func.func private @c3() -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"a"}]>})

// -----

dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{argument 0 of 'c4': expected blocks that cover the 8 rows of dimension 0, found 4 of 1}}
func.func private @c4(tensor<8xf32> {dist.sharding = #dist.sharding<[{"a"}|1]>})

// -----

dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{argument 0 of 'c5': expected 'tensor<2xf32>', the block of 'tensor<8xf32>' under #dist.sharding<[{"a"}]>, found 'tensor<3xf32>'}}
func.func private @c5(tensor<3xf32> {dist.sharding = #dist.sharding<[{"a"}]>, dist.global_type = tensor<8xf32>})

// -----

dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{argument 0 of 'no_sharding': expected 'dist.global_type' on a tensor, with a sharding, found tensor<8xf32> on 'tensor<8xf32>'}}
func.func private @no_sharding(tensor<8xf32> {dist.global_type = tensor<8xf32>})

// -----

dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{argument 0 of 'unknown': unknown attribute 'dist.other'}}
func.func private @unknown(tensor<8xf32> {dist.other})

// -----

// expected-error@+1 {{'builtin.module' op expected 'dist.annotations' to be a number, on a module, found "two"}}
module attributes {dist.annotations = "two"} {}

// -----

dist.mesh @mesh <["a"=4]>
func.func @annotations(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op expected 'dist.annotations' to be a number, on a module, found 2}}
  %0 = arith.addf %x, %x {dist.annotations = 2 : i64} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @shardings(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op expected 'dist.shardings' to be an array of 1 shardings, one per result, found []}}
  %0 = arith.addf %x, %x {dist.shardings = []} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @shardings_c3(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op expected a sharding with 1 entries}}
  %0 = arith.addf %x, %x {dist.shardings = [#dist.sharding<[]>]} : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{expected a priority, 'p' and a number, or 'p[...]' with one for each axis}}
func.func private @priority(tensor<8xf32> {dist.sharding = #dist.sharding<[{?}q1]>})

// -----

// expected-error@+1 {{expected priorities of 2 axes, found 1}}
func.func private @priorities(tensor<8xf32> {dist.sharding = #dist.sharding<[{"a", "b"}p[1]]>})

// -----

// expected-error@+1 {{expected '?' to be last}}
func.func private @open(tensor<8xf32> {dist.sharding = #dist.sharding<[{?, "a"}]>})

// -----

// expected-error@+1 {{expected a part of an axis to have a size of at least 1, found 0}}
func.func private @part(tensor<8xf32> {dist.sharding = #dist.sharding<[{"a":(1)0}]>})

// -----

// expected-error@+1 {{expected a part of an axis to be '(n)m' with n and m of at least 1, found (0)2}}
func.func private @part_pre(tensor<8xf32> {dist.sharding = #dist.sharding<[{"a":(0)2}]>})
