// Chooses the frontend by the kind of the path.
#include "compiler/driver/import_model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "compiler/autodiff/passes.h"
#include "compiler/quantize/fake_quantize.h"
#include "compiler/quantize/take_integers.h"
#include "dialects/nn/dialect.h"
#include "frontends/distillation/distillation.h"
#include "frontends/huggingface/huggingface.h"
#include "frontends/lora/lora.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/open_dims.h"
#include "frontends/stablehlo/importer.h"
#include "frontends/torch/importer.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::driver {
namespace {

// Refuses an option that has no meaning for this kind of model, instead of
// ignoring it.
bool refuse(bool given, const char* option, const char* kind,
            mlir::MLIRContext* context) {
  if (given)
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "expected no " << option << " with " << kind << ", found one";
  return given;
}

std::string textOf(const std::map<std::string, int64_t>& dims) {
  std::string text;
  for (const auto& [name, size] : dims)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

mlir::OwningOpRef<mlir::ModuleOp> importByConfig(const std::string& model,
                                                 bool is_folder,
                                                 const ImportOptions& options,
                                                 mlir::MLIRContext* context) {
  if (refuse(!options.input_shapes.empty(), "--input-shape",
             "a Hugging Face model (--dim settles its sizes)", context) ||
      refuse(!options.onnx_configuration.empty(), "--onnx-configuration",
             "a Hugging Face model", context) ||
      refuse(options.ignore_shardings, "--ignore-shardings",
             "a Hugging Face model", context))
    return nullptr;
  if (options.dropout && !options.training) {
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "--dropout: expected a model that is trained (--train), as nothing "
           "is dropped otherwise; leave it out";
    return nullptr;
  }
  huggingface::HfOptions hf;
  hf.dims = options.dims;
  hf.small_dims = options.small_dims;
  hf.seed = options.seed;
  hf.optional_inputs = options.optional_inputs;
  hf.training = options.training;
  hf.dropout = options.dropout;
  hf.cache = options.cache;
  hf.with_weights = options.weights.empty();
  return is_folder ? huggingface::importHuggingFace(model, hf, context)
                   : huggingface::importFamily(model, hf, context);
}

// The small sizes, in order. The first is usually a batch, and odd; the second
// a sequence.
int64_t nextSmallSize(int64_t size) {
  return size == 3 ? 8 : size == 8 ? 6 : size == 6 ? 10 : size + 2;
}

// Gives every open dimension another small size.
void addSmallDims(const std::string& model,
                  std::map<std::string, int64_t>& dims) {
  int64_t next = 3;
  for (const std::string& name : onnx::openDims(model)) {
    dims.emplace(name, next);
    next = nextSmallSize(next);
  }
}

// True if all sizes are given and the model can be read with other sizes. A
// size that the model does not support shows as an error far from --dim.
bool readsWithSmallDims(const std::string& model, onnx::ImportOptions options,
                        mlir::MLIRContext* context) {
  std::map<std::string, int64_t> small;
  addSmallDims(model, small);
  const auto same_name = [](const auto& a, const auto& b) {
    return a.first == b.first;
  };
  if (!std::equal(small.begin(), small.end(), options.dims.begin(),
                  options.dims.end(), same_name))
    return false;
  options.dims = std::move(small);
  mlir::ScopedDiagnosticHandler quiet(
      context, [](mlir::Diagnostic&) { return mlir::success(); });
  return static_cast<bool>(onnx::importOnnx(model, options, context));
}

// Gives every open dimension that has no size another small one.
void addSmallTorchDims(const std::string& model,
                       std::map<std::string, int64_t>& dims) {
  int64_t next = 3;
  for (const torch::OpenDim& dim : torch::openDims(model)) {
    const bool is_given = std::any_of(
        dim.names.begin(), dim.names.end(),
        [&](const std::string& name) { return dims.count(name) > 0; });
    if (!is_given) dims.emplace(dim.names.front(), next);
    next = nextSmallSize(next);
  }
}

mlir::OwningOpRef<mlir::ModuleOp> importTorchFile(const std::string& model,
                                                  const ImportOptions& options,
                                                  mlir::MLIRContext* context) {
  constexpr char kKind[] = "a .pt2 model";
  if (refuse(!options.onnx_configuration.empty(), "--onnx-configuration", kKind,
             context) ||
      refuse(options.optional_inputs.has_value(), "--optional-inputs", kKind,
             context) ||
      refuse(options.dropout.has_value(), "--dropout", kKind, context))
    return nullptr;
  torch::ImportOptions torch_options;
  torch_options.dims = options.dims;
  if (options.small_dims && options.input_shapes.empty())
    addSmallTorchDims(model, torch_options.dims);
  torch_options.input_shapes = options.input_shapes;
  return torch::importTorch(model, torch_options, context);
}

mlir::OwningOpRef<mlir::ModuleOp> importJaxFile(const std::string& model,
                                                const ImportOptions& options,
                                                mlir::MLIRContext* context) {
  constexpr char kKind[] =
      "a program of JAX, which has its sizes (export it for others)";
  if (refuse(!options.dims.empty(), "--dim", kKind, context) ||
      refuse(!options.input_shapes.empty(), "--input-shape", kKind, context) ||
      refuse(!options.onnx_configuration.empty(), "--onnx-configuration", kKind,
             context) ||
      refuse(options.optional_inputs.has_value(), "--optional-inputs", kKind,
             context) ||
      refuse(options.dropout.has_value(), "--dropout", kKind, context))
    return nullptr;
  return stablehlo::importStablehlo(model, {options.ignore_shardings}, context);
}

mlir::OwningOpRef<mlir::ModuleOp> importFile(const std::string& model,
                                             const ImportOptions& options,
                                             mlir::MLIRContext* context) {
  if (options.cache) {
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "expected a Hugging Face folder or a model family that generates "
           "text, found the file "
        << model;
    return nullptr;
  }
  const llvm::StringRef name(model);
  // JAX has no ending of its own for exported files.
  // An .mlir file holds nn's operations, as text or bytecode.
  if (name.ends_with(".mlirbc") ||
      (!name.ends_with(".mlir") && stablehlo::isStablehlo(model)))
    return importJaxFile(model, options, context);
  if (refuse(options.ignore_shardings, "--ignore-shardings",
             "a model that is not a program of JAX", context))
    return nullptr;
  if (name.ends_with(".mlir")) {
    constexpr char kKind[] = "an .mlir file, which was imported already";
    if (refuse(!options.dims.empty(), "--dim", kKind, context) ||
        refuse(!options.input_shapes.empty(), "--input-shape", kKind,
               context) ||
        refuse(!options.onnx_configuration.empty(), "--onnx-configuration",
               kKind, context) ||
        refuse(options.optional_inputs.has_value(), "--optional-inputs", kKind,
               context) ||
        refuse(options.dropout.has_value(), "--dropout", kKind, context))
      return nullptr;
    return mlir::parseSourceFile<mlir::ModuleOp>(model, context);
  }
  if (name.ends_with(".pt2")) return importTorchFile(model, options, context);
  if (name.ends_with(".onnx")) {
    if (refuse(options.optional_inputs.has_value(), "--optional-inputs",
               "an ONNX model", context) ||
        refuse(options.dropout.has_value(), "--dropout", "an ONNX model",
               context))
      return nullptr;
    onnx::ImportOptions onnx_options;
    onnx_options.dims = options.dims;
    // Shapes must be given for all inputs, since inputs that share a dimension
    // must agree.
    if (options.small_dims && options.input_shapes.empty())
      addSmallDims(model, onnx_options.dims);
    onnx_options.input_shapes = options.input_shapes;
    onnx_options.configuration = options.onnx_configuration;
    onnx_options.mark_tensors = options.mark_tensors;
    auto module = onnx::importOnnx(model, onnx_options, context);
    if (!module && !options.dims.empty() &&
        readsWithSmallDims(model, onnx_options, context))
      mlir::emitRemark(mlir::UnknownLoc::get(context))
          << "the model was read with --dim " << textOf(options.dims)
          << "; it may have been exported for smaller sizes";
    return module;
  }
  mlir::emitError(mlir::UnknownLoc::get(context))
      << "expected a model (.onnx, .pt2 or .mlir file, a program of "
         "jax.export, "
         "or a folder with config.json), found "
      << model;
  return nullptr;
}

mlir::OwningOpRef<mlir::ModuleOp> importAny(const std::string& model,
                                            const ImportOptions& options,
                                            mlir::MLIRContext* context) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(model, error);
  if (fs::is_directory(status))
    return importByConfig(model, /*is_folder=*/true, options, context);
  if (fs::exists(status)) return importFile(model, options, context);
  const llvm::StringRef name(model);
  if (name.contains('/') || name.ends_with(".onnx") || name.ends_with(".pt2") ||
      name.ends_with(".mlir")) {
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "expected a model, found no file or folder '" << model
        << "': name one, or a model family (coatnet-0)";
    return nullptr;
  }
  return importByConfig(model, /*is_folder=*/false, options, context);
}

// Simulates integers of 8 bits. `may_lack_ranges` says if `weights` may.
mlir::LogicalResult simulateIntegers(mlir::ModuleOp module,
                                     const ImportOptions& options,
                                     bool& may_lack_ranges) {
  const auto fake = quantize::parseFakeOptions(options.fake_quantize);
  const auto refuse = [&](const std::string& message) {
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
           << message;
  };
  if (!fake.ok()) return refuse(std::string(fake.status().message()));
  if (!options.lora.empty())
    return refuse(
        "--fake-quantize: expected no --lora, whose adapters are not rounded, "
        "found both; merge the adapters first (partita lora merge)");
  if (fake->names_ranges && !options.training)
    return refuse(
        "--fake-quantize: expected ranges= with --train, whose steps may move "
        "them, found no --train; leave ranges= out");
  may_lack_ranges = options.training && fake->moves_ranges;
  if (fake->rounds_inputs && !may_lack_ranges && options.weights.empty())
    return refuse(
        "--fake-quantize: expected --weights with a checkpoint that has ranges "
        "of activations, or --train with ranges=moving, which records them, "
        "found neither");
  return quantize::fakeQuantize(module, *fake, options.training);
}

// The names of the cache's tensors: states that begin with zeros.
llvm::StringSet<> cacheNames(mlir::ModuleOp module) {
  llvm::StringSet<> names;
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = 0; main && i < main.getNumArguments(); ++i) {
    const auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    const auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (kind && kind.getValue() == "state" && name &&
        main.getArgAttrOfType<nn::InitAttr>(i, nn::kSourceAttr))
      names.insert(name.getValue());
  }
  return names;
}

