// Builds the program: ports, parameters, entries and functions.
// function_emitter.cc writes instructions, sources.cc the sources of weights.
#include "compiler/emit/emit.h"

#include "compiler/emit/function_emitter.h"
#include "compiler/emit/placement.h"
#include "compiler/emit/sources.h"
#include "dialects/dist/dialect.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "dialects/exec/labels.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::emit {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::func::FuncOp;

llvm::StringRef stringAttr(FuncOp function, unsigned argument,
                           llvm::StringRef name) {
  auto attr = function.getArgAttrOfType<mlir::StringAttr>(argument, name);
  return attr ? attr.getValue() : llvm::StringRef();
}

class ModuleEmitter {
 public:
  ModuleEmitter(mlir::ModuleOp module, const EmitOptions& options)
      : module_(module), options_(options), mesh_(dist::findMesh(module)) {}

  FailureOr<program::ArtifactParts> run(std::string code) {
    program_.producer = "partita";
    program_.model = options_.summary_json;
    program_.target = options_.target;
    program_.cpu_features = options_.cpu_features;
    program_.mesh = meshOf(mesh_);
    program_.pipeline = axisParts(options_.pipeline);
    program_.schedule = options_.schedule;
    if (!options_.state_folder.empty()) {
      program_.state_files = std::make_unique<program::StateFilesT>();
      program_.state_files->folder = options_.state_folder;
      program_.state_files->buffers = options_.state_buffers;
    }
    const llvm::SmallVector<exec::Entry> entries = exec::entriesOf(module_);
    if (entries.empty())
      return module_.emitError(
                 "expected a function named 'main', found none; was the model "
                 "imported?"),
             failure();
    addFunctionNames();
    for (const exec::Entry& entry : entries)
      if (mlir::failed(collect(entry.main, entry.init))) return failure();
    order(program_.inputs, input_index_, options_.inputs);
    order(program_.outputs, output_index_, options_.outputs);
    for (const exec::Entry& entry : entries)
      if (mlir::failed(addEntry(entry.main, entry.init))) return failure();
    if (mlir::failed(addFunctions())) return failure();
    parts_.program = program::SerializeProgram(program_);
    parts_.code = std::move(code);
    return std::move(parts_);
  }

 private:
  // Collects the ports and parameters of an entry. Entries share ports and
  // parameters of the same name, so all are collected before the first entry is
  // added.
  LogicalResult collect(FuncOp main, FuncOp init) {
    if (mlir::failed(addPorts(main)) || mlir::failed(addParameters(main)))
      return failure();
    return init ? addParameters(init) : success();
  }

  using Ports = std::vector<std::unique_ptr<program::PortT>>;

  // Sorts ports in the order of `names`; other ports come last.
  static void order(Ports& ports, llvm::StringMap<int>& known,
                    const std::vector<std::string>& names) {
    const auto place = [&](const std::unique_ptr<program::PortT>& port) {
      return std::find(names.begin(), names.end(), port->name) - names.begin();
    };
    std::stable_sort(
        ports.begin(), ports.end(),
        [&](const auto& a, const auto& b) { return place(a) < place(b); });
    for (auto [i, port] : llvm::enumerate(ports)) known[port->name] = i;
  }

  // Adds the entry that some devices run: their main, and their init or null.
  LogicalResult addEntry(FuncOp main, FuncOp init) {
    auto entry = std::make_unique<program::EntryT>();
    bindPorts(main, *entry);
    if (init) addDerived(init, *entry);
    if (mlir::failed(bindMain(main, *entry)) ||
        (init && mlir::failed(bindInit(init, *entry))))
      return failure();
    entry->main = function_index_.lookup(main.getName());
    if (init) entry->init = function_index_.lookup(init.getName());
    if (const size_t i = program_.entries.size(); i < options_.memory.size())
      entry->memory =
          std::make_unique<program::MemoryTableT>(options_.memory[i]);
    program_.entries.push_back(std::move(entry));
    return success();
  }

  static std::string inputName(FuncOp main, unsigned i) {
    llvm::StringRef name = stringAttr(main, i, nn::kNameAttr);
    return name.empty() ? "input" + std::to_string(i) : name.str();
  }

  static std::string outputName(FuncOp main, unsigned i) {
    auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    return name ? name.str() : "output" + std::to_string(i);
  }

  static bool isInput(FuncOp function, unsigned argument) {
    llvm::StringRef kind = stringAttr(function, argument, nn::kKindAttr);
    return kind.empty() || kind == "input";
  }

