// Writes shardings back to an ONNX file. The importer marks the location of
// each tensor; the marks survive all passes and lead from the file's tensors to
// the divided values.
#include "compiler/driver/annotate.h"

#include <filesystem>

#include "compiler/driver/check_model.h"
#include "compiler/driver/compilation.h"
#include "compiler/driver/model_plan.h"
#include "compiler/driver/sharding_spec.h"
#include "compiler/plan/names.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/parameter_views.h"
#include "dialects/nn/dialect.h"
#include "frontends/onnx/marks.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/write_annotations.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

std::vector<int64_t> shapeOf(RankedTensorType type) {
  return {type.getShape().begin(), type.getShape().end()};
}

class Annotation {
 public:
  Annotation(const AnnotateOptions& options, mlir::MLIRContext* context)
      : options_(options), context_(context) {}

  FailureOr<llvm::json::Value> run() {
    if (mlir::failed(readFile()) || mlir::failed(importFile()))
      return failure();
    noteTypes();
    if (mlir::failed(divide())) return failure();
    auto mesh = sharding::meshOf(*module_);
    if (mlir::failed(mesh)) return failure();
    mesh_ = std::move(*mesh);
    annotations_.name = options_.configuration;
    annotations_.num_devices = mesh_.Size();
    if (plan_->attention)
      annotations_.attention =
          plan::NameOf(plan::AttentionNames(), *plan_->attention);
    collectArguments();
    collectValues();
    return write();
  }

  Fault fault() const { return fault_; }

 private:
  mlir::InFlightDiagnostic error() {
    return mlir::emitError(
        mlir::FileLineColLoc::get(context_, options_.model, 0, 0));
  }

  LogicalResult readFile() {
    if (options_.configuration.empty())
      return error() << "--configuration: expected a name, found ''; leave it "
                        "out for 'partita'";
    if (!llvm::StringRef(options_.model).ends_with(".onnx"))
      return error() << "expected an .onnx file to annotate, found "
                     << options_.model;
    auto buffer = llvm::MemoryBuffer::getFile(options_.model, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer)
      return error() << "cannot open '" << options_.model
                     << "': " << buffer.getError().message();
    buffer_ = std::move(*buffer);
    return mlir::failed(checkOutput()) ? failure() : checkFolder();
  }

  // The output must not overwrite the model.
  LogicalResult checkOutput() {
    std::error_code unknown;
    if (!std::filesystem::equivalent(options_.model, options_.output, unknown))
      return success();
    return error() << "-o: expected a file other than the model, found "
                   << options_.output << "; give another name";
  }

  // Weights in other files are named relative to the model's folder.
  LogicalResult checkFolder() {
    namespace fs = std::filesystem;
    onnx::Model model;
    onnx::WireError wire;
    const llvm::StringRef bytes = buffer_->getBuffer();
    if (!onnx::parseModel({bytes.data(), bytes.size()}, model, wire))
      return error() << "not an ONNX model, " << wire.str();
    auto folder = [](const std::string& path) {
      std::error_code error;
      return fs::weakly_canonical(fs::absolute(path, error), error)
          .parent_path();
    };
    if (folder(options_.model) == folder(options_.output)) return success();
    for (const onnx::TensorProto& tensor : model.graph.initializers)
      if (tensor.is_external)
        return error() << "expected the output beside the model, as weights "
                          "('"
                       << llvm::StringRef(tensor.name)
                       << "' is one) lie in files of its folder, found "
                       << options_.output;
    return success();
  }

  LogicalResult importFile() {
    ImportOptions import = options_.import;
    import.mark_tensors = true;
    // A plan replaces the model's own annotations, unless a configuration was
    // requested as well.
    if (options_.plan && import.onnx_configuration.empty())
      import.onnx_configuration = "none";
    module_ = importModel(options_.model, import, context_);
    if (!module_ || mlir::failed(checkModel(*module_))) return failure();
    plan_ =
        options_.plan ? options_.plan : planOfModel(*module_, options_.model);
    if (plan_) return success();
    return error() << "expected a plan to write down: --plan FILE, or --mesh "
                      "and --shard; found none, and no device configuration "
                      "in the model";
  }

  // Records the type of each tensor before any pass runs.
  void noteTypes() {
    FuncOp main = mainOf();
    main.walk([&](mlir::Operation* op) {
      for (const onnx::Mark& mark : onnx::marksOf(op->getLoc()))
        if (!mark.use && mark.result < op->getNumResults())
          types_[mark.tensor.str()] = typeOf(op->getResult(mark.result));
    });
  }

  LogicalResult divide() {
    CompileOptions options = optionsToJudge(*plan_, /*train=*/nullptr);
    options.plan->precision.reset();  // tensors have the file's types
    Compilation model(*module_, options);
    model.keepLayersInline();
    return model.runTo(Milestone::kDivided, fault_);
  }