// Adds the teacher that the options name. It reads the same inputs, and is not
// trained.
mlir::LogicalResult addTeacher(mlir::ModuleOp module,
                               const ImportOptions& options) {
  mlir::MLIRContext* context = module.getContext();
  auto distill = distillation::ParseOptions(options.distill);
  if (!distill.ok())
    return mlir::emitError(mlir::UnknownLoc::get(context))
           << std::string(distill.status().message());
  if (distill->logits.student.empty())
    distill->logits.student = options.logits_output;
  ImportOptions own;
  own.dims = options.dims;
  own.input_shapes = options.input_shapes;
  own.small_dims = options.small_dims;
  own.optional_inputs = options.optional_inputs;
  own.seed = options.seed;
  own.weights = options.teacher_weights;
  auto teacher = importModel(options.teacher, own, context);
  if (!teacher) return mlir::failure();
  if (!distill->teacher_precision.empty()) {
    autodiff::ReducePrecisionPassOptions precision;
    precision.type = distill->teacher_precision;
    mlir::PassManager passes(context);
    passes.addPass(autodiff::createReducePrecisionPass(precision));
    if (mlir::failed(passes.run(*teacher))) return mlir::failure();
  }
  return distillation::addTeacher(module, std::move(teacher), *distill,
                                  folderOf(options.teacher));
}

}  // namespace

