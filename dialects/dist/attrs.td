// Attributes of the dist dialect. Their text is written and read in attrs.cc.
#ifndef PARTITA_DIALECTS_DIST_ATTRS_TD
#define PARTITA_DIALECTS_DIST_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "dialects/dist/dialect.td"
include "dialects/dist/enums.td"
include "dialects/terms/reduction.td"

class Dist_Attr<string name, string attrMnemonic> : AttrDef<Dist_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_AxisAttr : Dist_Attr<"Axis", "axis"> {
  let summary = "A mesh axis, or a part of one";
  let description = [{
    `"a"` is the whole axis. `"a":(pre)size` is a part of it. On an axis of n devices, the device with coordinate c has
    the coordinate c / (n / (pre * size)) mod size along the part. For an axis of 4 devices, `"a":(1)2` is its slow
    (outer) factor and `"a":(2)2` its fast (inner) factor.

    Example: `#dist.axis<"data":(2)4>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$pre, "int64_t":$size);  // size 0: the whole axis
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name), [{ return $_get($_ctxt, name, 1, 0); }]>];
  let extraClassDeclaration = [{
    bool isWhole() const { return getSize() == 0; }
    // True if the two share a part of the same mesh axis.
    bool overlaps(AxisAttr other) const;
    // Prints the form used inside operations: "a" or "a":(1)2.
    void printShort(::llvm::raw_ostream& os) const;
  }];
}

def Dist_AxesAttr : Dist_Attr<"Axes", "axes"> {
  let summary = "An ordered list of axes, slowest first";
  let description = [{
    The axes number the devices of a group in row-major order; the first axis is the slowest. No part of an axis occurs twice.

    Example: `#dist.axes<["data", "tensor":(1)2]>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"AxisAttr">:$axes);
  let extraClassDeclaration = [{
    auto begin() const { return getAxes().begin(); }
    auto end() const { return getAxes().end(); }
    size_t size() const { return getAxes().size(); }
    bool empty() const { return getAxes().empty(); }
  }];
}

def Dist_DimAttr : Dist_Attr<"Dim", "dim"> {
  let summary = "How one dimension is divided";
  let description = [{
    The axes in braces divide the dimension, most significant first. A final `?` marks it as open: propagation may add axes.
    `p1` is the priority of all axes and `p[1, 3]` gives one priority per axis; lower numbers propagate first and the
    default is 0. `|28` is the number of rows per shard (the block); the default is the even share ceil(size / shards).

    Example: `#dist.dim<{"data", "pod", ?}p[1, 3]|28>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"AxisAttr">:$axes, "bool":$open,
                        OptionalArrayRefParameter<"int64_t">:$priorities,  // one per axis; none: all 0
                        "int64_t":$block);                                 // 0: even
  let builders = [AttrBuilder<(ins CArg<"::llvm::ArrayRef<AxisAttr>", "{}">:$axes, CArg<"bool", "false">:$open),
                              [{ return $_get($_ctxt, axes, open, ::llvm::ArrayRef<int64_t>(), 0); }]>];
  let extraClassDeclaration = [{
    int64_t getPriority(size_t axis) const { return getPriorities().empty() ? 0 : getPriorities()[axis]; }
  }];
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "How one tensor is divided over the mesh";
  let description = [{
    The list has one entry per dimension. Propagation must not use `replicated` axes for this tensor. Along `unreduced`
    axes each device holds a partial sum. Along axes that are not named, every device holds a copy.

    Example: `#dist.sharding<[{"data"}, {"tensor":(1)2, ?}p1, {} ] replicated = {"pipe"} unreduced = {"tensor":(2)2}>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"DimAttr">:$dims, OptionalArrayRefParameter<"AxisAttr">:$replicated,
                        OptionalArrayRefParameter<"AxisAttr">:$unreduced);
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    // No dimension is divided; all are open, or all closed.
    static ShardingAttr getReplicated(::mlir::MLIRContext* context, int64_t rank, bool open = false);
  }];
}

def Dist_MeshAxisAttr : Dist_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "An axis of a mesh and its number of devices";
  let description = [{
    Example: `#dist.mesh_axis<"data"=2>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$size);
  let genVerifyDecl = 0;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "The axes of a mesh, the outermost (slowest network) first";
  let description = [{
    Example: `#dist.mesh<["data"=2, "tensor"=4]>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"MeshAxisAttr">:$axes);
}

def Dist_ReductionAttr : EnumAttr<Dist_Dialect, Terms_Reduction, "reduction"> {
  let cppNamespace = "::partita::dist";
  let assemblyFormat = "`` $value";
}

def Dist_DirectionAttr : EnumAttr<Dist_Dialect, Dist_Direction, "direction"> { let assemblyFormat = "`` $value"; }

#endif  // PARTITA_DIALECTS_DIST_ATTRS_TD
