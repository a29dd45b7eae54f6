// Chooses the configuration, checks every node's annotations and finds the
// mesh; then attaches shardings to values as nodes are imported.
#include "frontends/onnx/annotations.h"

#include "dialects/dist/annotations.h"
#include "frontends/onnx/placement.h"
#include "frontends/onnx/write_annotations.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::onnx {
namespace {

using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

std::string nameOfAxis(size_t axis) {
  constexpr const char* kFirst[] = {"x", "y", "z"};
  return axis < std::size(kFirst) ? kFirst[axis] : "a" + std::to_string(axis);
}

std::string namesOf(llvm::ArrayRef<DeviceConfiguration> configurations) {
  return llvm::join(
      llvm::map_range(configurations,
                      [](const DeviceConfiguration& configuration) {
                        return std::string(configuration.name);
                      }),
      ", ");
}

LogicalResult checkConfigurations(
    llvm::ArrayRef<DeviceConfiguration> configurations, mlir::Location loc) {
  for (auto [i, configuration] : llvm::enumerate(configurations)) {
    const llvm::StringRef name(configuration.name);
    if (llvm::is_contained(
            llvm::map_range(
                configurations.take_front(i),
                [](const DeviceConfiguration& other) { return other.name; }),
            configuration.name))
      return mlir::emitError(loc)
             << "expected configurations of distinct names, found '" << name
             << "' twice";
    if (configuration.num_devices < 1 ||
        configuration.num_devices > kMaxDevices)
      return mlir::emitError(loc)
             << "configuration '" << name << "': expected num_devices from 1 "
             << "to " << kMaxDevices << ", found " << configuration.num_devices;
    const size_t names = configuration.devices.size();
    if (names != 0 && names != static_cast<size_t>(configuration.num_devices))
      return mlir::emitError(loc)
             << "configuration '" << name << "': expected "
             << configuration.num_devices
             << " names of devices, as num_devices says, found " << names;
  }
  return success();
}

// The configuration to read; null if there is none.
FailureOr<const DeviceConfiguration*> choose(
    llvm::ArrayRef<DeviceConfiguration> configurations,
    const std::string& wanted, mlir::Location loc) {
  const DeviceConfiguration* none = nullptr;
  if (!wanted.empty()) {
    for (const DeviceConfiguration& configuration : configurations)
      if (configuration.name == wanted) return &configuration;
    if (wanted == "none") return none;
    if (configurations.empty())
      return mlir::emitError(loc)
             << "--onnx-configuration: expected none, as the model has no "
                "device configurations, found '"
             << wanted << "'";
    return mlir::emitError(loc)
           << "--onnx-configuration: expected one of the model's device "
              "configurations, "
           << namesOf(configurations) << ", or none, found '" << wanted << "'";
  }
  if (configurations.empty()) return none;
  if (configurations.size() == 1) return &configurations[0];
  return mlir::emitError(loc)
         << "the model has several device configurations: "
         << namesOf(configurations)
         << "; choose one with --onnx-configuration, or none";
}

mlir::InFlightDiagnostic refuse(mlir::Location loc, std::string_view tensor) {
  return mlir::emitError(loc) << "device configuration, tensor '"
                              << llvm::StringRef(tensor) << "': ";
}

bool sameSpec(const ShardingSpec& a, const ShardingSpec& b) {
  auto same_factor = [](const SimpleSharding& a, const SimpleSharding& b) {
    return a.size == b.size && a.param == b.param && a.shards == b.shards;
  };
  auto same_dim = [&](const ShardedDim& a, const ShardedDim& b) {
    return a.axis == b.axis &&
           std::equal(a.factors.begin(), a.factors.end(), b.factors.begin(),
                      b.factors.end(), same_factor);
  };
  return a.devices == b.devices && a.groups == b.groups &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    same_dim);
}

