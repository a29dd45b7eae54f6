// Converts cells to sizes. Published tables word the same value differently
// ("fp16 mixed", "none (recipe default)"), so only the beginning of a cell is
// read.
#include <algorithm>
#include <cctype>
#include <set>

#include "compiler/plan/text.h"
#include "compiler/planner/published/frameworks.h"
#include "compiler/planner/published/software_defaults.h"
#include "compiler/planner/published/sweep.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using core::Precision;

bool Has(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

std::string Lower(std::string text) {
  for (char& c : text) c = std::tolower(static_cast<unsigned char>(c));
  return text;
}

// The number at the beginning of a text. Empty if there is none.
std::string LeadingDigits(const std::string& text) {
  return text.substr(
      0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

// Parses a count. Accepts a zero fraction as tables write it: 8.0.
StatusOr<int64_t> ParseWhole(const std::string& text) {
  const size_t last = text.find_last_not_of('0');
  const bool fraction = last != std::string::npos && last > 0 &&
                        last + 1 < text.size() && text[last] == '.';
  return plan::ParseCount(fraction ? text.substr(0, last) : text);
}

class RowReader {
 public:
  RowReader(const std::vector<std::string>& header, const CsvRow& row)
      : header_(header), row_(row) {}

  SweepRow Read(const std::optional<Cluster>& cluster);

 private:
  std::string Cell(const char* column) const {
    for (size_t i = 0; i < header_.size(); ++i)
      if (header_[i] == column) return plan::Trim(row_.cells[i]);
    return "";
  }
  Status Refuse(const char* column, const char* expected) const {
    return InvalidArgumentError(std::string(column) + ": expected " + expected +
                                ", found " + plan::Quote(Cell(column)));
  }
  // Returns 1, 0, or -1 for an empty cell.
  StatusOr<int> YesNo(const char* column) const;
  // Returns `otherwise` for an empty cell, and notes it as a default if it is
  // above 0.
  StatusOr<int64_t> Count(const char* column, int64_t otherwise);
  // Returns the first error, or refuses the first size that is too large.
  Status CheckSizes(
      std::initializer_list<std::pair<const char*, const StatusOr<int64_t>*>>
          sizes) const;
  Status ReadModel();
  Status ReadExperts();
  Status ReadDivision();
  Status ReadWords();
  std::string SaidFramework() const;
  Status ReadCluster(const std::optional<Cluster>& cluster);
  void Default(const std::string& column, const std::string& value) {
    row_out_.defaults.push_back(column + "=" + value);
  }
  void Problem(const std::string& text) {
    if (row_out_.problem.empty()) row_out_.problem = text;
  }

  const std::vector<std::string>& header_;
  const CsvRow& row_;
  SweepRow row_out_;
};

StatusOr<int64_t> RowReader::Count(const char* column, int64_t otherwise) {
  const std::string cell = Cell(column);
  if (cell.empty()) {
    if (otherwise > 0) Default(column, std::to_string(otherwise));
    return otherwise;
  }
  StatusOr<int64_t> count = ParseWhole(cell);
  if (!count.ok() || *count < 1 || *count > (int64_t{1} << 32))
    return Refuse(column, "a whole number of 1 to 4294967296");
  return count;
}

Status RowReader::CheckSizes(
    std::initializer_list<std::pair<const char*, const StatusOr<int64_t>*>>
        sizes) const {
  for (const auto& [column, value] : sizes) {
    if (!value->ok()) return value->status();
    if (**value > (1 << 24)) return Refuse(column, "at most 16777216");
  }
  return absl::OkStatus();
}

StatusOr<int> RowReader::YesNo(const char* column) const {
  const std::string cell = Lower(Cell(column));
  if (cell.empty()) return -1;
  for (const char* word : {"y", "yes", "true", "1", "1.0"})
    if (cell == word) return 1;
  for (const char* word : {"n", "no", "false", "0", "0.0"})
    if (cell == word) return 0;
  return Refuse(column, "y or n");
}

Status RowReader::ReadModel() {
  Architecture& a = row_out_.architecture;
  const StatusOr<int> swiglu = YesNo("swiglu"), untie = YesNo("untie");
  for (const StatusOr<int>* value : {&swiglu, &untie})
    if (!value->ok()) return value->status();
  const std::string family = Lower(Cell("model_family") + " " + Cell("model"));
  if (Has(family, "t5"))
    a.kind = ModelKind::kT5;
  else if (Has(family, "bert"))
    a.kind = ModelKind::kBert;
  else if (Has(family, "llama") || Has(family, "mixtral") ||
           Has(family, "qwen") || Has(family, "deepseek") || *swiglu == 1)
    a.kind = ModelKind::kLlama;
  a.tied = a.kind != ModelKind::kLlama && !Has(family, "nemotron");
  if (*untie >= 0) a.tied = *untie == 0;
  a.frozen = Has(Lower(Cell("task")), "lora");
  // "24+24" gives the layers of an encoder and of a decoder.
  const std::string layers = Cell("layers");
  const size_t plus = layers.find('+');
  StatusOr<int64_t> count = ParseWhole(layers.substr(0, plus));
  const bool both = plus == std::string::npos ||
                    layers.substr(plus + 1) == layers.substr(0, plus);
  if (layers.empty()) {
    Problem("layers: says nothing");
  } else if (!count.ok() || *count < 1 || !both) {
    return Refuse("layers", "a number, or two equal ones as 24+24");
  } else {
    a.layers = *count;
  }
  struct Field {
    const char* column;
    int64_t* value;
  };
  for (const Field& field :
       {Field{"hidden", &a.hidden}, Field{"heads", &a.heads},
        Field{"seq_len", &a.seq}}) {
    StatusOr<int64_t> value = Count(field.column, 0);
    if (!value.ok()) return value.status();
    if (*value == 0) Problem(std::string(field.column) + ": says nothing");
    *field.value = *value;
  }
  StatusOr<int64_t> ffn = Count("ffn", 4 * a.hidden);
  StatusOr<int64_t> vocab =
      Count("vocab", a.kind == ModelKind::kBert ? 30522 : 50257);
  const std::string kv = Cell("kv_heads");
  StatusOr<int64_t> kv_heads =
      kv.empty() ? a.heads : Count("kv_heads", a.heads);
  for (const StatusOr<int64_t>* value : {&ffn, &vocab, &kv_heads})
    if (!value->ok()) return value->status();
  a.ffn = *ffn;
  a.kv_heads = *kv_heads;
  a.vocab = *vocab;
  // The decoder of NeMo's T5 has a quarter of the encoder's tokens.
  if (a.kind == ModelKind::kT5) {
    a.decoder_seq = std::max<int64_t>(a.seq / 4, 1);
    Default("decoder_seq", std::to_string(a.decoder_seq));
  }
  return absl::OkStatus();
}

Status RowReader::ReadExperts() {
  Architecture& a = row_out_.architecture;
  const auto none = [&](const char* column) {
    const std::string cell = Cell(column);
    return cell.empty() || cell == "0" || cell == "0.0";
  };
  if (none("moe_experts")) {
    if (!none("num_experts"))
      Problem(
          "num_experts: expected moe_experts, of models whose layers all "
          "have experts");
    return absl::OkStatus();
  }
  StatusOr<int64_t> count = Count("moe_experts", 0);
  StatusOr<int64_t> topk = Count("moe_topk", 2);
  StatusOr<int64_t> width = Count("moe_ffn", a.ffn);
  StatusOr<int64_t> beside =
      none("shared_experts") ? 0 : Count("shared_experts", 0);
  StatusOr<int64_t> parts =
      Cell("etp").empty() ? row_out_.division.tp : Count("etp", 1);
  if (Status status = CheckSizes({{"moe_experts", &count},
                                  {"moe_topk", &topk},
                                  {"moe_ffn", &width},
                                  {"shared_experts", &beside},
                                  {"etp", &parts}});
      !status.ok())
    return status;
  a.experts = *count;
  a.topk = *topk;
  a.expert_ffn = *width;
  a.shared_ffn = *beside * *width;
  row_out_.division.etp = static_cast<int>(*parts);
  return absl::OkStatus();
}

Status RowReader::ReadDivision() {
  Division& d = row_out_.division;
  StatusOr<int64_t> tp = Count("tp", 1), pp = Count("pp", 1),
                    cp = Count("cp", 1), ep = Count("ep", 1);
  StatusOr<int64_t> devices = Count("n_gpus", 0), dp = Count("dp", 0),
                    gbs = Count("gbs", 0), mbs = Count("mbs", 0);
  if (Status status = CheckSizes({{"tp", &tp},
                                  {"pp", &pp},
                                  {"cp", &cp},
                                  {"ep", &ep},
                                  {"n_gpus", &devices},
                                  {"dp", &dp},
                                  {"gbs", &gbs},
                                  {"mbs", &mbs}});
      !status.ok())
    return status;
  const double model = double(*tp) * *pp * *cp;
  int64_t replicas = *dp;
  if (replicas == 0) {
    replicas = std::max<int64_t>(1, static_cast<int64_t>(*devices / model));
    Default("dp", std::to_string(replicas));
  }
  if (model * replicas > (1 << 24)) {
    Problem("tp x pp x cp x dp: more than 16777216 devices");
    return absl::OkStatus();
  }
  d.tp = static_cast<int>(*tp);
  d.pp = static_cast<int>(*pp);
  d.cp = static_cast<int>(*cp);
  d.ep = static_cast<int>(*ep);
  d.dp = static_cast<int>(replicas);
  d.devices = static_cast<int>(*devices > 0 ? *devices : model * replicas);
  if (*devices == 0) Default("n_gpus", std::to_string(d.devices));
  d.microbatch = std::max<int64_t>(*mbs, 1);
  row_out_.choose_microbatch = *mbs == 0;
  d.batch = *gbs;
  if (*gbs == 0) Problem("gbs: says nothing");
  const std::string vpp = Cell("vpp");
  const std::string per_stage = "layers_per_virtual_stage=";
  if (vpp.rfind(per_stage, 0) == 0) {
    StatusOr<int64_t> layers = ParseWhole(vpp.substr(per_stage.size()));
    if (!layers.ok() || *layers < 1)
      return Refuse("vpp", "a number of layers of a virtual stage");
    d.vpp = static_cast<int>(std::clamp<int64_t>(
        row_out_.architecture.layers / *layers / d.pp, 1, 1 << 16));
    return absl::OkStatus();
  }
  // torchtitan's interleaved schedules have two stages per rank by default.
  const bool interleaved = Has(Lower(Cell("framework")), "torchtitan") &&
                           Lower(Cell("schedule")).rfind("interleaved", 0) == 0;
  StatusOr<int64_t> stages = Count("vpp", interleaved ? 2 : 1);
  if (!stages.ok()) return stages.status();
  d.vpp = d.pp == 1 ? 1 : static_cast<int>(std::min<int64_t>(*stages, 1 << 16));
  return absl::OkStatus();
}

// The framework, with the options that other columns describe.
std::string RowReader::SaidFramework() const {
  std::string framework = Cell("framework");
  const std::string words = Lower(framework), notes = Lower(Cell("notes"));
  const std::string precision = Lower(Cell("precision"));
  if (Has(words, "deepspeed") && !Has(words, "zero-3")) {
    if (Has(precision, "fp32 grad")) framework += ", f32 gradients";
    if (Has(Lower(Cell("inter_node")), "jean zay"))
      framework += ", blocking launches";
  }
  // Both asynchronous tensor parallelism and fp8 need a compiler.
  if ((Has(words, "torchtitan") || Has(words, "fsdp2")) &&
      !Has(words, "compile") && !Has(notes, "compile") &&
      !Has(notes, "async") && !Has(precision, "fp8") &&
      !Has(precision, "float8"))
    framework += ", eager";
  return framework;
}

Status RowReader::ReadWords() {
  Division& d = row_out_.division;
  const StatusOr<int> sp = YesNo("sp");
  if (!sp.ok()) return sp.status();
  if (*sp < 0) Default("sp", d.tp > 1 ? "y" : "n");
  d.sequence_parallel = *sp < 0 ? d.tp > 1 : *sp == 1;
  const std::string recompute = Lower(Cell("recompute"));
  if (recompute.rfind("full", 0) == 0)
    d.recompute = Recomputation::kFull;
  else if (recompute.rfind("selective", 0) == 0)
    d.recompute = Recomputation::kSelective;
  else if (recompute.empty())
    Default("recompute", "none");
  else if (recompute.rfind("n", 0) != 0)
    return Refuse("recompute", "none, selective or full");
  const std::string zero = Lower(Cell("zero_stage"));
  if (zero.empty())
    Default("zero_stage", "0");
  else if (zero.rfind("fsdp", 0) == 0 || zero.rfind("hsdp", 0) == 0)
    d.zero = 3;
  else if (LeadingDigits(zero).size() == 1 && zero[0] <= '3')
    d.zero = zero[0] - '0';
  else
    return Refuse("zero_stage", "0 to 3");
  const std::string precision = Lower(Cell("precision"));
  if (Has(precision, "fp8") || Has(precision, "float8"))
    d.precision = Precision::kF8;
  else if (Has(precision, "16"))
    d.precision = (Has(precision, "bf16") || Has(precision, "bfloat16")) &&
                          !Has(precision, "fp16")
                      ? Precision::kBF16
                      : Precision::kF16;
  else if (precision == "f32" || precision == "fp32" || precision == "float32")
    d.precision = Precision::kF32;
  else if (precision.empty())
    Default("precision", "bf16");
  else
    return Refuse("precision", "f32, bf16, fp16 or fp8");
  const std::string framework = SaidFramework();
  row_out_.software = FindSoftware(framework);
  if (framework.empty()) Default("framework", "partita");
  if (framework.empty() && !Cell("schedule").empty())
    return Refuse("schedule",
                  "a framework beside it; Partita's own schedule is chosen, or "
                  "set with --fix schedule=");
  if (row_out_.software != nullptr && !Cell("task").empty() &&
      Lower(Cell("task")) != "pretrain")
    row_out_.architecture.packed = row_out_.software->packed_sample;
  if (row_out_.software == nullptr) {
    // The framework that most others are compared with.
    constexpr char kUsual[] = "megatron-core";
    row_out_.software = &SoftwareOf(kUsual);
    row_out_.other_framework = framework;
    Default("framework", kUsual);
  }
  return absl::OkStatus();
}

// Matches "V100-16GB" or the name of a built-in, but not "640GB" or "16 GPUs".
bool HasMemory(const std::string& name, const std::string& gigabytes) {
  for (const char* before : {"-", " ", "_", "("})
    for (const char* after : {"gb", " gb", "g ", "-sxm"})
      if (Has(name, (before + gigabytes + after).c_str())) return true;
  return false;
}

// True if the name contains the device's name as a word: "a1000" does not
// contain "a100".
bool HasDevice(const std::string& name, const std::string& device) {
  for (size_t at = name.find(device); at != std::string::npos;
       at = name.find(device, at + 1)) {
    const size_t end = at + device.size();
    if (end == name.size() ||
        !std::isdigit(static_cast<unsigned char>(name[end])))
      return true;
  }
  return false;
}

// Name of the built-in device for "A100-80GB-SXM (DGX SuperPOD)" and the like.
std::string DeviceName(const std::string& gpu) {
  const std::string name = Lower(gpu);
  if (HasDevice(name, "v100"))
    return Has(name, "dgx-2")      ? "dgx-2"
           : HasMemory(name, "16") ? "v100-16-sxm2"
                                   : "v100-32-sxm2";
  if (HasDevice(name, "a100"))
    return HasMemory(name, "40") ? "a100-40-sxm" : "a100-80-sxm";
  // Longer names come before the names they contain.
  for (const char* own : {"gb300", "gb200", "gh200"})
    if (HasDevice(name, own)) return own;
  if (HasDevice(name, "h100") && Has(name, "96")) return "h100-96-sxm";
  for (const char* own : {"h100", "h200", "h800", "b200", "b300"})
    if (HasDevice(name, own)) return own + std::string("-sxm");
  return HasDevice(name, "a800") ? "a800-80-sxm" : name;
}

// Bytes/s per node for "8x HDR 200 Gbps", "RoCE 1600 Gbps per node", "8x
// NDR400" or "400 Gb/s per GPU". 0 if the text does not say.
double NodeBandwidth(const std::string& network, int64_t devices) {
  const std::string words = Lower(network);
  const bool each = Has(words, "per gpu") || Has(words, "/gpu");
  double ports = each ? double(devices) : 1, rate = 0;
  for (size_t i = 0; i < network.size();) {
    const std::string digits = LeadingDigits(network.substr(i));
    if (digits.empty()) {
      ++i;
      continue;
    }
    const double number = digits.size() < 7 ? std::stod(digits) : 0;
    i += digits.size();
    if (i < network.size() && network[i] == 'x')
      ports = number;
    else if (rate == 0 && number >= 10)
      rate = number;
  }
  return ports * rate * 1e9 / 8;
}

Status RowReader::ReadCluster(const std::optional<Cluster>& cluster) {
  const int devices = row_out_.division.devices;
  std::string gpu = Cell("gpu");
  if (cluster) {
    row_out_.cluster = *cluster;
    if (gpu.empty()) return absl::OkStatus();
    const StatusOr<Cluster> named = BuiltInCluster(DeviceName(gpu));
    if (!named.ok() || named->device.name != cluster->device.name)
      row_out_.other_gpu = gpu;
    return absl::OkStatus();
  }
  if (gpu.empty()) gpu = "a100-80-sxm";
  // 32 nodes are more than a rack, so all levels are present.
  StatusOr<Cluster> known = BuiltInCluster("32 nodes x " + DeviceName(gpu));
  if (!known.ok()) {
    Problem("gpu: expected one of " + plan::Join(BuiltInNames()) + ", found " +
            plan::Quote(gpu));
    return absl::OkStatus();
  }
  // If the cell has other words, note the device that was assumed.
  if (Cell("gpu") != known->device.name) Default("gpu", known->device.name);
  StatusOr<int64_t> per_node =
      Count("gpus_per_node", known->devices_per_node());
  if (!per_node.ok()) return per_node.status();
  if (*per_node > (1 << 16)) return Refuse("gpus_per_node", "at most 65536");
  Cluster& own = row_out_.cluster;
  own = *std::move(known);
  const std::string network = Cell("inter_node");
  const double bandwidth = NodeBandwidth(network, *per_node);
  if (bandwidth > 0) own.levels.back().bandwidth = bandwidth / *per_node;
  if (Has(Lower(network), "omni-path"))
    own.levels.back().efficiency =
        BuiltInCluster("jean-zay-a100")->levels.back().efficiency;
  own.levels.front().devices = static_cast<int>(*per_node);
  // More than eight V100 need a switch (DGX-2).
  if (*per_node > 8) own.levels.front().switched = true;
  const int nodes = static_cast<int>((devices + *per_node - 1) / *per_node);
  own.devices = static_cast<int>(std::max(nodes, 1) * *per_node);
  DropRack(own, own.devices);
  own.levels.back().devices = own.devices;
  return absl::OkStatus();
}

SweepRow RowReader::Read(const std::optional<Cluster>& cluster) {
  row_out_.line = row_.line;
  row_out_.software = &SoftwareOf("");
  // Each reader uses what the previous ones found.
  for (Status (RowReader::*read)() :
       {&RowReader::ReadModel, &RowReader::ReadDivision,
        &RowReader::ReadExperts, &RowReader::ReadWords})
    if (Status status = (this->*read)(); !status.ok())
      Problem(std::string(status.message()));
  if (Status status = ReadCluster(cluster); !status.ok())
    Problem(std::string(status.message()));
  ApplySoftwareDefaults(row_out_);
  if (Division& d = row_out_.division; d.tp > 1) {
    // Pad the vocabulary as Megatron does: equal parts in multiples of 128.
    const int64_t part = int64_t{128} * d.tp;
    int64_t& vocab = row_out_.architecture.vocab;
    vocab = (vocab + part - 1) / part * part;
  }
  return row_out_;
}

}  // namespace

StatusOr<std::vector<SweepRow>> ReadSweep(
    const std::vector<CsvRow>& table, const std::string& name,
    const std::optional<Cluster>& cluster) {
  if (table.empty())
    return InvalidArgumentError(name +
                                ": expected a row of columns' names, "
                                "found nothing");
  std::vector<std::string> header;
  for (const std::string& cell : table[0].cells)
    header.push_back(plan::Trim(cell));
  std::set<std::string> seen;
  for (const std::string& column : header)
    if (!column.empty() && !seen.insert(column).second)
      return InvalidArgumentError(name + ":" + std::to_string(table[0].line) +
                                  ": column " + plan::Quote(column) +
                                  " is there twice");
  for (const char* column : {"layers", "hidden", "heads", "seq_len", "gbs"})
    if (!seen.count(column))
      return InvalidArgumentError(
          name + ":" + std::to_string(table[0].line) + ": expected a column '" +
          column + "', found " + plan::Join(header).substr(0, 200) +
          (header.size() == 1 && Has(header[0], ";")
               ? "; cells are separated by commas"
               : ""));
  std::vector<SweepRow> rows;
  for (size_t i = 1; i < table.size(); ++i) {
    rows.push_back(RowReader(header, table[i]).Read(cluster));
  }
  return rows;
}

}  // namespace partita::planner
