// RUN: partita-opt %s --verify-diagnostics --split-input-file

func.func private @mesh_c1()
// expected-error@+1 {{'dist.mesh' op expected to be named @mesh and to stand in a module, found @other}}
dist.mesh @other <["a"=2]>

// -----

func.func private @mesh_c2()
// expected-error@+1 {{expected axes to have distinct names, found 'a' twice}}
dist.mesh @mesh <["a"=2, "a"=4]>

// -----

func.func private @mesh_c2_empty()
// expected-error@+1 {{expected axes to have distinct names, found ''}}
dist.mesh @mesh <[""=2]>

// -----

func.func private @mesh_c2_size()
// expected-error@+1 {{expected axis 'a' to have at least 1 position, found 0}}
dist.mesh @mesh <["a"=0]>

// -----

func.func private @mesh_c3()
// expected-error@+1 {{'dist.mesh' op expected 'device_ids' to hold each number from 0 to 3 once, found [0, 1, 3, 3]}}
dist.mesh @mesh <["a"=4]> device_ids = [0, 1, 3, 3]

// -----

func.func private @mesh_twice()
// expected-note@+1 {{see existing symbol definition here}}
dist.mesh @mesh <["a"=4]>
// expected-error@+1 {{redefinition of symbol named 'mesh'}}
dist.mesh @mesh <["a"=4]>

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @constraint_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.constraint' op expected an axis of the mesh, found "b"}}
  %0 = dist.constraint %x <[{"b"}]> : tensor<8xf32>
  return
}

// -----

func.func @constraint_c1_no_mesh(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.constraint' op expected a dist.mesh in the module, found none, but the axis "a"}}
  %0 = dist.constraint %x <[{"a"}]> : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @constraint_c1_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.constraint' op expected a sharding with 1 entries, one per dimension of 'tensor<8xf32>', found #dist.sharding<[{"a"}, {}]>}}
  %0 = dist.constraint %x <[{"a"}, {}]> : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @constraint_c1_blocks(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.constraint' op expected blocks that cover the 8 rows of dimension 0, found 4 of 1}}
  %0 = dist.constraint %x <[{"a"}|1]> : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @group_c1(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-note@+1 {{one of them is of 'tensor<8xf32>'}}
  %0 = dist.group %x id = 1 : tensor<8xf32>
  %1 = dist.group %y id = 2 : tensor<4xf32>
  // expected-error@+1 {{'dist.group' op expected the shape of the other values of group 1, found 'tensor<4xf32>'}}
  %2 = dist.group %y id = 1 : tensor<4xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @reshard_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.reshard' op expected 3 times 2 to divide the axis's 4 positions, found "a":(3)2}}
  %0 = dist.reshard %x from <[{"a"}]> to <[{"a":(3)2}]> : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4, "b"=2]>