  LogicalResult addPorts(FuncOp main) {
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (isInput(main, i) &&
          mlir::failed(addPort(program_.inputs, input_index_,
                               main.getArgument(i).getLoc(), inputName(main, i),
                               main.getArgumentTypes()[i],
                               main.getArgAttrDict(i))))
        return failure();
    }
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      if (!main.getResultAttr(i, nn::kUpdatesAttr) &&
          mlir::failed(addPort(program_.outputs, output_index_, main.getLoc(),
                               outputName(main, i), main.getResultTypes()[i],
                               main.getResultAttrDict(i))))
        return failure();
    }
    return success();
  }

  void bindPorts(FuncOp main, program::EntryT& entry) {
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (isInput(main, i))
        entry.inputs.push_back(input_index_.lookup(inputName(main, i)));
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (!main.getResultAttr(i, nn::kUpdatesAttr))
        entry.outputs.push_back(output_index_.lookup(outputName(main, i)));
  }

  static program::PortRole roleOf(mlir::Attribute role) {
    auto text = llvm::dyn_cast_or_null<mlir::StringAttr>(role);
    return llvm::StringSwitch<program::PortRole>(text ? text.getValue() : "")
        .Case("learning_rate", program::PortRole::learning_rate)
        .Case("step", program::PortRole::step)
        .Case("seed", program::PortRole::seed)
        .Default(program::PortRole::data);
  }

  LogicalResult addPort(Ports& ports, llvm::StringMap<int>& known,
                        mlir::Location loc, std::string name, mlir::Type type,
                        mlir::DictionaryAttr named) {
    if (!known.try_emplace(name, ports.size()).second) return success();
    const mlir::NamedAttrList attributes(named);
    auto port = std::make_unique<program::PortT>();
    port->type = tensorType(llvm::cast<mlir::RankedTensorType>(type),
                            attributes.get(nn::kUnsignedAttr) != nullptr);
    auto shard =
        shardOf(loc, name, mesh_, type, attributes.get(dist::kShardingAttr),
                attributes.get(dist::kGlobalTypeAttr));
    if (mlir::failed(shard)) return failure();
    port->shard = std::move(*shard);
    if (auto viewed = llvm::dyn_cast_if_present<mlir::TypeAttr>(
            attributes.get(nn::kViewOfAttr)))
      port->model_shape = llvm::cast<mlir::RankedTensorType>(viewed.getValue())
                              .getShape()
                              .vec();
    port->name = std::move(name);
    port->role = roleOf(attributes.get(nn::kRoleAttr));
    if (auto limit = llvm::dyn_cast_if_present<mlir::IntegerAttr>(
            attributes.get(kLimitAttr)))
      port->limit = limit.getInt();
    ports.push_back(std::move(port));
    return success();
  }

  // Adds stored tensors. Main and init may both read one.
  LogicalResult addParameters(FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      llvm::StringRef kind = stringAttr(function, i, nn::kKindAttr);
      if (kind.empty() || kind == "input" || kind == "derived") continue;
      std::string name = stringAttr(function, i, nn::kNameAttr).str();
      if (!parameter_index_.try_emplace(name, program_.parameters.size())
               .second)
        continue;
      auto parameter = std::make_unique<program::ParameterT>();
      parameter->name = name;
      parameter->kind = kind == "buffer"  ? program::ParameterKind::buffer
                        : kind == "state" ? program::ParameterKind::state
                        : kind == "constant"
                            ? program::ParameterKind::constant
                            : program::ParameterKind::parameter;
      parameter->host = options_.states_on_host && kind == "state";
      parameter->parts = function.getArgAttr(i, nn::kPartsAttr) != nullptr;
      parameter->type = tensorType(
          llvm::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]),
          function.getArgAttr(i, nn::kUnsignedAttr) != nullptr);
      const mlir::Location loc = function.getArgument(i).getLoc();
      auto shard = shardOf(loc, name, mesh_, function.getArgumentTypes()[i],
                           function.getArgAttr(i, dist::kShardingAttr),
                           function.getArgAttr(i, dist::kGlobalTypeAttr));
      auto source =
          kind == "coordinate"
              ? coordinateSource(loc, name,
                                 function.getArgAttr(i, nn::kAxesAttr))
              : sourceOf(loc, name, function.getArgAttr(i, nn::kSourceAttr),
                         options_, parts_.data);
      if (mlir::failed(shard) || mlir::failed(source)) return failure();
      parameter->shard = std::move(*shard);
      parameter->source = *source;
      if (auto viewed =
              function.getArgAttrOfType<mlir::TypeAttr>(i, nn::kViewOfAttr))
        parameter->model_shape =
            llvm::cast<mlir::RankedTensorType>(viewed.getValue())
                .getShape()
                .vec();
      program_.parameters.push_back(std::move(parameter));
    }
    return success();
  }

  static void addDerived(FuncOp init, program::EntryT& entry) {
    for (mlir::Type type : init.getResultTypes())
      entry.derived.push_back(
          tensorType(llvm::cast<mlir::RankedTensorType>(type), false));
  }

  LogicalResult bindMain(FuncOp main, program::EntryT& entry) {
    size_t derived = 0;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (isInput(main, i)) {
        if (!entry.main_globals.empty())
          return main.emitError(
                     "expected inputs before parameters, found argument ")
                 << i << " to be an input";
      } else if (stringAttr(main, i, nn::kKindAttr) == "derived") {
        entry.main_globals.push_back(program_.parameters.size() + derived++);
      } else {
        entry.main_globals.push_back(
            parameter_index_[stringAttr(main, i, nn::kNameAttr)]);
      }
    }
    if (derived != entry.derived.size())
      return main.emitError("expected one argument of main for each of init's ")
             << entry.derived.size() << " results, found " << derived;
    return bindUpdates(main, entry);
  }

  LogicalResult bindUpdates(FuncOp main, program::EntryT& entry) {
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      auto updated =
          main.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr);
      if (!updated && entry.main_updates.empty()) continue;
      auto found = updated ? parameter_index_.find(updated.getValue())
                           : parameter_index_.end();
      if (found == parameter_index_.end())
        return main.emitError("expected result ")
               << i << " to update a stored tensor, as the results before it, "
               << "found " << (updated ? updated.getValue() : "an output");
      entry.main_updates.push_back(found->second);
    }
    return success();
  }

  LogicalResult bindInit(FuncOp init, program::EntryT& entry) {
    for (unsigned i = 0; i < init.getNumArguments(); ++i) {
      auto found = parameter_index_.find(stringAttr(init, i, nn::kNameAttr));
      if (found == parameter_index_.end())
        return init.emitError(
                   "expected only parameters as arguments of init, found "
                   "argument ")
               << i;
      entry.init_parameters.push_back(found->second);
    }
    return success();
  }

  // Numbers functions, and kernels by the names of their code.
  void addFunctionNames() {
    llvm::StringMap<int> codes;
    for (FuncOp function : module_.getOps<FuncOp>()) {
      if (mlir::Attribute kernel = function->getAttr(exec::kKernelAttr)) {
        auto code = llvm::dyn_cast<mlir::StringAttr>(kernel);
        llvm::StringRef name = code ? code.getValue() : function.getName();
        auto [known, is_new] =
            codes.try_emplace(name, static_cast<int>(program_.kernels.size()));
        if (is_new) addKernel(name, function);
        kernel_index_[function.getName()] = known->second;
      } else {
        function_index_[function.getName()] = functions_.size();
        functions_.push_back(function);
      }
    }
  }

  void addKernel(llvm::StringRef code, FuncOp function) {
    auto kernel = std::make_unique<program::KernelT>();
    kernel->name = code.str();
    if (auto label =
            function->getAttrOfType<mlir::StringAttr>(exec::kLabelAttr))
      kernel->label = label.str();
    kernel->cycles = options_.kernel_cycles.lookup(code);
    program_.kernels.push_back(std::move(kernel));
  }

  LogicalResult addFunctions() {
    for (FuncOp function : functions_) {
      auto emitted =
          emitFunction(function, function_index_, kernel_index_, parts_.data);
      if (mlir::failed(emitted)) return failure();
      program_.functions.push_back(std::move(*emitted));
    }
    return success();
  }

  mlir::ModuleOp module_;
  const EmitOptions& options_;
  dist::MeshOp mesh_;
  program::ArtifactParts parts_;
  program::ProgramT program_;
  llvm::SmallVector<FuncOp> functions_;
  llvm::StringMap<int> input_index_, output_index_, parameter_index_,
      function_index_, kernel_index_;
};

}  // namespace

FailureOr<program::ArtifactParts> buildArtifact(mlir::ModuleOp module,
                                                std::string code,
                                                const EmitOptions& options) {
  return ModuleEmitter(module, options).run(std::move(code));
}

}  // namespace partita::emit