std::string folderOf(const std::string& model) {
  return llvm::StringRef(model).ends_with(".mlir")
             ? std::filesystem::path(model).parent_path().string()
             : std::string(".");
}

mlir::OwningOpRef<mlir::ModuleOp> importModel(const std::string& model,
                                              const ImportOptions& options,
                                              mlir::MLIRContext* context) {
  auto module = importAny(model, options, context);
  if (module && !options.lora.empty()) {
    auto lora = lora::ParseOptions(options.lora);
    if (!lora.ok()) {
      mlir::emitError(mlir::UnknownLoc::get(context))
          << std::string(lora.status().message());
      return nullptr;
    }
    if (mlir::failed(lora::addAdapters(*module, *lora, options.seed)))
      return nullptr;
  }
  bool may_lack_ranges = false;
  if (module && !options.fake_quantize.empty() &&
      mlir::failed(simulateIntegers(*module, options, may_lack_ranges)))
    return nullptr;
  if (module && !options.weights.empty() &&
      mlir::failed(quantize::takeIntegers(*module, options.weights)))
    return nullptr;
  llvm::StringSet<> cache;
  llvm::SmallVector<llvm::StringRef> others;
  if (module && options.cache) {
    cache = cacheNames(*module);
    // One program has the encoder of such a model, the other one the decoder.
    others = {"encoder.*", "decoder.*", "lm_head.*"};
  }
  if (module && !options.weights.empty() &&
      mlir::failed(huggingface::takeWeights(
          *module, options.weights,
          [&](llvm::StringRef name) {
            return lora::isAdapter(name) || cache.contains(name) ||
                   (may_lack_ranges && quantize::isRangeName(name));
          },
          others)))
    return nullptr;
  if (module && !options.teacher.empty() &&
      mlir::failed(addTeacher(*module, options)))
    return nullptr;
  return module;
}

