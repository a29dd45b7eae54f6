#include "frontends/stablehlo/shardings.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

namespace partita::stablehlo {
namespace {

using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::success;
using mlir::Attribute;

// A field of a dictionary; null if it is absent or of another kind.
template <typename AttrT>
AttrT field(Attribute attribute, llvm::StringRef name) {
  const auto dictionary =
      mlir::dyn_cast_if_present<mlir::DictionaryAttr>(attribute);
  return dictionary ? dictionary.getAs<AttrT>(name) : AttrT();
}

mlir::InFlightDiagnostic damaged(mlir::Location loc) {
  return mlir::emitError(loc) << "sharding of Shardy: ";
}

}  // namespace

LogicalResult Shardings::read(mlir::ModuleOp program, mlir::Location loc) {
  constexpr int64_t kMaxDevices = int64_t{1} << 20;
  for (mlir::Operation& op : *program.getBody()) {
    if (op.getName().getStringRef() != "sdy.mesh") continue;
    if (const auto name = op.getAttrOfType<mlir::StringAttr>("sym_name"))
      names_.insert(name.getValue());
    const Attribute mesh = op.getAttr("mesh");
    const auto axes = field<mlir::ArrayAttr>(mesh, "axes");
    const auto devices = field<mlir::DenseI64ArrayAttr>(mesh, "devices");
    if (!axes || !devices)
      return damaged(loc) << "expected a mesh with axes, found " << mesh;
    // A mesh without axes divides nothing.
    if (axes.empty()) continue;
    SmallVector<dist::MeshAxisAttr> own;
    llvm::StringMap<int64_t> sizes;
    int64_t count = 1;
    for (Attribute axis : axes) {
      const auto name = field<mlir::StringAttr>(axis, "name");
      const auto size = field<mlir::IntegerAttr>(axis, "size");
      if (!name || name.empty() || !size || size.getInt() < 1 ||
          size.getInt() > kMaxDevices / count ||
          !sizes.try_emplace(name, size.getInt()).second)
        return damaged(loc) << "expected different axes of at most "
                            << kMaxDevices << " devices, found " << axis;
      count *= size.getInt();
      own.push_back(
          dist::MeshAxisAttr::get(op.getContext(), name, size.getInt()));
    }
    SmallVector<bool> seen(count, false);
    for (int64_t device : devices.asArrayRef()) {
      if (device < 0 || device >= count || seen[device])
        return damaged(loc)
               << "expected each device of the mesh once, found " << device;
      seen[device] = true;
    }
    if (!devices.empty() && devices.size() != count)
      return damaged(loc) << "expected " << count << " devices, found "
                          << devices.size();
    const auto found = dist::MeshAttr::get(op.getContext(), own);
    const auto order = devices.empty() ? mlir::DenseI64ArrayAttr() : devices;
    if (mesh_ && (mesh_ != found || devices_ != order))
      return damaged(loc) << "expected one mesh, found several: " << mesh_
                          << " and " << found
                          << "; export the function for one mesh";
    mesh_ = found;
    devices_ = order;
    sizes_ = std::move(sizes);
  }
  return success();
}

void Shardings::addMesh(mlir::ModuleOp module) const {
  if (!mesh_) return;
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(module.getBody());
  dist::MeshOp::create(builder, module.getLoc(), dist::kMeshName, mesh_,
                       devices_);
}

FailureOr<dist::AxisAttr> Shardings::axis(Attribute attribute,
                                          mlir::Location loc) const {
  const auto name = field<mlir::StringAttr>(attribute, "name");
  const auto part = field<mlir::DenseI64ArrayAttr>(attribute, "part");
  const auto known = name ? sizes_.find(name) : sizes_.end();
  if (known == sizes_.end())
    return damaged(loc) << "expected an axis of the mesh, found " << attribute;
  if (!part) return dist::AxisAttr::get(name.getContext(), name);
  const int64_t size = known->second;
  if (part.size() != 2 || part[0] < 1 || part[1] < 1 || part[0] > size ||
      part[1] > size || size % (part[0] * part[1]) != 0)
    return damaged(loc) << "expected a part of axis " << name << " of size "
                        << size << ", found " << part;
  return dist::AxisAttr::get(name.getContext(), name, part[0], part[1]);
}

FailureOr<SmallVector<dist::AxisAttr>> Shardings::axes(
    Attribute attribute, mlir::Location loc) const {
  SmallVector<dist::AxisAttr> result;
  const auto list = mlir::dyn_cast_if_present<mlir::ArrayAttr>(attribute);
  if (!attribute) return result;
  if (!list) return damaged(loc) << "expected axes, found " << attribute;
  for (Attribute entry : list) {
    auto one = axis(entry, loc);
    if (failed(one)) return failure();
    // An axis of one device divides nothing.
    if (sizes_.lookup(one->getName()) > 1) result.push_back(*one);
  }
  return result;
}

LogicalResult Shardings::checkMesh(Attribute mesh, mlir::Location loc) const {
  if (const auto symbol =
          mlir::dyn_cast_if_present<mlir::SymbolRefAttr>(mesh)) {
    if (names_.contains(symbol.getLeafReference().getValue())) return success();
    return damaged(loc) << "expected the name of a mesh of the program, found "
                        << symbol;
  }
  // A mesh in place of a name.
  const auto axes = field<mlir::ArrayAttr>(mesh, "axes");
  if (!axes) return damaged(loc) << "expected a mesh, found none";
  if (axes.empty()) return success();
  const size_t expected = mesh_ ? mesh_.getAxes().size() : 0;
  bool is_same = axes.size() == expected;
  for (size_t i = 0; is_same && i < expected; ++i) {
    const auto name = field<mlir::StringAttr>(axes[i], "name");
    const auto size = field<mlir::IntegerAttr>(axes[i], "size");
    const dist::MeshAxisAttr own = mesh_.getAxes()[i];
    is_same = name && size && name.getValue() == own.getName() &&
              size.getInt() == own.getSize();
  }
  if (is_same) return success();
  return damaged(loc) << "expected the mesh of the program, found a sharding "
                         "over another one; export the function for one mesh";
}

FailureOr<dist::ShardingAttr> Shardings::sharding(Attribute attribute,
                                                  int64_t rank,
                                                  mlir::Location loc) const {
  if (failed(checkMesh(field<Attribute>(attribute, "mesh"), loc)))
    return failure();
  if (!mesh_) return dist::ShardingAttr();
  const auto dims = field<mlir::ArrayAttr>(attribute, "dims");
  if (!dims || static_cast<int64_t>(dims.size()) != rank)
    return damaged(loc) << "expected " << rank << " dimensions, found "
                        << attribute;
  mlir::MLIRContext* context = attribute.getContext();
  SmallVector<dist::AxisAttr> used;
  const auto use = [&](llvm::ArrayRef<dist::AxisAttr> list) {
    for (dist::AxisAttr axis : list) {
      for (dist::AxisAttr other : used)
        if (axis.overlaps(other)) return false;
      used.push_back(axis);
    }
    return true;
  };
  SmallVector<dist::DimAttr> own;
  bool is_fine = true;
  for (Attribute dim : dims) {
    auto list = axes(field<mlir::ArrayAttr>(dim, "axes"), loc);
    if (failed(list)) return failure();
    is_fine = is_fine && use(*list);
    const auto closed = field<mlir::BoolAttr>(dim, "closed");
    const auto priority = field<mlir::IntegerAttr>(dim, "priority");
    SmallVector<int64_t> priorities;
    if (priority && priority.getInt() > 0 && priority.getInt() < 1 << 16)
      priorities.assign(list->size(), priority.getInt());
    own.push_back(dist::DimAttr::get(context, *list,
                                     /*open=*/closed && !closed.getValue(),
                                     priorities, /*block=*/0));
  }
  auto replicated = axes(field<mlir::ArrayAttr>(attribute, "replicated"), loc);
  auto unreduced = axes(field<mlir::ArrayAttr>(attribute, "unreduced"), loc);
  if (failed(replicated) || failed(unreduced)) return failure();
  if (!is_fine || !use(*replicated) || !use(*unreduced))
    return damaged(loc) << "expected each axis once, found " << attribute;
  if (!unreduced->empty())
    return damaged(loc) << "unreduced axes at the edge of a program are not "
                           "supported; reduce the value within it";
  return dist::ShardingAttr::get(context, own, *replicated, {});
}

}  // namespace partita::stablehlo
