// Prints the table of a measurement.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "compiler/driver/bench/bench.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using llvm::formatv;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

constexpr size_t kShown = 12;  // rows of a profile

std::string differenceOf(const Object& system) {
  if (auto problem = system.getString("difference_problem"))
    return "not compared: " + problem->str();
  if (auto text = system.getString("difference")) return text->str();
  const auto largest = system.getNumber("difference");
  if (!largest) return "";
  return absl::StrFormat("%.1e of %.3g", *largest,
                         system.getNumber("magnitude").value_or(0.0));
}

void printSystems(const Array& systems, llvm::raw_ostream& stream) {
  stream << formatv("{0,-14}  {1,10}  {2,8}  {3,10}  {4,10}  {5}\n", "system",
                    "ms", "ratio", "CPU ms", "memory", "largest difference");
  for (const Value& value : systems) {
    const Object& system = *value.getAsObject();
    const StringRef name = *system.getString("name");
    if (auto problem = system.getString("problem")) {
      stream << formatv("{0,-14}  not measured: {1}\n", name, *problem);
      continue;
    }
    const auto ratio = system.getNumber("ratio");
    stream << StringRef(
                  formatv(
                      "{0,-14}  {1,10:F3}  {2,8}  {3,10:F3}  {4,10}  {5}", name,
                      *system.getNumber("ms"),
                      ratio ? formatv("{0:F2}", *ratio).str() : std::string(),
                      system.getNumber("cpu_ms").value_or(0.0),
                      base::FormatBytes(
                          system.getInteger("peak_bytes").value_or(0)),
                      differenceOf(system))
                      .str())
                  .rtrim()
           << "\n";
  }
}

// " (66% of the machine's)"; empty if the share is unknown.
std::string shareOf(const Object& row, StringRef name) {
  const auto share = row.getNumber(name);
  return share ? formatv(" ({0:F0}% of the machine's)", 100 * *share).str()
               : std::string();
}

void printLimits(const Object& row, llvm::raw_ostream& stream) {
  const double seconds =
      1e-3 *
      row.getArray("systems")->front().getAsObject()->getNumber("ms").value_or(
          0.0);
  if (seconds <= 0) return;
  stream << formatv("products: {0:F2} GFLOP at {1:F1} GFLOP/s{2}; ",
                    *row.getNumber("flops") * 1e-9,
                    *row.getNumber("flops") / seconds * 1e-9,
                    shareOf(row, "product_share"))
         << formatv("operands: {0} at {1:F1} GB/s{2}\n",
                    base::FormatBytes(
                        static_cast<int64_t>(*row.getNumber("bytes"))),
                    *row.getNumber("bytes") / seconds * 1e-9,
                    shareOf(row, "memory_share"));
}

// The longest rows of a profile. `key`: the field with the row's name.
void printLongest(const Array* rows, StringRef key, llvm::raw_ostream& stream) {
  if (rows == nullptr || rows->empty()) return;
  double total = 0;
  std::vector<const Object*> longest;
  for (const Value& value : *rows) {
    longest.push_back(value.getAsObject());
    total += longest.back()->getNumber("median_ms").value_or(0.0);
  }
  const auto ms = [](const Object* row) {
    return row->getNumber("median_ms").value_or(0.0);
  };
  std::stable_sort(
      longest.begin(), longest.end(),
      [&](const Object* a, const Object* b) { return ms(a) > ms(b); });
  const size_t shown = std::min(kShown, longest.size());
  stream << formatv("{0,10}  {1,6}  {2}\n", "ms", "share",
                    key == "layer" ? "layer" : "step");
  double rest = total;
  for (size_t i = 0; i < shown; ++i) {
    const StringRef name = longest[i]->getString(key).value_or("");
    rest -= ms(longest[i]);
    stream << formatv("{0,10:F3}  {1,5:F1}%  {2}\n", ms(longest[i]),
                      total > 0 ? 100 * ms(longest[i]) / total : 0,
                      name.empty() ? StringRef("(no layer)") : name);
  }
  if (longest.size() > shown)
    stream << formatv("{0,10:F3}  {1,5:F1}%  ({2} more)\n", rest,
                      total > 0 ? 100 * rest / total : 0,
                      longest.size() - shown);
}

}  // namespace

void printMeasurement(const Object& row, llvm::raw_ostream& stream) {
  printSystems(*row.getArray("systems"), stream);
  printLimits(row, stream);
  printLongest(row.getArray("layers"), "layer", stream);
  printLongest(row.getArray("steps"), "name", stream);
}

}  // namespace partita::driver