// Sizes of the factors; derives a missing one. Returns false with a message if
// their product is not the dimension.
bool sizesOf(const ShardedDim& dim, int64_t size, std::vector<int64_t>& sizes,
             std::string& error) {
  int64_t product = 1, unknown = -1;
  for (auto [i, factor] : llvm::enumerate(dim.factors)) {
    sizes.push_back(factor.size);
    if (factor.size < 0) {
      if (unknown >= 0) {
        error =
            "expected the dim_value of all but one simple_sharding of a "
            "fused axis, found several without";
        return false;
      }
      unknown = static_cast<int64_t>(i);
    } else if (factor.size == 0 || factor.size > size / product) {
      product = 0;
      break;
    } else {
      product *= factor.size;
    }
  }
  if (product != 0 && unknown >= 0 && size % product == 0) {
    sizes[unknown] = size / product;
    return true;
  }
  if (product == size && product != 0) return true;
  error = "expected dim_value to give the " + std::to_string(size) +
          " rows of axis " + std::to_string(dim.axis) + ", found " +
          llvm::join(llvm::map_range(dim.factors,
                                     [](const SimpleSharding& factor) {
                                       return factor.size < 0
                                                  ? std::string("?")
                                                  : std::to_string(factor.size);
                                     }),
                     " x ");
  return false;
}

// Rows per shard. Returns 0 with a message if shards are not runs of rows.
int64_t blockOf(const ShardedDim& dim, int64_t size, std::string& error) {
  std::vector<int64_t> sizes;
  if (!sizesOf(dim, size, sizes, error)) return 0;
  int64_t block = size;
  bool all_divided = true;
  for (auto [factor, rows] : llvm::zip_equal(dim.factors, sizes)) {
    if (factor.shards > 1 && !all_divided) {
      error =
          "expected an axis of several factors to be divided from the first on "
          "(a later one where each before it has a shard per row), found "
          "axis " +
          std::to_string(dim.axis) +
          " with shards that are not runs of its rows, which is not supported";
      return 0;
    }
    if (factor.shards > 1)
      block = block / rows * llvm::divideCeil(rows, factor.shards);
    all_divided = all_divided && factor.shards == rows;
  }
  return block;
}

}  // namespace

FailureOr<std::optional<Annotations>> Annotations::read(
    const Model& model, const std::string& wanted, mlir::Location loc,
    LocationOf location_of) {
  if (failed(checkConfigurations(model.configurations, loc))) return failure();
  auto chosen = choose(model.configurations, wanted, loc);
  if (failed(chosen)) return failure();
  Annotations annotations;
  if (*chosen) {
    annotations.name_ = std::string((*chosen)->name);
    annotations.devices_ = (*chosen)->num_devices;
    const std::string key = attentionKey(annotations.name_);
    for (const auto& [name, value] : model.metadata)
      if (name == key) annotations.attention_ = std::string(value);
  }
  for (const DeviceConfiguration& configuration : model.configurations)
    annotations.known_.push_back(std::string(configuration.name));
  const bool strict = wanted.empty();
  if (failed(annotations.addNodes(model.graph.nodes, strict, location_of)))
    return failure();
  for (const Function& function : model.functions)
    if (failed(annotations.addNodes(function.nodes, strict, location_of)))
      return failure();
  if (!*chosen) return std::optional<Annotations>();
  if (failed(annotations.findMesh(loc))) return failure();
  return std::optional<Annotations>(std::move(annotations));
}

LogicalResult Annotations::addNodes(llvm::ArrayRef<Node> nodes, bool strict,
                                    LocationOf location_of) {
  for (const Node& node : nodes) {
    if (node.device_configurations &&
        failed(addNode(node, strict, location_of(node))))
      return failure();
    for (const Attribute& attribute : node.attributes)
      if (attribute.g &&
          failed(addNodes(attribute.g->nodes, strict, location_of)))
        return failure();
  }
  return success();
}

LogicalResult Annotations::addNode(const Node& node, bool strict,
                                   mlir::Location loc) {
  std::vector<Entry> entries;
  bool found = false;
  for (const NodeConfiguration& configuration : *node.device_configurations) {
    const llvm::StringRef name(configuration.configuration);
    if (strict && !llvm::is_contained(known_, name))
      return mlir::emitError(loc)
             << "expected configuration_id to name a configuration of the "
                "model, "
             << (known_.empty() ? "which has none" : llvm::join(known_, ", "))
             << "; found '" << name
             << "'; correct the file, or read another one with "
                "--onnx-configuration, or none";
    if (devices_ == 0 || name != name_) continue;
    if (found)
      return mlir::emitError(loc) << "expected one device configuration '"
                                  << name << "' per node, found several";
    found = true;
    stages_ += configuration.has_stage;
    for (const ShardingSpec& spec : configuration.specs)
      if (failed(addSpec(node, spec, loc, entries))) return failure();
  }
  if (!entries.empty())
    entries_[node.device_configurations.get()] = std::move(entries);
  return success();
}