bool parseDims(const std::string& text, std::map<std::string, int64_t>& dims,
               std::string& error) {
  llvm::SmallVector<llvm::StringRef> entries;
  llvm::StringRef(text).split(entries, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef entry : entries) {
    auto [name, value] = entry.split('=');
    int64_t size = 0;
    if (name.empty() || value.getAsInteger(10, size) || size <= 0) {
      error =
          "expected --dim name=size with a positive size, as in --dim "
          "batch=8,seq=128; found '" +
          entry.str() + "'";
      return false;
    }
    if (auto [known, is_new] = dims.try_emplace(name.str(), size); !is_new) {
      error = "expected one size for --dim " + name.str() + ", found " +
              std::to_string(known->second) + " and " + std::to_string(size) +
              "; leave out one of the two";
      return false;
    }
  }
  return true;
}

bool parseInputShape(const std::string& text,
                     std::map<std::string, std::vector<int64_t>>& shapes,
                     std::string& error) {
  auto [name, sizes] = llvm::StringRef(text).rsplit('=');
  llvm::SmallVector<llvm::StringRef> entries;
  sizes.split(entries, ',', -1, /*KeepEmpty=*/true);
  if (sizes.empty()) entries.clear();
  std::vector<int64_t> shape;
  bool fine = !name.empty() && llvm::StringRef(text).contains('=');
  for (llvm::StringRef entry : entries) {
    int64_t size = 0;
    fine &= !entry.getAsInteger(10, size) && size >= 0;
    shape.push_back(size);
  }
  if (!fine) {
    error =
        "expected --input-shape NAME=SIZES, as in --input-shape x=1,8; found "
        "'" +
        text + "'";
    return false;
  }
  if (shapes.try_emplace(name.str(), std::move(shape)).second) return true;
  error = "expected one shape for --input-shape " + name.str() +
          ", found another, '" + text + "'; leave out one of the two";
  return false;
}

std::vector<std::string> parseNames(const std::string& text) {
  if (text == "none") return {};
  llvm::SmallVector<llvm::StringRef> entries;
  llvm::StringRef(text).split(entries, ',', -1, /*KeepEmpty=*/false);
  return {entries.begin(), entries.end()};
}

}  // namespace partita::driver
