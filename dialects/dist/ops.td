// Operations of the dist dialect. Each constraint (Cn) is checked in verify.cc and violated by a test in
// tests/dialects/dist/invalid.mlir.
#ifndef PARTITA_DIALECTS_DIST_OPS_TD
#define PARTITA_DIALECTS_DIST_OPS_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/dist/attrs.td"
include "dialects/nn/interfaces.td"

def Dist_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def Dist_I64Scalar : TypeConstraint<CPred<"$_self == ::mlir::RankedTensorType::get({}, ::mlir::IntegerType::get($_self.getContext(), 64))">,
                                    "tensor<i64>">, BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;

def Dist_MeshOp : Op<Dist_Dialect, "mesh", [Symbol]> {
  let summary = "The devices as a grid of named axes";
  let description = [{
    Row-major position i of the grid holds device `device_ids[i]`, or device i without `device_ids`.
    - (C1) The mesh is named `mesh` and is an operation of a module's body.
    - (C2) Axes have distinct, non-empty names and sizes of at least 1.
    - (C3) `device_ids` holds each number from 0 to the number of devices - 1 once.

    Example: `dist.mesh @mesh <["data"=2, "tensor"=4]>`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Dist_MeshAttr:$axes, OptionalAttr<DenseI64ArrayAttr>:$device_ids);
  let assemblyFormat = "$sym_name $axes (`device_ids` `=` $device_ids^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The number of the axis with this name; -1 if there is none.
    int64_t indexOf(::llvm::StringRef name);
    // Number of positions along a part of an axis, or along several. All of
    // them must belong to this mesh.
    int64_t sizeOf(AxisAttr axis);
    int64_t sizeOf(::llvm::ArrayRef<AxisAttr> axes);
    // Number of devices.
    int64_t getDeviceCount();
  }];
}

//===----------------------------------------------------------------------===//
// On global values
//===----------------------------------------------------------------------===//

class Dist_ValueOp<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, !listconcat([Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<NN_ReferenceOpInterface>], traits)> {
  let results = (outs Dist_Tensor:$result);
  // Each of these operations returns its operand unchanged.
  let extraClassDefinition = [{
    ::mlir::FailureOr<::llvm::SmallVector<::partita::nn::Tensor>> $cppClass::evaluate(
        ::llvm::ArrayRef<::partita::nn::Tensor> operands) {
      return ::llvm::SmallVector<::partita::nn::Tensor>{operands.front()};
    }
  }];
}

