// The built-in clusters and their names. Sizes are from data sheets. Every
// efficiency and latency has its source beside it.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/text.h"
#include "compiler/planner/cluster/cluster.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;

constexpr double kTera = 1e12, kGiga = 1e9, kMega = 1e6, kMicro = 1e-6;
constexpr double kGibi = 1073741824;
constexpr int kRack = 72;  // devices of an NVL72
// A CUDA context takes about half a gigabyte (stas00/ml-engineering). NCCL's
// communicators of a few groups take the rest.
constexpr double kContext = 1 * kGiga;

// A device gets its share of the host. Memory is that of DGX nodes (data
// sheets). The link is PCIe x16, shared by two devices, at 0.8 of 16, 31 and 63
// GB/s (3rd, 4th and 5th generation; stas00). No measurement was found.
void AddHost(Device& device, double memory, double link) {
  device.is_gpu = true;
  device.host_memory = memory;
  device.host_bandwidth = 0.8 * link / 2;
}

// Memory is the amount that the driver gives to programs (PyTorch prints it
// when it runs out). Data sheets: peaks are dense, f32 without tensor cores.
// `matmul` is the share of the peak that training sustains, fitted to published
// steps (tests/bench/planner:fit). The best single products measured are
// higher: 0.87 to 0.94 of the peak on A100, 0.80 on H100
// (stas00/ml-engineering, MAMF tables), before clocks drop. `matmul` times
// `attention` is FlashAttention 2's share of the peak: 0.5 to 0.73 on A100
// (arXiv 2307.08691), 0.35 on H100 (arXiv 2407.08608), reduced by the drop of
// the clocks.
Device V100(int gigabytes) {
  Device device;
  device.name = gigabytes == 16 ? "v100-16-sxm2" : "v100-32-sxm2";
  device.peak = {15.7 * kTera, 0, 125 * kTera, 0};
  device.memory = (gigabytes - 0.25) * kGibi;
  device.context = kContext;
  device.memory_bandwidth = 0.9 * kTera;
  device.units = 80;
  device.l2 = 6 * kMega;
  device.launch = 6 * kMicro;
  device.kernel = 3 * kMicro;
  device.matmul = 0.775;
  device.streaming = 0.8;
  AddHost(device, 64 * kGiga, 16 * kGiga);
  return device;
}

Device A100(int gigabytes) {
  Device device;
  device.name = gigabytes == 40 ? "a100-40-sxm" : "a100-80-sxm";
  device.peak = {19.5 * kTera, 312 * kTera, 312 * kTera, 0};
  device.memory = (gigabytes == 40 ? 39.59 : 79.15) * kGibi;
  device.context = kContext;
  device.memory_bandwidth = gigabytes == 40 ? 1.555 * kTera : 2.039 * kTera;
  device.units = 108;
  device.l2 = 40 * kMega;
  device.launch = 6 * kMicro;
  device.kernel = 3 * kMicro;
  device.matmul = 0.72;
  device.attention = 0.77;
  device.streaming = 0.77;
  AddHost(device, 125 * kGiga, 31 * kGiga);
  return device;
}

Device Hopper(const char* name, double memory, double bandwidth) {
  Device device;
  device.name = name;
  device.context = kContext;
  device.peak = {67 * kTera, 989 * kTera, 989 * kTera, 1979 * kTera};
  device.memory = memory;
  device.memory_bandwidth = bandwidth;
  device.units = 132;
  device.l2 = 50 * kMega;
  device.launch = 5 * kMicro;
  device.kernel = 3 * kMicro;
  device.matmul = 0.563;
  device.attention = 0.56;
  device.streaming = 0.8;
  AddHost(device, 250 * kGiga, 63 * kGiga);
  return device;
}

// The share that training sustains is not published. It is assumed to equal
// that of an H100. `peak` is for 16 bits; fp8 has twice that.
Device Blackwell(const char* name, double memory, double peak) {
  Device device = Hopper(name, memory, 8 * kTera);
  device.peak = {80 * kTera, peak, peak, 2 * peak};
  device.units = 148;
  device.l2 = 126 * kMega;
  return device;
}

