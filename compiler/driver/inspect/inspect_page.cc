// Every section prints from the JSON value; facts that an artifact lacks are
// left out.
#include "compiler/driver/inspect/inspect_page.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using llvm::formatv;
using llvm::raw_ostream;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

constexpr size_t kMostRows = 10, kMostPlanLines = 20;
constexpr char kAll[] = "(--all for the others)";

int64_t number(const Object& object, llvm::StringRef key) {
  return object.getInteger(key).value_or(0);
}

std::string text(const Object& object, llvm::StringRef key) {
  return object.getString(key).value_or("").str();
}

std::string counted(int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Prints "key   value"; nothing for an empty value.
void printLine(const std::string& key, const std::string& value,
               raw_ostream& stream) {
  if (!value.empty()) stream << formatv("{0,-10}{1}\n", key, value);
}

void printModel(const Object& facts, const Object& compiled,
                raw_ostream& stream) {
  std::string model = text(compiled, "model");
  if (number(compiled, "operations") > 0)
    model += (model.empty() ? "" : ": ") +
             counted(number(compiled, "operations"), "operation") + ", " +
             counted(number(compiled, "parameters"), "parameter") + " (" +
             base::FormatCount(number(compiled, "parameter_elements")) +
             " numbers)";
  printLine("model", model, stream);
  const std::string optimizer = text(compiled, "optimizer");
  printLine("program",
            (optimizer.empty() ? std::string("inference")
                               : "a training step with " + optimizer) +
                " for " + text(facts, "target") + ", " +
                base::FormatBytes(number(facts, "file_bytes")),
            stream);
  if (const auto* code = facts.getArray("code")) {
    std::vector<std::string> pieces;
    for (const Value& piece : *code)
      pieces.push_back(
          text(*piece.getAsObject(), "name") + " (" +
          base::FormatBytes(number(*piece.getAsObject(), "bytes")) + ")");
    printLine("code", llvm::join(pieces, ", "), stream);
  }
  const std::string mesh = text(facts, "mesh");
  printLine("devices",
            std::to_string(number(facts, "devices")) +
                (mesh.empty() ? "" : ": " + mesh),
            stream);
}

void printPlan(const Object& compiled, raw_ostream& stream) {
  const std::string plan = text(compiled, "plan");
  if (plan.empty()) return;
  stream << "plan:\n";
  size_t lines = 0;
  for (llvm::StringRef line :
       llvm::split(llvm::StringRef(plan).rtrim('\n'), '\n')) {
    if (++lines > kMostPlanLines) {
      stream << "  ... " << kAll << "\n";
      return;
    }
    stream << "  " << line << "\n";
  }
}

void printPorts(const Object& facts, llvm::StringRef key, raw_ostream& stream) {
  const Array* ports = facts.getArray(key);
  if (!ports || ports->empty()) return;
  stream << key << ":\n";
  for (const Value& value : *ports) {
    const Object& port = *value.getAsObject();
    stream << formatv("  {0,-18} {1}", text(port, "name"), text(port, "type"));
    if (const std::string sharding = text(port, "sharding"); !sharding.empty())
      stream << " " << sharding << ", " << text(port, "on each device")
             << " on each device";
    stream << "\n";
  }
}

void printWork(const Object& facts, const Object& compiled,
               raw_ostream& stream) {
  std::string work = counted(number(facts, "kernels"), "kernel");
  if (const int64_t launches = number(compiled, "launches"); launches > 0)
    work += ", launched in " + counted(launches, "place");
  const std::pair<const char*, const char*> counts[] = {
      {"gemms", "product"},
      {"convolutions", "convolution"},
      {"collectives", "collective"}};
  for (const auto& [key, what] : counts)
    if (const int64_t count = number(compiled, key); count > 0)
      work += ", " + counted(count, what);
  printLine("work", work, stream);
  if (const int64_t kinds = number(compiled, "layer_kinds"); kinds > 0)
    printLine("layers",
              counted(kinds, "kind") + ", " +
                  counted(number(compiled, "layer_calls"), "call") +
                  "; the counts above have each kind once",
              stream);
}

void printMemory(const Object& compiled, raw_ostream& stream) {
  const Object* memory = compiled.getObject("memory");
  const int64_t total = memory ? number(*memory, "total") : 0;
  if (total == 0) return;
  const Array* by_rank = compiled.getArray("memory_by_rank");
  stream << "memory of "
         << (by_rank && by_rank->size() > 1 ? "the device that needs most"
                                            : "a device")
         << ":\n";
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const auto& [key, value] : *memory)
    if (key != "total" && key != "most_gradients" && key != "host" &&
        key != "files" && value.getAsInteger().value_or(0) > 0) {
      std::string name = key.str();
      std::replace(name.begin(), name.end(), '_', ' ');
      rows.push_back({*value.getAsInteger(), name});
    }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  const auto print = [&](const std::string& name, int64_t bytes,
                         const std::string& behind) {
    stream << formatv("  {0,-24}{1,10}{2}\n", name, base::FormatBytes(bytes),
                      behind);
  };
  for (const auto& [bytes, name] : rows)
    print(name, bytes,
          formatv("{0,8:F1}%", 100.0 * static_cast<double>(bytes) /
                                   static_cast<double>(total))
              .str());
  print("total", total, "");
  if (const int64_t host = number(*memory, "host"); host > 0)
    print("in host memory", host, "");
  if (const int64_t files = number(*memory, "files"); files > 0)
    print("in files", files, "");
}

void printKernels(const Object& facts, raw_ostream& stream) {
  const Array* kernels = facts.getArray("launched");
  if (!kernels || kernels->empty()) return;
  const size_t shown = std::min(kMostRows, kernels->size());
  stream << "kernels with the most traffic per step";
  if (shown < kernels->size())
    stream << ", " << shown << " of " << kernels->size() << " " << kAll;
  stream << ":\n" << formatv("  {0,8}{1,11}  kernel\n", "launches", "bytes");
  for (size_t i = 0; i < shown; ++i) {
    const Object& row = *(*kernels)[i].getAsObject();
    stream << formatv("  {0,8}{1,11}  {2}\n", number(row, "launches"),
                      base::FormatBytes(number(row, "traffic_bytes")),
                      text(row, "label"));
  }
}

void printOverlap(const Object& facts, raw_ostream& stream) {
  const Array* rows = facts.getArray("overlapped");
  if (!rows || rows->empty()) return;
  const size_t shown = std::min(kMostRows, rows->size());
  stream << "collectives beside other work";
  if (shown < rows->size())
    stream << ", " << shown << " of " << rows->size() << " " << kAll;
  stream << ":\n";
  for (size_t i = 0; i < shown; ++i) {
    const Object& row = *(*rows)[i].getAsObject();
    stream << formatv("  {0} of {1}, {2}, beside {3}\n",
                      text(row, "collective"), text(row, "name"),
                      base::FormatBytes(number(row, "bytes")),
                      text(row, "beside"));
  }
}

}  // namespace

void printPage(const Value& value, raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  const Object none;
  const Object* summary = facts.getObject("compiled");
  const Object& compiled = summary ? *summary : none;
  printModel(facts, compiled, stream);
  printWork(facts, compiled, stream);
  printPlan(compiled, stream);
  printPorts(facts, "inputs", stream);
  printPorts(facts, "outputs", stream);
  printMemory(compiled, stream);
  printKernels(facts, stream);
  printOverlap(facts, stream);
}

}  // namespace partita::driver
