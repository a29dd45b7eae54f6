// Collects facts as JSON; the table for people is rendered from the same value.
#include "compiler/driver/inspect/inspect.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/inspect/inspect_kernels.h"
#include "compiler/driver/inspect/inspect_overlap.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/quantity.h"
#include "runtime/program/code_bundle.h"
#include "runtime/program/mesh.h"
#include "runtime/program/target.h"

namespace partita::driver {
namespace {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using mlir::func::FuncOp;

std::string typeText(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string typeText(const program::TensorType& type) {
  std::string text = "tensor<";
  if (type.shape())
    for (int64_t size : *type.shape()) text += std::to_string(size) + "x";
  return text + program::EnumNameDType(type.dtype()) + ">";
}

std::string nameOf(mlir::Attribute attr, const std::string& otherwise) {
  auto name = llvm::dyn_cast_or_null<mlir::StringAttr>(attr);
  return name ? name.getValue().str() : otherwise;
}

Object port(const std::string& name, const std::string& type) {
  return Object{{"name", name}, {"type", type}};
}

std::string axesText(
    const program::Mesh& mesh,
    const flatbuffers::Vector<const program::AxisPart*>* parts) {
  std::string text;
  for (unsigned i = 0; parts && i < parts->size(); ++i) {
    const program::AxisPart& part = *parts->Get(i);
    const program::MeshAxis& axis = *mesh.axes()->Get(part.axis());
    if (i > 0) text += ", ";
    text += axis.name()->str();
    if (part.size() != axis.size())
      text += llvm::formatv(":({0}){1}", part.pre(), part.size());
  }
  return text;
}

std::string meshText(const program::Mesh& mesh) {
  std::string text;
  for (unsigned i = 0; mesh.axes() && i < mesh.axes()->size(); ++i)
    text += llvm::formatv("{0}{1}={2}", i > 0 ? "," : "",
                          mesh.axes()->Get(i)->name()->str(),
                          mesh.axes()->Get(i)->size());
  return text;
}

// A port as users see it, and the part of it that each device holds.
Object port(const program::Program& program, const program::Port& described) {
  Object result = port(described.name()->str(), typeText(*described.type()));
  const program::Shard* shard = described.shard();
  if (!shard) return result;
  std::string shape, sharding;
  for (unsigned i = 0; i < shard->shape()->size(); ++i) {
    const program::DimShard& dim = *shard->dims()->Get(i);
    shape += std::to_string(shard->shape()->Get(i)) + "x";
    sharding +=
        (i > 0 ? ", {" : "{") + axesText(*program.mesh(), dim.axes()) + "}";
  }
  result["type"] = "tensor<" + shape +
                   program::EnumNameDType(described.type()->dtype()) + ">";
  result["on each device"] = typeText(*described.type());
  result["sharding"] = "[" + sharding + "]";
  return result;
}

using Entry = std::pair<std::string, const Value*>;

std::vector<Entry> sorted(const Object& object) {
  std::vector<Entry> entries;
  for (const auto& [key, value] : object)
    entries.push_back({key.str(), &value});
  llvm::sort(entries);
  return entries;
}

std::string textOf(const std::string& key, const Value& value) {
  if (auto text = value.getAsString()) return text->str();
  auto number = value.getAsInteger();
  if (number && llvm::StringRef(key).ends_with("_bytes"))
    return base::FormatBytes(*number);
  if (number && llvm::StringRef(key).ends_with("_elements"))
    return base::FormatCount(*number);
  // Seconds are printed to the microsecond.
  if (!number && value.getAsNumber())
    return llvm::formatv("{0:F6}", *value.getAsNumber()).str();
  return llvm::formatv("{0}", value).str();
}

// Breaks long lists, e.g. of CPU features, at their commas.
void printFact(const std::string& key, const Value& value,
               const std::string& indent, llvm::raw_ostream& stream) {
  constexpr size_t kKeyWidth = 28, kWidth = 80;
  std::string line = indent + key;
  line.resize(std::max(line.size() + 1, kKeyWidth + 1), ' ');
  llvm::SmallVector<llvm::StringRef> words;
  const std::string text = textOf(key, value);
  if (text.empty()) return;
  // A file, such as the plan, keeps its lines.
  if (llvm::StringRef(text).contains('\n')) {
    stream << indent << key << "\n";
    for (llvm::StringRef row :
         llvm::split(llvm::StringRef(text).rtrim('\n'), '\n'))
      stream << indent << "  " << row << "\n";
    return;
  }
  llvm::StringRef(text).split(words, ',');
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i].str() + (i + 1 < words.size() ? "," : "");
    if (i > 0 && line.size() + word.size() > kWidth) {
      stream << line << "\n";
      line = std::string(kKeyWidth + 1, ' ');
    }
    line += word;
  }
  stream << llvm::StringRef(line).rtrim() << "\n";
}

// Prints nested objects as key.field.
void printFacts(const Object& facts, const std::string& indent,
                llvm::raw_ostream& stream) {
  for (const auto& [key, value] : sorted(facts)) {
    if (const Object* object = value->getAsObject()) {
      for (const auto& [field, content] : sorted(*object))
        printFact(key + "." + field, *content, indent, stream);
    } else if (!value->getAsArray()) {  // nested lists are for programs
      printFact(key, *value, indent, stream);
    }
  }
}

// Prints names and types, then numbers with the names of their fields.
void printItem(const Object& item, llvm::raw_ostream& stream) {
  stream << " ";
  for (const auto& [field, content] : sorted(item))
    if (auto text = content->getAsString()) stream << " " << *text;
  for (const auto& [field, content] : sorted(item))
    if (!content->getAsString())
      stream << " " << field << "=" << textOf(field, *content);
  stream << "\n";
}

// The pieces of a GPU program's code: PTX, and machine code by architecture.
Array codeOfGpus(const program::Artifact& artifact) {
  const auto bundle = program::ReadCodeBundle(artifact.code());
  if (!bundle.ok())
    return Array{Object{{"name", std::string(bundle.status().message())}}};
  Array pieces;
  const auto add = [&](const std::string& name, std::string_view code) {
    if (!code.empty())
      pieces.push_back(
          Object{{"name", name}, {"bytes", static_cast<int64_t>(code.size())}});
  };
  add("ptx", bundle->portable);
  for (const program::MachineCode& machine : bundle->machine)
    add(machine.architecture, machine.code);
  return pieces;
}

}  // namespace

