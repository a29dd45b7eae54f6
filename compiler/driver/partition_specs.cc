#include "compiler/driver/partition_specs.h"

#include "compiler/driver/divided_model.h"
#include "llvm/Support/FormatVariadic.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::RankedTensorType;
namespace json = llvm::json;

// Null for a whole dimension, else an array of names of axes. Nothing if JAX
// has no words for it.
std::optional<json::Value> wordsOf(const core::Mesh& mesh, int64_t size,
                                   const core::DimSharding& dim) {
  json::Array axes;
  for (const core::AxisRef& ref : dim.axes) {
    if (ref != core::WholeAxis(mesh, ref.axis)) return std::nullopt;
    axes.push_back(mesh.axes[ref.axis].name);
  }
  if (axes.empty()) return json::Value(nullptr);
  const int64_t shards = core::SizeOf(dim.axes);
  if (core::BlockOf(size, dim) != (size + shards - 1) / shards)
    return std::nullopt;
  return json::Value(std::move(axes));
}

class Specs {
 public:
  explicit Specs(const DividedModel& model) : model_(model) {}

  json::Object collect() {
    mlir::func::FuncOp main = model_.main();
    json::Array arguments, results;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (!name || !model_.shardingOf(main.getArgument(i))) continue;
      const auto [type, sharding] = model_.storedTensor(i);
      add(arguments, name.getValue(), type, sharding);
    }
    mlir::Operation* end = main.getBody().front().getTerminator();
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      const mlir::Value value = end->getOperand(i);
      if (!name || !model_.shardingOf(value)) continue;
      add(results, name.getValue(),
          llvm::cast<RankedTensorType>(value.getType()),
          model_.shardingOf(value));
    }
    json::Array axes;
    for (const core::Axis& axis : model_.mesh.axes)
      axes.push_back(json::Object{{"name", axis.name}, {"size", axis.size}});
    return json::Object{{"mesh", std::move(axes)},
                        {"arguments", std::move(arguments)},
                        {"results", std::move(results)}};
  }
  int64_t withoutWords() const { return without_words_; }
  int64_t uneven() const { return uneven_; }

 private:
  void add(json::Array& list, llvm::StringRef name, RankedTensorType type,
           const std::optional<core::Sharding>& sharding) {
    const std::vector<int64_t> shape(type.getShape().begin(),
                                     type.getShape().end());
    json::Array spec;
    bool is_expressed = sharding && sharding->unreduced.empty();
    for (size_t i = 0; is_expressed && i < shape.size(); ++i) {
      auto words = wordsOf(model_.mesh, shape[i], sharding->dims[i]);
      is_expressed = words.has_value();
      if (words) spec.push_back(std::move(*words));
    }
    if (!is_expressed) {
      ++without_words_;
      return;
    }
    const bool is_uneven = core::IsUneven(shape, *sharding);
    uneven_ += is_uneven ? 1 : 0;
    list.push_back(json::Object{{"name", name},
                                {"shape", json::Array(shape)},
                                {"spec", std::move(spec)},
                                {"is_uneven", is_uneven}});
  }

  const DividedModel& model_;
  int64_t without_words_ = 0, uneven_ = 0;
};

// "P(None, ('data', 'tensor'))".
std::string specText(const json::Array& spec) {
  std::string text = "P(";
  size_t last = spec.size();
  while (last > 0 && spec[last - 1].getAsNull()) --last;
  for (size_t i = 0; i < last; ++i) {
    if (i > 0) text += ", ";
    const json::Array* axes = spec[i].getAsArray();
    if (!axes) {
      text += "None";
      continue;
    }
    std::string names;
    for (const json::Value& axis : *axes)
      names += (names.empty() ? "'" : ", '") + axis.getAsString()->str() + "'";
    text += axes->size() > 1 ? "(" + names + ")" : names;
  }
  return text + ")";
}