LogicalResult Annotations::addSpec(const Node& node, const ShardingSpec& spec,
                                   mlir::Location loc,
                                   std::vector<Entry>& entries) {
  if (!llvm::is_contained(node.inputs, spec.tensor) &&
      !llvm::is_contained(node.outputs, spec.tensor))
    return refuse(loc, spec.tensor)
           << "expected tensor_name to be an input or output of the node, "
           << llvm::join(llvm::map_range(llvm::concat<const std::string_view>(
                                             node.inputs, node.outputs),
                                         [](std::string_view name) {
                                           return std::string(name);
                                         }),
                         ", ");
  for (const Entry& other : entries) {
    if (other.spec.tensor != spec.tensor) continue;
    if (sameSpec(other.spec, spec)) return success();
    return refuse(loc, spec.tensor)
           << "expected one sharding of it at this node, found two that "
              "contradict each other; keep one";
  }
  Entry entry;
  Placement placement;
  std::string error;
  if (!placementOf(spec, devices_, placement, error))
    return refuse(loc, spec.tensor) << error;
  entry.placement = llvm::find(placements_, placement) - placements_.begin();
  if (entry.placement == placements_.size()) {
    placements_.push_back(std::move(placement));
    described_.push_back(std::string(spec.tensor));
  }
  entry.spec = spec;
  entries.push_back(std::move(entry));
  return success();
}

LogicalResult Annotations::findMesh(mlir::Location loc) {
  size_t culprit = 0;
  if (findGrid(devices_, placements_, grid_, culprit)) return success();
  return refuse(loc, described_[culprit])
         << "expected device lists that are all rows and columns of one grid "
            "of the "
         << devices_ << " devices of configuration '" << name_
         << "', found that this one fits into none"
         << (placements_.size() > 1 ? " beside the others" : "");
}

void Annotations::addMesh(mlir::ModuleOp module) const {
  mlir::MLIRContext* context = module.getContext();
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(module.getBody());
  llvm::SmallVector<dist::MeshAxisAttr> axes;
  for (auto [i, size] : llvm::enumerate(grid_.sizes))
    axes.push_back(dist::MeshAxisAttr::get(context, nameOfAxis(i), size));
  mlir::DenseI64ArrayAttr ids;
  if (!grid_.device_ids.empty())
    ids = builder.getDenseI64ArrayAttr(grid_.device_ids);
  dist::MeshOp::create(builder, module.getLoc(), dist::kMeshName,
                       dist::MeshAttr::get(context, axes), ids);
  if (!attention_.empty())
    module->setAttr("dist.attention", builder.getStringAttr(attention_));
}

const Annotations::Entry* Annotations::find(const Node& node,
                                            std::string_view tensor) const {
  if (!node.device_configurations) return nullptr;
  auto found = entries_.find(node.device_configurations.get());
  if (found == entries_.end()) return nullptr;
  for (const Entry& entry : found->second)
    if (entry.spec.tensor == tensor) return &entry;
  return nullptr;
}

FailureOr<dist::ShardingAttr> Annotations::shardingOf(
    const Entry& entry, mlir::RankedTensorType type, mlir::Location loc) const {
  mlir::MLIRContext* context = type.getContext();
  const ShardingSpec& spec = entry.spec;
  const int64_t rank = type.getRank();
  llvm::SmallVector<dist::DimAttr> dims(rank, dist::DimAttr::get(context));
  llvm::SmallVector<bool> seen(rank);
  size_t next = 0;  // factor of the placement
  for (const ShardedDim& dim : spec.dims) {
    if (dim.axis < -rank || dim.axis >= rank)
      return refuse(loc, spec.tensor)
             << "expected axis from " << -rank << " to " << rank - 1
             << ", as the tensor has " << rank << " dimensions, found "
             << dim.axis;
    const int64_t axis = dim.axis < 0 ? dim.axis + rank : dim.axis;
    if (seen[axis])
      return refuse(loc, spec.tensor)
             << "expected each axis in sharded_dim once, found " << axis
             << " twice; factors of one axis are its simple_sharding";
    seen[axis] = true;
    std::string error;
    int64_t block = blockOf(dim, type.getDimSize(axis), error);
    if (!error.empty()) return refuse(loc, spec.tensor) << error;
    llvm::SmallVector<dist::AxisAttr> axes;
    int64_t shards = 1;
    for (const SimpleSharding& factor : dim.factors) {
      if (factor.shards == 1) continue;
      shards *= factor.shards;
      for (int index : grid_.axes[entry.placement][next])
        axes.push_back(dist::AxisAttr::get(context, nameOfAxis(index)));
      ++next;
    }
    if (block ==
        static_cast<int64_t>(llvm::divideCeil(type.getDimSize(axis), shards)))
      block = 0;
    dims[axis] =
        dist::DimAttr::get(context, axes, /*open=*/false,
                           /*priorities=*/{}, axes.empty() ? 0 : block);
  }
  return dist::ShardingAttr::get(context, dims, {}, {});
}

