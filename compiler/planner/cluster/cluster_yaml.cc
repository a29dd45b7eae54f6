// Reads cluster.yaml, with positions in errors, and writes it.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "compiler/plan/text.h"
#include "compiler/plan/yaml.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/cluster/tables_yaml.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using plan::Node;

struct Unit {
  const char* name;
  double factor;
};
using Units = std::vector<Unit>;

const Units& Bytes() {
  static const Units units = {
      {"B", 1},     {"kB", 1e3},   {"MB", 1e6},      {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
  return units;
}
const Units& Bandwidths() {
  static const Units units = {{"B/s", 1},          {"MB/s", 1e6},
                              {"GB/s", 1e9},       {"TB/s", 1e12},
                              {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}};
  return units;
}
const Units& Rates() {
  static const Units units = {
      {"FLOP/s", 1}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
  return units;
}
const Units& Times() {
  static const Units units = {
      {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  return units;
}
const Units& Plain() {
  static const Units units = {{"", 1}};
  return units;
}

// The shortest text that reads back as the same number: in `unit` if possible,
// otherwise in `base`, the unit of factor 1.
std::string Number(double value, double factor, const char* unit,
                   const char* base) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17g %s", value, base);
  for (int digits = 1; digits <= 17; ++digits) {
    char shorter[64];
    std::snprintf(shorter, sizeof(shorter), "%.*g", digits, value / factor);
    if (std::strtod(shorter, nullptr) * factor != value) continue;
    std::snprintf(text, sizeof(text), "%s %s", shorter, unit);
    break;
  }
  return plan::Trim(text);
}

// Bounds of a number: whether 0 is allowed, and the maximum.
struct Range {
  bool zero = true;
  double most = std::numeric_limits<double>::infinity();
};
constexpr Range kAny, kPositive = {false}, kShare = {false, 1},
                      // A switch that computes sums can exceed an efficiency of
                      // 1.
    kEfficiency = {false, 2};

class Reader {
 public:
  explicit Reader(std::string origin) : origin_(std::move(origin)) {}

  StatusOr<Cluster> Read(const Node& root);

 private:
  Status Refuse(const Node& node, const std::string& message) const {
    return InvalidArgumentError(
        origin_ + ":" + std::to_string(node.where.line) + ":" +
        std::to_string(node.where.column) + ": " + message);
  }
  Status CheckMap(const Node& node, const std::string& what,
                  const std::vector<std::string>& fields,
                  const std::vector<std::string>& required) const;
  Status ReadNumber(const Node& map, const char* field, const Units& units,
                    Range range, double& value) const;
  Status ReadCount(const Node& map, const char* field, int& value) const;
  Status ReadText(const Node& map, const char* field, std::string& value) const;
  Status ReadPeak(const Node& node, Device& device) const;
  Status ReadDevice(const Node& node, Device& device) const;
  Status CheckDevice(const Node& node, const Device& device) const;
  Status ReadFlag(const Node& map, const char* field, bool& value) const;
  Status ReadKind(const Node& map, Device& device) const;
  Status ReadLevels(const Node& node, std::vector<Level>& levels) const;

  std::string origin_;
};

const Node* Find(const Node& map, const std::string& field) {
  for (size_t i = 0; i + 1 < map.children.size(); i += 2)
    if (map.children[i].scalar == field) return &map.children[i + 1];
  return nullptr;
}

Status Reader::CheckMap(const Node& node, const std::string& what,
                        const std::vector<std::string>& fields,
                        const std::vector<std::string>& required) const {
  if (node.kind != Node::Kind::kMap)
    return Refuse(node, what + ": expected a map of " + plan::Join(fields) +
                            ", found " + plan::Describe(node));
  std::vector<std::string> seen;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const Node& key = node.children[i];
    if (std::find(fields.begin(), fields.end(), key.scalar) == fields.end())
      return Refuse(key, what + ": expected one of " + plan::Join(fields) +
                             ", found " + plan::Describe(key) +
                             plan::Suggest(key.scalar, fields));
    if (std::find(seen.begin(), seen.end(), key.scalar) != seen.end())
      return Refuse(key,
                    what + ": expected '" + key.scalar +
                        "' once, found another one in line " +
                        std::to_string(Find(node, key.scalar)->where.line));
    seen.push_back(key.scalar);
  }
  for (const std::string& field : required)
    if (!Find(node, field))
      return Refuse(node, what + ": expected '" + field + "', found none");
  return absl::OkStatus();
}

Status Reader::ReadNumber(const Node& map, const char* field,
                          const Units& units, Range range,
                          double& value) const {
  const Node* node = Find(map, field);
  if (!node) return absl::OkStatus();
  const std::string text = plan::Trim(node->scalar);
  // Refuses hexadecimals and infinities, which strtod accepts.
  const size_t end =
      std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  const std::string digits = text.substr(0, end);
  char* stop = nullptr;
  const double number = std::strtod(digits.c_str(), &stop);
  const bool is_number = node->kind == Node::Kind::kScalar && !digits.empty() &&
                         *stop == '\0' && std::isfinite(number);
  const std::string unit = plan::Trim(text.substr(end));
  if (is_number)
    for (const Unit& known : units)
      if (unit == known.name) {
        value = number * known.factor;
        if (value >= 0 && (range.zero || value > 0) && value <= range.most)
          return absl::OkStatus();
        std::string expected = range.zero ? "0 or more" : "a number above 0";
        if (std::isfinite(range.most))
          expected += ", at most " + Number(range.most, 1, "", "");
        return Refuse(*node, std::string(field) + ": expected " + expected +
                                 ", found " + plan::Describe(*node));
      }
  std::vector<std::string> names;
  for (const Unit& known : units) names.push_back(known.name);
  return Refuse(
      *node, std::string(field) + ": expected a number" +
                 (units.size() == 1 ? std::string(" without a unit")
                                    : " and a unit of " + plan::Join(names)) +
                 ", found " + plan::Describe(*node));
}

Status Reader::ReadCount(const Node& map, const char* field, int& value) const {
  const Node* node = Find(map, field);
  if (!node) return absl::OkStatus();
  StatusOr<int64_t> count = plan::ParseCount(node->scalar);
  if (node->kind != Node::Kind::kScalar || !count.ok() || *count < 1 ||
      *count > (1 << 24))
    return Refuse(*node, std::string(field) +
                             ": expected a whole number of 1 to 16777216, "
                             "found " +
                             plan::Describe(*node));
  value = static_cast<int>(*count);
  return absl::OkStatus();
}

Status Reader::ReadText(const Node& map, const char* field,
                        std::string& value) const {
  const Node* node = Find(map, field);
  if (!node) return absl::OkStatus();
  const bool fine =
      node->kind == Node::Kind::kScalar && !node->scalar.empty() &&
      node->scalar.size() <= 64 &&
      std::isalnum(static_cast<unsigned char>(node->scalar.front())) &&
      std::isalnum(static_cast<unsigned char>(node->scalar.back())) &&
      std::all_of(node->scalar.begin(), node->scalar.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '-' ||
               c == '_' || c == ' ' || c == '.';
      });
  if (!fine)
    return Refuse(*node,
                  std::string(field) +
                      ": expected a name of letters and digits, inside it "
                      "also spaces, '.', '-' and '_', 64 at most, found " +
                      plan::Describe(*node));
  value = node->scalar;
  return absl::OkStatus();
}

Status Reader::ReadPeak(const Node& node, Device& device) const {
  const std::vector<std::string> names(core::kPrecisionNames.begin(),
                                       core::kPrecisionNames.end());
  if (Status status = CheckMap(node, "peak", names, {}); !status.ok())
    return status;
  for (int p = 0; p < core::kPrecisions; ++p)
    if (Status status =
            ReadNumber(node, names[p].c_str(), Rates(), kAny, device.peak[p]);
        !status.ok())
      return status;
  return absl::OkStatus();
}

// Checks fields against each other. ReadDevice has checked single values.
Status Reader::CheckDevice(const Node& node, const Device& device) const {
  const auto place = [&](const char* field) -> const Node& {
    const Node* found = Find(node, field);
    return found ? *found : node;
  };
  if (std::none_of(device.peak.begin(), device.peak.end(),
                   [](double peak) { return peak > 0; }))
    return Refuse(
        place("peak"),
        "peak: expected a peak of some precision above 0, found none");
  if (device.room() > 0) return absl::OkStatus();
  return Refuse(place("memory"),
                "memory: expected more than the " +
                    Number(device.context, 1e9, "GB", "B") +
                    " that the driver and communicators take (context), "
                    "found " +
                    Number(device.memory, 1e9, "GB", "B"));
}

Status Reader::ReadDevice(const Node& node, Device& device) const {
  if (node.kind == Node::Kind::kScalar) {
    StatusOr<Cluster> known = BuiltInCluster(node.scalar);
    if (!known.ok())
      return Refuse(node, "device: " + std::string(known.status().message()));
    device = known->device;
    return absl::OkStatus();
  }
  std::vector<std::string> required = {"peak", "memory", "memory_bandwidth"};
  if (const Node* like = Find(node, "like")) {
    if (Status status = ReadDevice(*like, device); !status.ok()) return status;
    required.clear();
  }
  if (Status status =
          CheckMap(node, "device",
                   {"like", "name", "kind", "peak", "memory", "context",
                    "memory_bandwidth", "host_memory", "host_bandwidth",
                    "units", "l2", "launch", "kernel", "matmul", "attention",
                    "streaming", "cycle", "overlaps", "tables"},
                   required);
      !status.ok())
    return status;
  if (const Node* peak = Find(node, "peak"))
    if (Status status = ReadPeak(*peak, device); !status.ok()) return status;
  if (const Node* tables = Find(node, "tables"))
    if (Status status = planner::ReadTables(*tables, origin_, device.tables);
        !status.ok())
      return status;
  for (Status status :
       {ReadText(node, "name", device.name),
        ReadNumber(node, "memory", Bytes(), kPositive, device.memory),
        ReadNumber(node, "context", Bytes(), kAny, device.context),
        ReadNumber(node, "memory_bandwidth", Bandwidths(), kPositive,
                   device.memory_bandwidth),
        ReadNumber(node, "host_memory", Bytes(), kAny, device.host_memory),
        ReadNumber(node, "host_bandwidth", Bandwidths(), kAny,
                   device.host_bandwidth),
        ReadCount(node, "units", device.units),
        ReadNumber(node, "l2", Bytes(), kAny, device.l2),
        ReadNumber(node, "launch", Times(), kAny, device.launch),
        ReadNumber(node, "kernel", Times(), kAny, device.kernel),
        ReadNumber(node, "matmul", Plain(), kShare, device.matmul),
        ReadNumber(node, "attention", Plain(), kShare, device.attention),
        ReadNumber(node, "streaming", Plain(), kShare, device.streaming),
        ReadNumber(node, "cycle", Times(), kAny, device.cycle),
        ReadFlag(node, "overlaps", device.overlaps), ReadKind(node, device)})
    if (!status.ok()) return status;
  return CheckDevice(node, device);
}

Status Reader::ReadFlag(const Node& map, const char* field, bool& value) const {
  const Node* node = Find(map, field);
  if (!node) return absl::OkStatus();
  if (node->scalar != "true" && node->scalar != "false")
    return Refuse(*node, std::string(field) +
                             ": expected true or false, found " +
                             plan::Describe(*node));
  value = node->scalar == "true";
  return absl::OkStatus();
}

// GPUs and CPUs run different programs, so a device needs a kind. Without
// `kind`, a device with host memory is a GPU, and a device with `cycle`, which
// only `partita measure` writes, is a CPU.
Status Reader::ReadKind(const Node& map, Device& device) const {
  const Node* node = Find(map, "kind");
  if (!node) {
    if (Find(map, "like")) {
      if (device.is_gpu || device.host_memory == 0) return absl::OkStatus();
      return Refuse(map,
                    "device: expected no host_memory, which only a GPU's "
                    "host has, found it for a device that is like a CPU");
    }
    device.is_gpu = device.host_memory > 0;
    if (device.is_gpu || device.cycle > 0) return absl::OkStatus();
    return Refuse(map,
                  "device: expected 'kind: gpu' or 'kind: cpu', which says "
                  "whose programs it runs, found no 'kind'");
  }
  if (node->scalar != "gpu" && node->scalar != "cpu")
    return Refuse(*node,
                  "kind: expected gpu or cpu, found " + plan::Describe(*node));
  device.is_gpu = node->scalar == "gpu";
  if (device.is_gpu || device.host_memory == 0) return absl::OkStatus();
  return Refuse(*node,
                "kind: expected gpu, because only a GPU's host has "
                "host_memory, found cpu");
}

Status Reader::ReadLevels(const Node& node, std::vector<Level>& levels) const {
  if (node.kind != Node::Kind::kList || node.children.size() > 8)
    return Refuse(node,
                  "levels: expected a list of at most 8, innermost "
                  "first, found " +
                      plan::Describe(node));
  for (const Node& item : node.children) {
    if (Status status = CheckMap(item, "levels",
                                 {"name", "devices", "bandwidth", "latency",
                                  "efficiency", "switched"},
                                 {"devices", "bandwidth", "latency"});
        !status.ok())
      return status;
    Level level;
    level.name = "level " + std::to_string(levels.size() + 1);
    for (Status status :
         {ReadText(item, "name", level.name),
          ReadCount(item, "devices", level.devices),
          ReadNumber(item, "bandwidth", Bandwidths(), kPositive,
                     level.bandwidth),
          ReadNumber(item, "latency", Times(), kAny, level.latency),
          ReadNumber(item, "efficiency", Plain(), kEfficiency,
                     level.efficiency),
          ReadFlag(item, "switched", level.switched)})
      if (!status.ok()) return status;
    const int below = levels.empty() ? 1 : levels.back().devices;
    if (level.devices < below || level.devices % below != 0)
      return Refuse(
          *Find(item, "devices"),
          "devices of level '" + level.name + "': expected a multiple of " +
              std::to_string(below) + ", which level '" + levels.back().name +
              "' before it has, found " + std::to_string(level.devices));
    for (const Level& other : levels)
      if (other.name == level.name)
        return Refuse(item,
                      "name: expected levels of different names, found '" +
                          level.name + "' again");
    levels.push_back(std::move(level));
  }
  return absl::OkStatus();
}

StatusOr<Cluster> Reader::Read(const Node& root) {
  if (Status status =
          CheckMap(root, "a cluster", {"name", "devices", "device", "levels"},
                   {"device"});
      !status.ok())
    return status;
  Cluster cluster;
  cluster.name = "cluster";
  const Node* device = Find(root, "device");
  if (Status status = ReadText(root, "name", cluster.name); !status.ok())
    return status;
  if (Status status = ReadDevice(*device, cluster.device); !status.ok())
    return status;
  if (const Node* levels = Find(root, "levels"))
    if (Status status = ReadLevels(*levels, cluster.levels); !status.ok())
      return status;
  const int linked = cluster.levels.empty() ? 1 : cluster.levels.back().devices;
  cluster.devices = linked;
  if (Status status = ReadCount(root, "devices", cluster.devices); !status.ok())
    return status;
  if (cluster.devices != linked && cluster.levels.empty())
    return Refuse(*Find(root, "devices"),
                  "devices: expected 'levels', which link devices, the last "
                  "with all " +
                      std::to_string(cluster.devices) + ", found none");
  if (cluster.devices != linked)
    return Refuse(*Find(root, "devices"), "devices: expected the " +
                                              std::to_string(linked) +
                                              " that the levels link, found " +
                                              std::to_string(cluster.devices));
  if (Status status = CheckCluster(cluster); !status.ok())
    return Refuse(root, std::string(status.message()));
  return cluster;
}

}  // namespace

StatusOr<Cluster> ReadCluster(const std::string& text,
                              const std::string& origin) {
  StatusOr<Node> root = plan::ParseYaml(text, origin);
  if (!root.ok()) return root.status();
  return Reader(origin).Read(*root);
}

std::string WriteCluster(const Cluster& cluster) {
  const Device& device = cluster.device;
  std::string peaks;
  for (int p = 0; p < core::kPrecisions; ++p)
    if (device.peak[p] > 0)
      peaks += (peaks.empty() ? "" : ", ") +
               std::string(core::kPrecisionNames[p]) + ": " +
               Number(device.peak[p], 1e12, "TFLOP/s", "FLOP/s");
  std::string text = "name: " + cluster.name +
                     "\ndevices: " + std::to_string(cluster.devices) +
                     "\ndevice:\n";
  if (!device.name.empty()) text += "  name: " + device.name + "\n";
  text += std::string("  kind: ") + (device.is_gpu ? "gpu" : "cpu") + "\n";
  text += "  peak: {" + peaks + "}\n";
  text += "  memory: " + Number(device.memory, 1e9, "GB", "B") + "\n";
  text += "  context: " + Number(device.context, 1e9, "GB", "B") + "\n";
  text += "  memory_bandwidth: " +
          Number(device.memory_bandwidth, 1e9, "GB/s", "B/s") + "\n";
  if (device.host_memory > 0)
    text += "  host_memory: " + Number(device.host_memory, 1e9, "GB", "B") +
            "\n  host_bandwidth: " +
            Number(device.host_bandwidth, 1e9, "GB/s", "B/s") + "\n";
  text += "  units: " + std::to_string(device.units) + "\n";
  text += "  l2: " + Number(device.l2, 1e6, "MB", "B") + "\n";
  text += "  launch: " + Number(device.launch, 1e-6, "us", "s") + "\n";
  text += "  kernel: " + Number(device.kernel, 1e-6, "us", "s") + "\n";
  text += "  matmul: " + Number(device.matmul, 1, "", "") + "\n";
  text += "  attention: " + Number(device.attention, 1, "", "") + "\n";
  text += "  streaming: " + Number(device.streaming, 1, "", "") + "\n";
  if (device.cycle > 0)
    text += "  cycle: " + Number(device.cycle, 1e-9, "ns", "s") + "\n";
  if (!device.overlaps) text += "  overlaps: false\n";
  text += WriteTables(device.tables);
  if (cluster.levels.empty()) return text;
  text += "levels:\n";
  for (const Level& level : cluster.levels)
    text += "  - {name: " + level.name +
            ", devices: " + std::to_string(level.devices) +
            ", bandwidth: " + Number(level.bandwidth, 1e9, "GB/s", "B/s") +
            ", latency: " + Number(level.latency, 1e-6, "us", "s") +
            ", efficiency: " + Number(level.efficiency, 1, "", "") +
            (level.switched ? "" : ", switched: false") + "}\n";
  return text;
}

}  // namespace partita::planner