std::string tableText(llvm::StringRef name, const json::Array& list) {
  std::string text = (name + " = {\n").str();
  for (const json::Value& entry : list) {
    const json::Object& tensor = *entry.getAsObject();
    text += "    " + llvm::formatv("{0}", *tensor.get("name")).str() + ": " +
            specText(*tensor.getArray("spec")) + ",";
    if (*tensor.getBoolean("is_uneven"))
      text += "  # its size is no multiple of the devices, which JAX refuses";
    text += "\n";
  }
  return text + "}\n";
}

std::string pythonText(const json::Object& content) {
  std::string text =
      "\"\"\"Written by partita annotate: how a plan divides the arguments and "
      "results of a model.\n\npartita.partition_specs puts them into the "
      "arguments' pytree.\n\"\"\"\n\nfrom jax.sharding import PartitionSpec "
      "as P\n\n# For jax.make_mesh(tuple(MESH.values()), tuple(MESH)).\nMESH = "
      "{";
  bool is_first = true;
  for (const json::Value& axis : *content.getArray("mesh")) {
    text += llvm::formatv("{0}\"{1}\": {2}", is_first ? "" : ", ",
                          *axis.getAsObject()->getString("name"),
                          *axis.getAsObject()->getInteger("size"));
    is_first = false;
  }
  return text + "}\n\n" +
         tableText("ARGUMENTS", *content.getArray("arguments")) + "\n" +
         tableText("RESULTS", *content.getArray("results"));
}

}  // namespace

bool isPartitionSpecs(llvm::StringRef path) {
  return path.ends_with(".json") || path.ends_with(".py");
}

FailureOr<json::Value> writePartitionSpecs(const AnnotateOptions& options,
                                           mlir::MLIRContext* context,
                                           Fault& fault) {
  auto model =
      divideModel(options.model, options.import, options.plan, context, fault);
  if (mlir::failed(model)) return failure();
  const mlir::Location loc =
      mlir::FileLineColLoc::get(context, options.model, 0, 0);
  const bool has_stages =
      llvm::any_of(model->plan.shard, [](const plan::Entry& entry) {
        return llvm::any_of(entry.dimensions, [](const auto& each) {
          return each.dimension == "D";
        });
      });
  if (has_stages)
    mlir::emitWarning(loc)
        << "PartitionSpecs have no stages: D is left out, so each tensor is "
           "written as if all stages had it";
  Specs specs(*model);
  const json::Value content = specs.collect();
  const json::Object& object = *content.getAsObject();
  const std::string text = llvm::StringRef(options.output).ends_with(".py")
                               ? pythonText(object)
                               : llvm::formatv("{0:2}\n", content).str();
  if (absl::Status written = base::WriteFileAtomically(options.output, text);
      !written.ok())
    return mlir::emitError(loc) << std::string(written.message());
  return json::Value(json::Object{
      {"output", options.output},
      {"arguments", static_cast<int64_t>(object.getArray("arguments")->size())},
      {"results", static_cast<int64_t>(object.getArray("results")->size())},
      {"uneven", specs.uneven()},
      {"without_words", specs.withoutWords()}});
}

void printPartitionSpecs(const json::Value& value, llvm::raw_ostream& stream) {
  const json::Object& facts = *value.getAsObject();
  stream << llvm::formatv(
      "wrote {0}: PartitionSpecs; arguments: {1}, results: {2}\n",
      *facts.getString("output"), *facts.getInteger("arguments"),
      *facts.getInteger("results"));
  if (const int64_t uneven = *facts.getInteger("uneven"); uneven > 0)
    stream << uneven
           << " have a size that is no multiple of their devices, which JAX "
              "refuses\n";
  if (const int64_t silent = *facts.getInteger("without_words"); silent > 0)
    stream << silent
           << " are left out: JAX cannot express parts of an axis, partial "
              "sums, or blocks other than the even share\n";
}

}  // namespace partita::driver