Value inspectModel(mlir::ModuleOp module) {
  Array inputs, outputs, layers;
  Object operations;
  int64_t parameters = 0, parameter_elements = 0, parameter_bytes = 0,
          buffers = 0;
  if (FuncOp main = module.lookupSymbol<FuncOp>("main")) {
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      const std::string kind =
          nameOf(main.getArgAttr(i, nn::kKindAttr), "input");
      mlir::Type type = main.getArgumentTypes()[i];
      if (kind == "input")
        inputs.push_back(port(nameOf(main.getArgAttr(i, nn::kNameAttr),
                                     "input" + std::to_string(i)),
                              typeText(type)));
      else if (kind == "parameter") {
        ++parameters;
        parameter_elements +=
            llvm::cast<mlir::RankedTensorType>(type).getNumElements();
        parameter_bytes +=
            exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(type));
      } else {
        ++buffers;
      }
    }
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      outputs.push_back(port(nameOf(main.getResultAttr(i, nn::kNameAttr),
                                    "output" + std::to_string(i)),
                             typeText(main.getResultTypes()[i])));
  }
  llvm::StringMap<int64_t> calls, counts;
  module.walk([&](mlir::Operation* op) {
    if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
      ++calls[call.getCallee()];
    else if (!llvm::isa<mlir::ModuleOp, FuncOp, mlir::func::ReturnOp>(op))
      ++counts[op->getName().getStringRef()];
  });
  for (const auto& count : counts)
    operations[count.first().str()] = count.second;
  for (FuncOp function : module.getOps<FuncOp>())
    if (function.isPrivate() && !function.isExternal())
      layers.push_back(Object{
          {"name", function.getName().str()},
          {"calls", calls.lookup(function.getName())},
          {"operations",
           static_cast<int64_t>(function.front().without_terminator().end() ==
                                        function.front().begin()
                                    ? 0
                                    : std::distance(function.front().begin(),
                                                    function.front().end()) -
                                          1)}});
  return Object{{"kind", "model"},
                {"name", module.getName() ? module.getName()->str() : ""},
                {"inputs", std::move(inputs)},
                {"outputs", std::move(outputs)},
                {"parameters", parameters},
                {"parameter_elements", parameter_elements},
                {"parameter_bytes", parameter_bytes},
                {"buffers_and_constants", buffers},
                {"layers", std::move(layers)},
                {"operations", std::move(operations)}};
}

