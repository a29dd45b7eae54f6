// The axes that a manual computation divides by itself, and the collectives of
// its body in terms of them.
#ifndef PARTITA_FRONTENDS_STABLEHLO_MANUAL_AXES_H_
#define PARTITA_FRONTENDS_STABLEHLO_MANUAL_AXES_H_

#include <string>

#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "frontends/builder/emitter.h"
#include "llvm/ADT/StringSet.h"

namespace partita::stablehlo {

// An axis of the mesh that a manual computation divides by itself. Axes of one
// device are left out.
struct ManualAxis {
  std::string name;
  int64_t size;
  size_t place;  // among the axes of the mesh
};

// A collective operation of a body. Axes are numbers of manual axes; the first
// one is the slowest in the numbering of a group's members.
struct Collective {
  enum class Kind {
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kAllToAll,
    kPermute,
    kPartitionId
  };
  Kind kind;
  builder::Shape axes = {};
  nn::ReduceKind reduction = nn::ReduceKind::sum;
  // The dimension to gather, scatter or split, and the one to concatenate.
  int64_t dim = 0, concat_dim = 0;
  // For each member of a group, the member whose value it receives; -1: zeros.
  builder::Shape sources = {};
  bool is_unsigned = false;
};

// The axes of one manual computation, and the collectives of its body.
class ManualAxes {
 public:
  // `names` are axes of the mesh, which is not null.
  ManualAxes(dist::MeshAttr mesh, mlir::DenseI64ArrayAttr devices,
             const llvm::StringSet<>& names);

  llvm::ArrayRef<ManualAxis> all() const { return axes_; }
  builder::Dims sizes() const { return sizes_; }
  int64_t sizeOf(builder::Dims axes) const;
  // The number of the axis; -1 if it is none of these.
  int64_t find(llvm::StringRef name) const;

  // The axes along which the devices of each group differ. `groups` has
  // `members` numbers of devices per group. Returns an error's text if the
  // groups are not all those along some of these axes.
  std::string axesOfGroups(builder::Dims groups, int64_t members,
                           builder::Shape& axes) const;
  // The same for pairs of a sending and a receiving device.
  std::string axesOfPairs(builder::Dims pairs, builder::Shape& axes,
                          builder::Shape& sources) const;
  // The numbers of devices, over all these axes, at coordinate 0 of the others.
  builder::Shape deviceNumbers() const;

  // Collectives of the body, by the number that stands for them.
  llvm::SmallVector<Collective> collectives;

 private:
  // Coordinates of a device along all axes of the mesh. Empty if there is no
  // such device.
  builder::Shape coordinates(int64_t device) const;
  int64_t deviceCount() const { return builder::product(mesh_sizes_); }
  // Numbers of manual axes at these places of the mesh; false if one of them is
  // not manual.
  bool toManual(builder::Dims places, builder::Shape& axes) const;

  builder::Shape mesh_sizes_;
  builder::Shape positions_;  // in the mesh, by device
  llvm::SmallVector<ManualAxis> axes_;
  builder::Shape sizes_;
};

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_MANUAL_AXES_H_