func.func @reshard_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.reshard' op expected the axes that stay unreduced to be unreduced before, found #dist.sharding<[{}] unreduced = {"a":(1)2}> and #dist.sharding<[{}] unreduced = {"a"}>}}
  %0 = dist.reshard %x from <[{}] unreduced = {"a":(1)2}> to <[{}] unreduced = {"a"}> : tensor<8xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @all_reduce_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op expected an axis of the mesh, found "b"}}
  %0 = dist.all_reduce %x over ["b"] sum : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_reduce_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op expected 'any' of i1, found 'f32'}}
  %0 = dist.all_reduce %x over ["a"] any : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_reduce_c2_logical(%x: tensor<8xi1>) {
  // expected-error@+1 {{'dist.all_reduce' op expected 'sum' of numbers, found 'i1'}}
  %0 = dist.all_reduce %x over ["a"] sum : tensor<8xi1>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @all_gather_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.all_gather' op expected an axis of the mesh, found "b"}}
  %0 = dist.all_gather %x over ["b"] dim = 0 : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_gather_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.all_gather' op expected a dimension of a tensor of rank 1, found 1}}
  %0 = dist.all_gather %x over ["a"] dim = 1 : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_gather_c2_types(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'dist.all_gather' op expected a result of the operand's type, 'tensor<2x3xf32>', but for dimensions [0], found 'tensor<8x4xf32>'}}
  %0 = dist.all_gather %x over ["a"] dim = 0 : tensor<2x3xf32> -> tensor<8x4xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_gather_c3(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.all_gather' op expected at most 8 rows of dimension 0, 4 blocks of 2, found 9}}
  %0 = dist.all_gather %x over ["a"] dim = 0 : tensor<2xf32> -> tensor<9xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @reduce_scatter_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op expected an axis of the mesh, found "b"}}
  %0 = dist.reduce_scatter %x over ["b"] dim = 0 sum : tensor<8xf32> -> tensor<2xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @reduce_scatter_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op expected a result of the operand's type, 'tensor<8xf32>', but for dimensions [0], found 'tensor<2xf64>'}}
  %0 = dist.reduce_scatter %x over ["a"] dim = 0 sum : tensor<8xf32> -> tensor<2xf64>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @reduce_scatter_c3(%x: tensor<9xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op expected at most 8 rows of dimension 0, 4 blocks of 2, found 9}}
  %0 = dist.reduce_scatter %x over ["a"] dim = 0 sum : tensor<9xf32> -> tensor<2xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @reduce_scatter_c4(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op expected 'all' of i1, found 'f32'}}
  %0 = dist.reduce_scatter %x over ["a"] dim = 0 all : tensor<8xf32> -> tensor<2xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @all_slice_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.all_slice' op expected an axis of the mesh, found "b"}}
  %0 = dist.all_slice %x over ["b"] dim = 0 : tensor<8xf32> -> tensor<2xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_slice_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.all_slice' op expected a dimension of a tensor of rank 1, found -1}}
  %0 = dist.all_slice %x over ["a"] dim = -1 : tensor<8xf32> -> tensor<2xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_slice_c3(%x: tensor<9xf32>) {
  // expected-error@+1 {{'dist.all_slice' op expected at most 8 rows of dimension 0, 4 blocks of 2, found 9}}
  %0 = dist.all_slice %x over ["a"] dim = 0 : tensor<9xf32> -> tensor<2xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @all_to_all_c1(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op expected an axis of the mesh, found "b"}}
  %0 = dist.all_to_all %x over ["b"] split = 0 concat = 1 : tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_to_all_c2(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op expected two dimensions, found 1 twice}}
  %0 = dist.all_to_all %x over ["a"] split = 1 concat = 1 : tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_to_all_c3(%x: tensor<9x2xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op expected at most 8 rows of dimension 0, 4 blocks of 2, found 9}}
  %0 = dist.all_to_all %x over ["a"] split = 0 concat = 1 : tensor<9x2xf32> -> tensor<2x8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @all_to_all_c3_concat(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op expected at most 8 rows of dimension 1, 4 blocks of 2, found 9}}
  %0 = dist.all_to_all %x over ["a"] split = 0 concat = 1 : tensor<8x2xf32> -> tensor<2x9xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @permute_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.permute' op expected an axis of the mesh, found "b"}}
  %0 = dist.permute %x over ["a"] to ["b"] : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{'builtin.module' op expected 'dist.attention' to be a string, the plan's choice of attention, on a module, found 3 : i64}}
module attributes {dist.attention = 3} {
}

// -----

func.func @row_exchange(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op expected 'dist.row_exchange' to be a number of at least 0, the bound on the rows that a device receives, found -1.000000e+00 : f64}}
  %0 = arith.addf %x, %x {dist.row_exchange = -1.0} : tensor<8xf32>
  return
}

// -----

func.func @long_attention(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op expected 'dist.long_attention' to be 1 (Ulysses) or 2 (ring), found 3 : i64}}
  %0 = arith.addf %x, %x {dist.long_attention = 3} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4, "b"=4]>