Value inspectArtifact(const program::Artifact& artifact) {
  const program::Program& program = artifact.program();
  Array inputs, outputs, functions;
  for (const program::Port* p : *program.inputs())
    inputs.push_back(port(program, *p));
  for (const program::Port* p : *program.outputs())
    outputs.push_back(port(program, *p));
  int64_t arena = 0;
  for (auto [index, function] : llvm::enumerate(*program.functions())) {
    functions.push_back(Object{
        {"name", function->name()->str()},
        {"instructions",
         static_cast<int64_t>(function->body() ? function->body()->size() : 0)},
        {"frame_bytes", function->frame_bytes()}});
    for (const program::Entry* entry : *program.entries())
      if (static_cast<int>(index) == entry->main())
        arena = std::max(arena, function->frame_bytes());
  }
  Object result{
      {"kind", "artifact"},
      {"devices", program::SizeOf(program.mesh())},
      {"target", program.target() ? program.target()->str() : ""},
      {"cpu_features",
       program.cpu_features() ? program.cpu_features()->str() : ""},
      {"inputs", std::move(inputs)},
      {"outputs", std::move(outputs)},
      {"parameters",
       static_cast<int64_t>(program.parameters() ? program.parameters()->size()
                                                 : 0)},
      {"kernels",
       static_cast<int64_t>(program.kernels() ? program.kernels()->size() : 0)},
      {"functions", std::move(functions)},
      {"launched", kernelsIn(program)},
      {"overlapped", overlappedIn(program)},
      {"arena_bytes", arena},
      {"code_bytes", static_cast<int64_t>(artifact.code().size())},
      {"data_bytes", static_cast<int64_t>(artifact.data().size())},
      {"file_bytes", artifact.file_bytes()}};
  if (program.mesh()) result["mesh"] = meshText(*program.mesh());
  if (program.target() && program::IsGpuTarget(program.target()->str()))
    result["code"] = codeOfGpus(artifact);
  if (program.model()) {
    if (auto model = llvm::json::parse(program.model()->str()))
      result["compiled"] = std::move(*model);
    else
      llvm::consumeError(model.takeError());
  }
  return result;
}

void printInspection(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  // Single facts first: lists may be long.
  for (const Entry& entry : sorted(facts))
    if (!entry.second->getAsArray() && !entry.second->getAsObject())
      printFact(entry.first, *entry.second, "", stream);
  for (const auto& [key, entry] : sorted(facts)) {
    if (const Array* list = entry->getAsArray()) {
      if (list->empty()) continue;
      stream << key << ":\n";
      for (const Value& item : *list) printItem(*item.getAsObject(), stream);
    } else if (const Object* object = entry->getAsObject()) {
      stream << key << ":\n";
      printFacts(*object, "  ", stream);
    }
  }
}

}  // namespace partita::driver