// With an Arm processor: its memory, and 450 GB/s each way (data sheets).
Device Grace(Device device, double memory) {
  AddHost(device, memory, 450 * kGiga);
  return device;
}

// The same device under another name. Its links may differ where it is used.
Device Named(Device device, const char* name) {
  device.name = name;
  return device;
}

// One core of an older server, in f32 only. `partita measure` gives better
// numbers.
Device Cpu() {
  Device device;
  device.name = "cpu";
  device.peak = {64 * kGiga, 0, 0, 0};
  device.memory = 8 * kGiga;
  device.memory_bandwidth = 10 * kGiga;
  device.units = 1;
  device.l2 = 16 * kMega;
  device.launch = 1 * kMicro;
  device.kernel = 0;
  device.matmul = 0.8;
  device.streaming = 0.8;
  return device;
}

// Bandwidth per device, one way (data sheets). Efficiencies are from large
// all-reduces of eight devices in nccl-tests: V100 134 of 150 and A100 229 of
// 300 GB/s (vTrain's traces), H100 370 of 450 (stas00, without NVLS). A ring
// step takes 3.4 us (NCCL 2.19, src/graph/tuning.cc).
Level NvLink(int devices, double bandwidth, double efficiency) {
  return {"nvlink", devices, bandwidth, 3.4 * kMicro, efficiency};
}

// A node of four or eight V100 has no switch. A device's six links lead to its
// peers (NVIDIA, "DGX-1 With Tesla V100 System Architecture", hybrid cube
// mesh).
Level Unswitched(Level level) {
  level.switched = false;
  return level;
}

// Bandwidth of a device's own network interfaces. A step takes 14 us (NCCL, as
// above). Rails with one interface per device reach 192 of 200 GB/s per node.
Level Network(const char* name, double bandwidth, double efficiency = 0.96) {
  return {name, 0, bandwidth, 14 * kMicro, efficiency};
}

struct BuiltIn {
  const char* name;
  Device device;
  Level node;
  Level network;
  int devices;      // for the name alone
  Level rack = {};  // between node and network; no name: none
};