  FuncOp mainOf() { return module_->lookupSymbol<FuncOp>("main"); }
  static RankedTensorType typeOf(Value value) {
    return llvm::cast<RankedTensorType>(value.getType());
  }

  std::optional<core::Sharding> shardingOf(Value value) {
    auto attr = sharding::shardingOf(value);
    if (!attr) return std::nullopt;
    auto found = sharding::toCore(attr, mesh_);
    if (mlir::failed(found)) return std::nullopt;
    return std::move(*found);
  }

  // An argument may be a view of the file's tensor in another shape.
  void collectArguments() {
    FuncOp main = mainOf();
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      auto found = shardingOf(main.getArgument(i));
      if (!name || !found) continue;
      RankedTensorType type = typeOf(main.getArgument(i));
      bool expressed = true;
      if (auto file =
              main.getArgAttrOfType<mlir::TypeAttr>(i, nn::kViewOfAttr)) {
        const core::Sharding viewed = std::move(*found);
        const RankedTensorType view = type;
        type = llvm::cast<RankedTensorType>(file.getValue());
        expressed = sharding::viewSharding(mesh_, view.getShape(),
                                           type.getShape(), viewed, *found)
                        .empty();
      }
      auto spec =
          expressed ? specOf(mesh_, shapeOf(type), *found) : std::nullopt;
      if (spec)
        annotations_.tensors[name.str()] = std::move(*spec);
      else
        ++without_words_;
    }
  }

  // Passes may replace one operation by several. The last one with the tensor's
  // type is the tensor.
  void collectValues() {
    mainOf().walk([&](mlir::Operation* op) {
      for (const onnx::Mark& mark : onnx::marksOf(op->getLoc())) {
        const std::string tensor = mark.tensor.str();
        const auto type = types_.find(tensor);
        if (type == types_.end() || mark.result >= op->getNumResults() ||
            op->getResult(mark.result).getType() != type->second)
          continue;
        if (mark.use && !llvm::isa<dist::ConstraintOp>(op)) continue;
        auto found = shardingOf(op->getResult(mark.result));
        if (!found) continue;
        auto spec = specOf(mesh_, shapeOf(type->second), *found);
        if (!spec)
          ++without_words_;
        else if (mark.use)
          annotations_.uses[{mark.use.str(), tensor}] = std::move(*spec);
        else
          annotations_.tensors[tensor] = std::move(*spec);
      }
    });
  }

  FailureOr<llvm::json::Value> write() {
    std::string text;
    onnx::AnnotationCounts counts;
    onnx::WireError wire;
    const llvm::StringRef bytes = buffer_->getBuffer();
    if (!onnx::writeAnnotations({bytes.data(), bytes.size()}, annotations_,
                                text, counts, wire))
      return error() << "not an ONNX model, " << wire.str();
    if (absl::Status written = base::WriteFileAtomically(options_.output, text);
        !written.ok())
      return error() << std::string(written.message());
    return llvm::json::Value(
        llvm::json::Object{{"output", options_.output},
                           {"configuration", options_.configuration},
                           {"mesh", plan::ToString(mesh_)},
                           {"nodes", counts.nodes},
                           {"annotated_nodes", counts.annotated_nodes},
                           {"tensors", counts.tensors},
                           {"annotated_tensors", counts.annotated_tensors},
                           {"without_words", without_words_}});
  }

  const AnnotateOptions& options_;
  mlir::MLIRContext* context_;
  std::unique_ptr<llvm::MemoryBuffer> buffer_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::optional<plan::Plan> plan_;
  core::Mesh mesh_;
  std::map<std::string, RankedTensorType> types_;
  onnx::ModelAnnotations annotations_;
  int64_t without_words_ = 0;
  Fault fault_ = Fault::kUser;
};

}  // namespace

FailureOr<llvm::json::Value> annotateModel(const AnnotateOptions& options,
                                           mlir::MLIRContext* context,
                                           Fault* fault) {
  Annotation annotation(options, context);
  FailureOr<llvm::json::Value> facts = annotation.run();
  if (fault) *fault = annotation.fault();
  return facts;
}

void printAnnotation(const llvm::json::Value& value,
                     llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *value.getAsObject();
  const int64_t nodes = *facts.getInteger("nodes"),
                tensors = *facts.getInteger("tensors"),
                annotated = *facts.getInteger("annotated_tensors"),
                silent = *facts.getInteger("without_words");
  stream << llvm::formatv(
      "wrote {0}: configuration '{1}' over {2}\nannotated: {3} of {4} nodes, "
      "{5} of {6} tensors; the others are constants or became part of larger "
      "operations\n",
      *facts.getString("output"), *facts.getString("configuration"),
      *facts.getString("mesh"), *facts.getInteger("annotated_nodes"), nodes,
      annotated, tensors);
  if (silent > 0)
    stream << silent
           << " shardings are left out: ONNX cannot express partial sums, or "
              "shards that are not contiguous rows\n";
}

}  // namespace partita::driver
