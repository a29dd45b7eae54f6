// Reads and writes tables. Each is a map of its name, lists of sizes, and rates
// in GFLOP/s or GB/s.
#include "compiler/planner/cluster/tables_yaml.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "compiler/plan/text.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using plan::Node;

constexpr double kGiga = 1e9;

Status RefuseAt(const std::string& origin, const Node& node,
                const std::string& message) {
  return InvalidArgumentError(origin + ":" + std::to_string(node.where.line) +
                              ":" + std::to_string(node.where.column) + ": " +
                              message);
}

class TableReader {
 public:
  explicit TableReader(const std::string& origin) : origin_(origin) {}

  Status Read(const Node& node, std::string& name, RateTable& table) const;

 private:
  Status Refuse(const Node& node, const std::string& message) const {
    return RefuseAt(origin_, node, message);
  }
  Status ReadSizes(const Node& node, const std::string& name,
                   RateTable& table) const;
  Status ReadRates(const Node& node, RateTable& table) const;
  Status ReadNumbers(const Node& node, const std::string& what,
                     std::vector<double>& numbers) const;

  const std::string& origin_;
};

Status TableReader::ReadNumbers(const Node& node, const std::string& what,
                                std::vector<double>& numbers) const {
  if (node.kind != Node::Kind::kList || node.children.empty())
    return Refuse(node, what + ": expected a list of numbers, found " +
                            plan::Describe(node));
  for (const Node& item : node.children) {
    char* stop = nullptr;
    const double number = std::strtod(item.scalar.c_str(), &stop);
    if (item.kind != Node::Kind::kScalar || item.scalar.empty() ||
        *stop != '\0' || !std::isfinite(number) || number <= 0)
      return Refuse(item, what + ": expected a number above 0, found " +
                              plan::Describe(item));
    numbers.push_back(number);
  }
  return absl::OkStatus();
}

Status TableReader::ReadSizes(const Node& node, const std::string& name,
                              RateTable& table) const {
  const int dimensions = DimensionsOf(name);
  if (node.kind != Node::Kind::kList ||
      node.children.size() != static_cast<size_t>(dimensions))
    return Refuse(node, "sizes: expected " + std::to_string(dimensions) +
                            " lists of numbers, found " +
                            (node.kind == Node::Kind::kList
                                 ? std::to_string(node.children.size())
                                 : plan::Describe(node)) +
                            "; if another version measured it, run `partita "
                            "measure` again");
  for (const Node& list : node.children) {
    std::vector<double>& own = table.sizes.emplace_back();
    if (Status status = ReadNumbers(list, "sizes", own); !status.ok())
      return status;
    if (std::adjacent_find(own.begin(), own.end(), std::greater_equal<>()) !=
        own.end())
      return Refuse(list,
                    "sizes: expected ascending numbers, found one that "
                    "is not above the one before");
  }
  return absl::OkStatus();
}

Status TableReader::ReadRates(const Node& node, RateTable& table) const {
  if (Status status = ReadNumbers(node, "rates", table.rates); !status.ok())
    return status;
  size_t expected = 1;
  for (const std::vector<double>& list : table.sizes) expected *= list.size();
  if (table.rates.size() != expected)
    return Refuse(node, "rates: expected " + std::to_string(expected) +
                            ", one for each combination of sizes, found " +
                            std::to_string(table.rates.size()));
  for (double& rate : table.rates) rate *= kGiga;
  return absl::OkStatus();
}

Status TableReader::Read(const Node& node, std::string& name,
                         RateTable& table) const {
  const std::vector<std::string> fields = {"of", "sizes", "rates"};
  const Node* found[3] = {};
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const Node& key = node.children[i];
    const auto field = std::find(fields.begin(), fields.end(), key.scalar);
    if (node.kind != Node::Kind::kMap || field == fields.end() ||
        found[field - fields.begin()] != nullptr)
      return Refuse(key,
                    "tables: expected a map of of, sizes, rates, each "
                    "once, found " +
                        plan::Describe(key));
    found[field - fields.begin()] = &node.children[i + 1];
  }
  for (const Node* each : found)
    if (each == nullptr)
      return Refuse(node, "tables: expected a map of of, sizes, rates, found " +
                              plan::Describe(node));
  name = found[0]->scalar;
  if (DimensionsOf(name) == 0)
    return Refuse(*found[0],
                  "of: expected what `partita measure` measures, as 'product "
                  "f32 nn', 'convolution f32 forward window', 'all_reduce 2', "
                  "'copy' or 'send', found " +
                      plan::Describe(*found[0]));
  if (Status status = ReadSizes(*found[1], name, table); !status.ok())
    return status;
  return ReadRates(*found[2], table);
}

std::string ListOf(const std::vector<double>& numbers, double unit) {
  std::string text;
  for (const double number : numbers) {
    char shortest[32];
    for (int digits = 1; digits <= 17; ++digits) {
      std::snprintf(shortest, sizeof(shortest), "%.*g", digits, number / unit);
      if (std::strtod(shortest, nullptr) * unit == number) break;
    }
    text += (text.empty() ? "" : ", ") + std::string(shortest);
  }
  return "[" + text + "]";
}

}  // namespace

Status ReadTables(const Node& node, const std::string& origin,
                  RateTables& tables) {
  if (node.kind != Node::Kind::kList)
    return RefuseAt(origin, node,
                    "tables: expected a list, found " + plan::Describe(node));
  tables.clear();
  for (const Node& item : node.children) {
    std::string name;
    RateTable table;
    if (Status status = TableReader(origin).Read(item, name, table);
        !status.ok())
      return status;
    if (!tables.emplace(name, std::move(table)).second)
      return RefuseAt(origin, item, "tables: '" + name + "' is there twice");
  }
  return absl::OkStatus();
}

std::string WriteTables(const RateTables& tables) {
  if (tables.empty()) return "";
  std::string text = "  tables:  # rates in GFLOP/s and GB/s\n";
  for (const auto& [name, table] : tables) {
    std::string sizes;
    for (const std::vector<double>& list : table.sizes)
      sizes += (sizes.empty() ? "" : ", ") + ListOf(list, 1);
    text += "    - of: " + name + "\n      sizes: [" + sizes +
            "]\n      rates: " + ListOf(table.rates, kGiga) + "\n";
  }
  return text;
}

}  // namespace partita::planner