std::vector<BuiltIn> BuiltIns() {
  const Level nvlink2 = Unswitched(NvLink(8, 150 * kGiga, 0.89));
  const Level nvlink3 = NvLink(8, 300 * kGiga, 0.76);
  const Level nvlink4 = NvLink(8, 450 * kGiga, 0.82);
  // 124 of 150 GB/s measured.
  const Level nvlink2_of_4 = Unswitched(NvLink(4, 150 * kGiga, 0.83));
  const Level nvlink3_of_4 = NvLink(4, 300 * kGiga, 0.74);  // 221 of 300 GB/s
  const Level hdr = Network("infiniband", 25 * kGiga);
  const Level ndr = Network("infiniband", 50 * kGiga);
  const Device h100 = Hopper("h100-sxm", 79.11 * kGibi, 3.35 * kTera);
  const Device h200 = Hopper("h200-sxm", 139.8 * kGibi, 4.8 * kTera);
  // The 500 W card instead of 700 W, with slower memory (torchtitan's
  // benchmarks). Its peak is not published. It is interpolated by power between
  // the 400 W card (H100 NVL, 835 TFLOP/s) and the 700 W card (989 TFLOP/s).
  Device h100_96 = Hopper("h100-96-sxm", 95 * kGibi, 2.4 * kTera);
  h100_96.peak = {62 * kTera, 886 * kTera, 886 * kTera, 1772 * kTera};
  const Device gh200 =
      Grace(Hopper("gh200", 96 * kGiga, 4 * kTera), 120 * kGiga);
  // Two devices share the 480 GB of a processor.
  const Device gb200 =
      Grace(Blackwell("gb200", 184 * kGiga, 2500 * kTera), 240 * kGiga);
  const Device gb300 =
      Grace(Blackwell("gb300", 288 * kGiga, 2500 * kTera), 240 * kGiga);
  const Device b200 = Blackwell("b200-sxm", 180 * kGiga, 2250 * kTera);
  const Device b300 = Blackwell("b300-sxm", 288 * kGiga, 2250 * kTera);
  const Level nvlink5 = NvLink(8, 900 * kGiga, 0.82);
  const Level nvlink5_of_4 = NvLink(4, 900 * kGiga, 0.82);
  // Only 64 of kRack divide into equal parts.
  Level rack = NvLink(64, 900 * kGiga, 0.82);
  rack.name = "nvlink of a rack";
  const Level xdr = Network("infiniband", 100 * kGiga);
  // Jean Zay: four Omni-Path interfaces of 100 Gbit/s per node. On 16 V100 an
  // all-reduce reached 10.6 of 50 GB/s (stas00). The same share is assumed for
  // its A100 nodes, whose only measurement is of an early, faulty setup.
  // Perlmutter: four interfaces of 200 Gbit/s for four devices. Austral: 88
  // A100, eight per node, assumed to have four of 200 Gbit/s. No measurement of
  // the last two was found.
  return {
      {"v100-16-sxm2", V100(16), nvlink2, Network("infiniband", 6.25 * kGiga),
       8},
      {"v100-32-sxm2", V100(32), nvlink2, Network("infiniband", 6.25 * kGiga),
       8},
      {"a100-40-sxm", A100(40), nvlink3, hdr, 8},
      {"a100-80-sxm", A100(80), nvlink3, hdr, 8},
      {"h100-sxm", h100, nvlink4, ndr, 8},
      {"h100-96-sxm", h100_96, nvlink4, ndr, 8},
      {"h200-sxm", h200, nvlink4, ndr, 8},
      {"a800-80-sxm", Named(A100(80), "a800-80-sxm"),
       NvLink(8, 200 * kGiga, 0.76), hdr, 8},
      {"h800-sxm", Named(h100, "h800-sxm"), NvLink(8, 200 * kGiga, 0.82), ndr,
       8},
      {"b200-sxm", b200, nvlink5, ndr, 8},
      {"b300-sxm", b300, nvlink5, xdr, 8},
      // Alps, with the Slingshot network.
      {"gh200", gh200, NvLink(4, 450 * kGiga, 0.82),
       Network("slingshot", 25 * kGiga), 4},
      {"gb200", gb200, nvlink5_of_4, ndr, 4, rack},
      {"gb300", gb300, nvlink5_of_4, xdr, 4, rack},
      {"dgx-2", V100(32), NvLink(16, 150 * kGiga, 0.89),
       Network("infiniband", 6.25 * kGiga), 16},
      {"selene", A100(80), nvlink3, hdr, 4480},
      {"jean-zay-v100", V100(32), nvlink2_of_4,
       Network("omni-path", 12.5 * kGiga, 0.21), 1024},
      {"jean-zay-a100", A100(80), nvlink3,
       Network("omni-path", 6.25 * kGiga, 0.21), 416},
      {"perlmutter", A100(40), nvlink3_of_4, Network("slingshot", 25 * kGiga),
       6144},
      {"austral", A100(80), nvlink3, Network("slingshot", 12.5 * kGiga), 88},
      {"cpu",
       Cpu(),
       {"memory", 2, 5 * kGiga, 2 * kMicro, 1},
       Network("ethernet", 0.5 * kGiga, 0.9),
       2},
  };
}

Cluster MakeCluster(const BuiltIn& built_in) {
  Cluster cluster;
  cluster.name = built_in.name;
  cluster.device = built_in.device;
  cluster.devices = built_in.devices;
  cluster.levels = {built_in.node, built_in.network};
  if (!built_in.rack.name.empty())
    cluster.levels.insert(cluster.levels.begin() + 1, built_in.rack);
  cluster.levels.back().devices =
      std::max(built_in.devices, built_in.node.devices);
  return cluster;
}