func.func @permute_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.permute' op expected the same parts of axes on both sides, found #dist.axes<["a", "b":(1)2]> and #dist.axes<["b":(2)2, "a"]>}}
  %0 = dist.permute %x over ["a", "b":(1)2] to ["b":(2)2, "a"] : tensor<8xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @exchange_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.exchange' op expected an axis of the mesh, found "b"}}
  %0 = dist.exchange %x over ["b"] dim = 0 size = 8 step = 2 offset = -1 fill = 0.0 : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @exchange_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.exchange' op expected a dimension of a tensor of rank 1, found 2}}
  %0 = dist.exchange %x over ["a"] dim = 2 size = 8 step = 2 offset = -1 fill = 0.0 : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @exchange_c3(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.exchange' op expected at most 8 rows of dimension 0, 4 blocks of 2, found 9}}
  %0 = dist.exchange %x over ["a"] dim = 0 size = 9 step = 2 offset = -1 fill = 0.0 : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @exchange_c3_negative(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.exchange' op expected a 'size' of at least 0, found -1}}
  %0 = dist.exchange %x over ["a"] dim = 0 size = -1 step = 2 offset = -1 fill = 0.0 : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @send_rows_c1(%x: tensor<4x6xf32>, %to: tensor<4x2xi64>) {
  // expected-error@+1 {{'dist.send_rows' op expected an axis of the mesh, found "b"}}
  %0 = dist.send_rows %x to %to over ["b"] fill = 0.0 : tensor<4x6xf32>, tensor<4x2xi64> -> tensor<32x6xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @send_rows_c2(%x: tensor<4x6xf32>, %to: tensor<3x2xi64>) {
  // expected-error@+1 {{'dist.send_rows' op expected 'to' with 4 rows, those of the operand, found 3}}
  %0 = dist.send_rows %x to %to over ["a"] fill = 0.0 : tensor<4x6xf32>, tensor<3x2xi64> -> tensor<32x6xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @send_rows_c2_type(%x: tensor<4x6xf32>, %to: tensor<4x2xi32>) {
  // expected-error@+1 {{'dist.send_rows' op expected two dimensions, and 'to' of i64, found 'tensor<4x6xf32>' and 'tensor<4x2xi32>'}}
  %0 = dist.send_rows %x to %to over ["a"] fill = 0.0 : tensor<4x6xf32>, tensor<4x2xi32> -> tensor<32x6xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @return_rows_c1(%x: tensor<32x6xf32>, %to: tensor<4x2xi64>) {
  // expected-error@+1 {{'dist.return_rows' op expected an axis of the mesh, found "b"}}
  %0 = dist.return_rows %x to %to over ["b"] : tensor<32x6xf32>, tensor<4x2xi64> -> tensor<8x6xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @return_rows_c2(%x: tensor<32x6xf32>, %to: tensor<4x2xi64>) {
  // expected-error@+1 {{'dist.return_rows' op expected 8 rows, one per element of 'to', found 9}}
  %0 = dist.return_rows %x to %to over ["a"] : tensor<32x6xf32>, tensor<4x2xi64> -> tensor<9x6xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @broadcast_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.broadcast' op expected an axis of the mesh, found "b"}}
  %0 = dist.broadcast %x over ["b"] root = 0 : tensor<2xf32>
  return
}

// -----

dist.mesh @mesh <["a"=4]>
func.func @broadcast_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dist.broadcast' op expected 'root' to be from 0 to 3, found 4}}
  %0 = dist.broadcast %x over ["a"] root = 4 : tensor<2xf32>
  return
}

// -----

// expected-note@+1 {{its axes are #dist.mesh<["a"=4]>}}
dist.mesh @mesh <["a"=4]>
func.func @coordinate_c1() {
  // expected-error@+1 {{'dist.coordinate' op expected an axis of the mesh, found "b"}}
  %0 = dist.coordinate over ["b"] : tensor<i64>
  return
}
