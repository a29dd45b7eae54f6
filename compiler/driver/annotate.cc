// Writes shardings back to an ONNX file. The importer marks the location of
// each tensor; the marks survive all passes and lead from the file's tensors to
// the divided values.
#include "compiler/driver/annotate.h"

#include <filesystem>

#include "compiler/driver/divided_model.h"
#include "compiler/driver/sharding_spec.h"
#include "compiler/plan/names.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "frontends/onnx/marks.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/write_annotations.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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
    if (mlir::failed(readFile())) return failure();
    ImportOptions import = options_.import;
    import.mark_tensors = true;
    auto divided =
        divideModel(options_.model, import, options_.plan, context_, fault_,
                    [&](mlir::ModuleOp module) { noteTypes(module); });
    if (mlir::failed(divided)) return failure();
    model_ = std::move(*divided);
    annotations_.name = options_.configuration;
    annotations_.num_devices = model_.mesh.Size();
    if (model_.plan.attention)
      annotations_.attention =
          plan::NameOf(plan::AttentionNames(), *model_.plan.attention);
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
      return error() << "expected an .onnx file to annotate, or a result (-o) "
                        "that ends in .py or .json, for PartitionSpecs; found "
                     << options_.model << " and " << options_.output;
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

  // Records the type of each tensor before any pass runs.
  void noteTypes(mlir::ModuleOp module) {
    module.lookupSymbol<FuncOp>("main").walk([&](mlir::Operation* op) {
      for (const onnx::Mark& mark : onnx::marksOf(op->getLoc()))
        if (!mark.use && mark.result < op->getNumResults())
          types_[mark.tensor.str()] = typeOf(op->getResult(mark.result));
    });
  }

  static RankedTensorType typeOf(Value value) {
    return llvm::cast<RankedTensorType>(value.getType());
  }

  void collectArguments() {
    FuncOp main = model_.main();
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      if (!name || !model_.shardingOf(main.getArgument(i))) continue;
      const auto [type, found] = model_.storedTensor(i);
      auto spec =
          found ? specOf(model_.mesh, shapeOf(type), *found) : std::nullopt;
      if (spec)
        annotations_.tensors[name.str()] = std::move(*spec);
      else
        ++without_words_;
    }
  }

  // Passes may replace one operation by several. The last one with the tensor's
  // type is the tensor.
  void collectValues() {
    model_.main().walk([&](mlir::Operation* op) {
      for (const onnx::Mark& mark : onnx::marksOf(op->getLoc())) {
        const std::string tensor = mark.tensor.str();
        const auto type = types_.find(tensor);
        if (type == types_.end() || mark.result >= op->getNumResults() ||
            op->getResult(mark.result).getType() != type->second)
          continue;
        if (mark.use && !llvm::isa<dist::ConstraintOp>(op)) continue;
        auto found = model_.shardingOf(op->getResult(mark.result));
        if (!found) continue;
        auto spec = specOf(model_.mesh, shapeOf(type->second), *found);
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
                           {"mesh", plan::ToString(model_.mesh)},
                           {"nodes", counts.nodes},
                           {"annotated_nodes", counts.annotated_nodes},
                           {"tensors", counts.tensors},
                           {"annotated_tensors", counts.annotated_tensors},
                           {"without_words", without_words_}});
  }

  const AnnotateOptions& options_;
  mlir::MLIRContext* context_;
  std::unique_ptr<llvm::MemoryBuffer> buffer_;
  DividedModel model_;
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