// A parsed "16x name", "16 x name", "2 nodes x name" or "name".
struct Request {
  std::string count;  // empty: not given
  bool nodes = false;
  bool sound = true;
  std::string name;
};

Request ParseRequest(const std::string& text) {
  Request request;
  const size_t digits =
      std::min(text.find_first_not_of("0123456789"), text.size());
  request.count = text.substr(0, digits);
  request.name = plan::Trim(text.substr(digits));
  if (digits == 0) return request;
  for (const char* word : {"nodes", "node"})
    if (!request.nodes && request.name.rfind(word, 0) == 0) {
      request.nodes = true;
      request.name = plan::Trim(request.name.substr(std::string(word).size()));
    }
  request.sound = !request.name.empty() && request.name[0] == 'x';
  if (request.sound) request.name = plan::Trim(request.name.substr(1));
  return request;
}

// Names to suggest: all that contain `found`, or else the nearest one.
std::vector<std::string> NearNames(const std::string& found) {
  std::string core;
  for (char c : found.substr(0, 64))
    if (!core.empty() || std::isalnum(static_cast<unsigned char>(c)))
      core += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::vector<std::string> names = BuiltInNames();
  std::vector<std::string> near;
  for (const std::string& name : names)
    if (core.size() > 1 && name.find(core) != std::string::npos)
      near.push_back(name);
  if (const std::string nearest = plan::Nearest(core, names);
      near.empty() && !nearest.empty())
    near.push_back(nearest);
  return near;
}

Status UnknownCluster(const std::string& text, const Request& request) {
  std::string message =
      "expected a cluster.yaml, a built-in name for one node "
      "('a100-80-sxm'), or one with a number of devices ('16x a100-80-sxm') "
      "or nodes ('2 nodes x a100-80-sxm'), with a name of " +
      plan::Join(BuiltInNames()) + "; found " + plan::Quote(text);
  std::string meant;
  const std::string before =
      request.count.empty() || request.count.size() > 8
          ? ""
          : request.count + (request.nodes ? " nodes x " : "x ");
  for (const std::string& name : NearNames(request.name))
    meant += (meant.empty() ? "'" : " or '") + before + name + "'";
  if (!meant.empty()) message += "; did you mean " + meant + "?";
  return InvalidArgumentError(message);
}

}  // namespace

std::vector<std::string> BuiltInNames() {
  std::vector<std::string> names;
  for (const BuiltIn& built_in : BuiltIns()) names.push_back(built_in.name);
  return names;
}

void DropRack(Cluster& cluster, int devices) {
  std::vector<Level>& levels = cluster.levels;
  if (levels.size() < 3) return;
  if (devices <= kRack)
    levels.pop_back();
  else if (devices % levels[1].devices != 0 ||
           levels[1].devices % levels[0].devices != 0)
    levels.erase(levels.begin() + 1);
}

StatusOr<Cluster> BuiltInCluster(const std::string& text) {
  const Request request = ParseRequest(text);
  for (const BuiltIn& built_in : BuiltIns()) {
    if (!request.sound || (request.name != built_in.name &&
                           request.name + "-sxm" != built_in.name))
      continue;
    Cluster cluster = MakeCluster(built_in);
    if (request.count.empty()) return Resize(cluster, cluster.devices);
    StatusOr<int64_t> count = plan::ParseCount(request.count);
    const int64_t each = request.nodes ? built_in.node.devices : 1;
    if (!count.ok() || *count < 1 || *count > kMostDevices / each)
      return InvalidArgumentError("expected a cluster of 1 to " +
                                  std::to_string(kMostDevices) +
                                  " devices, found " + plan::Quote(text));
    const int devices = static_cast<int>(*count * each);
    DropRack(cluster, devices);
    return Resize(std::move(cluster), devices);
  }
  return UnknownCluster(text, request);
}

}  // namespace partita::planner