dist::ShardingAttr Annotations::annotationOf(mlir::Value value) const {
  if (mlir::isa<mlir::BlockArgument>(value)) return arguments_.lookup(value);
  if (auto constraint = value.getDefiningOp<dist::ConstraintOp>())
    return constraint.getSharding();
  auto all = value.getDefiningOp()->getAttrOfType<mlir::ArrayAttr>(
      dist::kShardingsAttr);
  if (!all) return {};
  auto own = mlir::cast<dist::ShardingAttr>(
      all[mlir::cast<mlir::OpResult>(value).getResultNumber()]);
  // An annotation of an adjacent operation leaves this result's dimension open.
  const auto is_open = [](dist::DimAttr dim) { return dim.getOpen(); };
  return llvm::any_of(own.getDims(), is_open) ? dist::ShardingAttr() : own;
}

void Annotations::annotate(mlir::Value value, dist::ShardingAttr sharding) {
  if (mlir::isa<mlir::BlockArgument>(value)) {
    arguments_[value] = sharding;
    return;
  }
  mlir::Operation* op = value.getDefiningOp();
  llvm::SmallVector<mlir::Attribute> all;
  for (mlir::OpResult result : op->getResults())
    all.push_back(dist::ShardingAttr::getReplicated(
        op->getContext(),
        mlir::cast<mlir::RankedTensorType>(result.getType()).getRank(),
        /*open=*/true));
  if (auto old = op->getAttrOfType<mlir::ArrayAttr>(dist::kShardingsAttr))
    all.assign(old.begin(), old.end());
  all[mlir::cast<mlir::OpResult>(value).getResultNumber()] = sharding;
  op->setAttr(dist::kShardingsAttr,
              mlir::ArrayAttr::get(op->getContext(), all));
}

FailureOr<Val> Annotations::apply(const Node& node, std::string_view tensor,
                                  Val value, Emitter& emitter) {
  const Entry* entry = find(node, tensor);
  if (!entry) return value;
  auto sharding = shardingOf(*entry, value.type(), emitter.loc());
  if (failed(sharding)) return failure();
  // Values that are folded away or recreated at each use.
  if (value.value.getDefiningOp<mlir::arith::ConstantOp>()) {
    ++constants_;
    return value;
  }
  dist::ShardingAttr own = annotationOf(value.value);
  if (own == *sharding) return value;
  if (!own) {
    annotate(value.value, *sharding);
    return value;
  }
  value.value = dist::ConstraintOp::create(emitter.builder(), emitter.loc(),
                                           value.value, *sharding);
  return value;
}

void Annotations::finish(mlir::func::FuncOp main) {
  int64_t count = 0;
  main.walk(
      [&](mlir::Operation* op) { count += op->hasAttr(dist::kShardingsAttr); });
  for (mlir::BlockArgument argument : main.getArguments())
    if (dist::ShardingAttr sharding = arguments_.lookup(argument))
      main.setArgAttr(argument.getArgNumber(), dist::kShardingAttr, sharding);
  mlir::Builder builder(main.getContext());
  main->getParentOp()->setAttr(dist::kAnnotationsAttr,
                               builder.getI64IntegerAttr(count));
  if (constants_ > 0)
    mlir::emitRemark(main.getLoc())
        << constants_ << " annotations of configuration '" << name_
        << "' are of constants, which every device holds: not used";
  if (stages_ > 0)
    mlir::emitRemark(main.getLoc())
        << stages_ << " nodes of configuration '" << name_
        << "' name pipeline stages: not used, as stages are a matter of a plan";
}

}  // namespace partita::onnx