def Dist_ConstraintOp : Dist_ValueOp<"constraint", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                                    DeclareOpInterfaceMethods<NN_ShardingRuleOpInterface>]> {
  let summary = "Fixes the sharding of a value";
  let description = [{
    - (C1) `sharding` fits the result and the mesh (see the dialect's C1 to C4).

    Example: `%y = dist.constraint %x <[{"data"}, {?} ]> : tensor<8x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$sharding);
  let assemblyFormat = "$input $sharding attr-dict `:` type($input)";
}

def Dist_BarrierOp : Dist_ValueOp<"barrier"> {
  let summary = "Limits the direction of propagation";
  let description = [{
    With `forward`, shardings propagate only from the operand to the result; with `backward`, only from the result to the
    operand; with `none`, in neither direction.

    Example: `%y = dist.barrier %x forward : tensor<8x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_DirectionAttr:$direction);
  let assemblyFormat = "$input $direction attr-dict `:` type($input)";
}

def Dist_GroupOp : Dist_ValueOp<"group", [DeclareOpInterfaceMethods<NN_ShardingRuleOpInterface>]> {
  let summary = "Gives all values of one group the same sharding";
  let description = [{
    - (C1) All members of a group in a function have the same shape.

    Example: `%y = dist.group %x id = 3 : tensor<8x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$id);
  let assemblyFormat = "$input `id` `=` $id attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Dist_ReshardOp : Dist_ValueOp<"reshard", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Changes the sharding of a value";
  let description = [{
    Partitioning replaces it by the cheapest sequence of collectives. Axes that are unreduced in the result must already be
    unreduced in the operand.
    - (C1) Both shardings fit the result and the mesh (see the dialect's C1 to C4).
    - (C2) Axes unreduced in `to` are unreduced in `from`.

    Example: `%y = dist.reshard %x from <[{"data"}, {} ]> to <[{}, {"data"} ]> : tensor<8x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$from, Dist_ShardingAttr:$to, OptionalAttr<AnyAttr>:$why);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// On local values
//===----------------------------------------------------------------------===//

// The devices that differ only in their position along `axes` form a group of n devices. `why` is a chain of reasons for people; no pass
// reads it.
class Dist_Collective<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  let hasVerifier = 1;
}

def Dist_AllReduceOp : Dist_Collective<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "Combines the elements of all devices, on every device";
  let description = [{
    - (C1) `axes` are of the mesh.
    - (C2) `sum`, `prod`, `max` and `min` apply to numbers, `any` and `all` to i1.

    Example: `%y = dist.all_reduce %x over ["tensor"] sum : tensor<4x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, Dist_ReductionAttr:$reduction, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` custom<Axes>($axes) $reduction attr-dict `:` type($input)";
}

def Dist_AllGatherOp : Dist_Collective<"all_gather"> {
  let summary = "Joins the devices' blocks of a dimension";
  let description = [{
    Each of n devices has a block of b rows of `dim`; the result has all S rows. Padding rows after S are dropped.
    - (C1) `axes` are of the mesh.
    - (C2) `dim` is a dimension; the types are equal but for its size.
    - (C3) S is at most n * b.

    Example: `%y = dist.all_gather %x over ["tensor"] dim = 1 : tensor<4x2xf32> -> tensor<4x7xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$dim, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` custom<Axes>($axes) `dim` `=` $dim attr-dict `:` type($input) `->` type($result)";
}

def Dist_ReduceScatterOp : Dist_Collective<"reduce_scatter"> {
  let summary = "Combines the elements of all devices; each device keeps its block";
  let description = [{
    The operand has S rows of `dim`; the result is this device's block of b rows. Rows after S are 0.
    - (C1) `axes` are of the mesh.
    - (C2) `dim` is a dimension; the types are equal but for its size.
    - (C3) S is at most n * b.
    - (C4) `sum`, `prod`, `max` and `min` apply to numbers, `any` and `all` to i1.

    Example: `%y = dist.reduce_scatter %x over ["tensor"] dim = 1 sum : tensor<4x7xf32> -> tensor<4x2xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$dim, Dist_ReductionAttr:$reduction, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` custom<Axes>($axes) `dim` `=` $dim $reduction attr-dict `:` type($input) `->` type($result)";
}

def Dist_AllSliceOp : Dist_Collective<"all_slice"> {
  let summary = "Takes each device's block of a value that all devices have";
  let description = [{
    The operand has S rows of `dim`; the result is this device's block of b rows. Rows after S are 0. No data moves between
    devices.
    - (C1) `axes` are of the mesh.
    - (C2) `dim` is a dimension; the types are equal but for its size.
    - (C3) S is at most n * b.

    Example: `%y = dist.all_slice %x over ["tensor"] dim = 1 : tensor<4x7xf32> -> tensor<4x2xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$dim, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` custom<Axes>($axes) `dim` `=` $dim attr-dict `:` type($input) `->` type($result)";
}

def Dist_AllToAllOp : Dist_Collective<"all_to_all"> {
  let summary = "Moves the division from one dimension to another";
  let description = [{
    `split_dim` goes from S rows to this device's block of b rows; rows after S are 0. `concat_dim` goes from this device's block
    of b' rows to all S' rows; padding rows after S' are dropped.
    - (C1) `axes` are of the mesh.
    - (C2) `split_dim` and `concat_dim` are two dimensions; the types are equal but for their sizes.
    - (C3) S is at most n * b, and S' at most n * b'.

    Example: `%y = dist.all_to_all %x over ["tensor"] split = 0 concat = 1 : tensor<8x2xf32> -> tensor<2x7xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$split_dim, I64Attr:$concat_dim, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `over` custom<Axes>($axes) `split` `=` $split_dim `concat` `=` $concat_dim attr-dict `:` type($input) `->` type($result)
  }];
}

def Dist_PermuteOp : Dist_Collective<"permute", [SameOperandsAndResultType]> {
  let summary = "Moves shards between devices";
  let description = [{
    The result on the device of index i along `to` is the operand of the device of index (i - `shift`) mod n along `axes`, of n devices,
    with the same position along all other axes.
    - (C1) `axes` and `to` are of the mesh.
    - (C2) `axes` and `to` cover the same parts of axes, in another order or split differently.

    Example: `%y = dist.permute %x over ["data", "tensor"] to ["tensor", "data"] : tensor<4x6xf32>`. One step of a ring:
    `%y = dist.permute %x over ["seq"] to ["seq"] shift = 1 : tensor<4x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, Dist_AxesAttr:$to, OptionalAttr<AnyAttr>:$why,
                       DefaultValuedAttr<I64Attr, "0">:$shift);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `over` custom<Axes>($axes) `to` custom<Axes>($to) (`shift` `=` $shift^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 0;
}

def Dist_ExchangeOp : Dist_Collective<"exchange"> {
  let summary = "Gives each device a window of a divided dimension";
  let description = [{
    The operand holds a block of b of the `size` rows of `dim`, and the result w rows. The device of index r receives rows
    [r * step + offset, r * step + offset + w) from the devices that hold them; rows outside [0, size) are `fill`.
    One use is the halo of a convolution, including stride, dilation and windows wider than a block. Another is a change of the
    block's length. With a negative `step`, blocks change places in reverse order.
    - (C1) `axes` are of the mesh.
    - (C2) `dim` is a dimension; the types are equal but for its size.
    - (C3) `size` is from 0 to n * b.

    Example: `%y = dist.exchange %x over ["tensor"] dim = 0 size = 14 step = 4 offset = -1 fill = 0.0 : tensor<4x6xf32> -> tensor<6x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$dim, I64Attr:$size, I64Attr:$step, I64Attr:$offset,
                       F64Attr:$fill, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `over` custom<Axes>($axes) `dim` `=` $dim `size` `=` $size `step` `=` $step `offset` `=` $offset `fill` `=` $fill attr-dict
    `:` type($input) `->` type($result)
  }];
}

def Dist_SendRowsOp : Dist_Collective<"send_rows"> {
  let summary = "Sends each row to the devices that its numbers name";
  let description = [{
    `input` has T rows, and `to` k numbers for each: row t goes to the devices with the indices `to`[t, 0], `to`[t, 1] ... along
    `axes`. A number outside [0, n) sends nothing. The result has R rows: those of device 0 come first, then those of device 1
    and so on, each device's in the order of `to`; the rest is `fill`. If a device receives more than R rows, the run ends
    with an error. Devices tell each other how many rows travel first, so only rows that are sent move.
    - (C1) `axes` are of the mesh.
    - (C2) Tensors have two dimensions, `to` is of i64 and has T rows; the types are equal but for their rows.

    Example: `%y = dist.send_rows %x to %to over ["tensor"] fill = -1.0 : tensor<4x6xf32>, tensor<4x2xi64> -> tensor<32x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_Tensor:$to, Dist_AxesAttr:$axes, F64Attr:$fill, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `to` $to `over` custom<Axes>($axes) `fill` `=` $fill attr-dict `:` type($input) `,` type($to) `->` type($result)
  }];
}

def Dist_ReturnRowsOp : Dist_Collective<"return_rows"> {
  let summary = "Returns rows to the devices that sent them";
  let description = [{
    `input` has R rows, one for each row that `dist.send_rows` with the same `to` received on this device, in its order. The result
    has one row for each element of `to`, in order: the row from the device that it names, or 0 if it names none.
    - (C1) `axes` are of the mesh.
    - (C2) Tensors have two dimensions, and `to` is of i64; the types are equal but for their rows. The result has a row per element of `to`.

    Example: `%y = dist.return_rows %x to %to over ["tensor"] : tensor<32x6xf32>, tensor<4x2xi64> -> tensor<8x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_Tensor:$to, Dist_AxesAttr:$axes, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `to` $to `over` custom<Axes>($axes) attr-dict `:` type($input) `,` type($to) `->` type($result)
  }];
}

def Dist_BroadcastOp : Dist_Collective<"broadcast", [SameOperandsAndResultType]> {
  let summary = "Copies one device's value to all devices";
  let description = [{
    - (C1) `axes` are of the mesh.
    - (C2) `root` is an index along `axes`.

    Example: `%y = dist.broadcast %x over ["tensor"] root = 0 : tensor<4x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$root, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input `over` custom<Axes>($axes) `root` `=` $root attr-dict `:` type($input)";
  let hasVerifier = 0;
}

def Dist_CoordinateOp : Dist_Collective<"coordinate"> {
  let summary = "This device's index along axes";
  let description = [{
    - (C1) `axes` are of the mesh.

    Example: `%i = dist.coordinate over ["data", "tensor"] : tensor<i64>`
  }];
  let arguments = (ins Dist_AxesAttr:$axes);
  let results = (outs Dist_I64Scalar:$result);
  let assemblyFormat = "`over` custom<Axes>($axes) attr-dict `:` type($result)";
  let hasVerifier = 0;
}

//===----------------------------------------------------------------------===//
// Between the stages of a pipeline
//===----------------------------------------------------------------------===//

// Stages run different programs. For each pair of devices, the receives of one must match the sends of the other, in the same order.
class Dist_Transfer<string mnemonic>
    : Op<Dist_Dialect, mnemonic, [MemoryEffects<[MemRead, MemWrite]>]>;

def Dist_SendOp : Dist_Transfer<"send"> {
  let summary = "Sends a value to the stage at another index along axes";
  let description = [{
    Each device sends its operand to the device with index `to` along `axes` and the same position along all other axes. The
    send does not wait until the receiver has the value.

    Example: `dist.send %x over ["data"] to = 1 : tensor<4x6xf32>`
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_AxesAttr:$axes, I64Attr:$to, OptionalAttr<AnyAttr>:$why);
  let assemblyFormat = "$input `over` custom<Axes>($axes) `to` `=` $to attr-dict `:` type($input)";
}

def Dist_ReceiveOp : Dist_Transfer<"receive"> {
  let summary = "Receives a value from the stage at another index along axes";
  let description = [{
    Waits for the value sent by the device with index `from` along `axes` and the same position along all other axes.

    Example: `%y = dist.receive over ["data"] from = 1 : tensor<4x6xf32>`
  }];
  let arguments = (ins Dist_AxesAttr:$axes, I64Attr:$from, OptionalAttr<AnyAttr>:$why);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "`over` custom<Axes>($axes) `from` `=` $from attr-dict `:` type($result)";
}

#endif  // PARTITA_DIALECTS_DIST_OPS_TD
