// Makes one program per table. Its operations are the combinations of the
// table's sizes.
#include "compiler/measure/measure.h"

#include <cmath>
#include <utility>

#include "compiler/measure/probe_program.h"
#include "runtime/base/status_macros.h"

namespace partita::measure {
namespace {

using planner::ConvKind;
using planner::ProductForm;
using planner::RateTable;
using program::CollectiveKind;
using program::ConvDirection;
using program::DType;

DType DTypeOf(core::Precision precision) {
  if (precision == core::Precision::kBF16) return DType::bf16;
  return precision == core::Precision::kF16 ? DType::f16 : DType::f32;
}

// A table whose cells are operations of one program.
struct Probe {
  std::string name;
  RateTable table;                  // with sizes, without rates
  std::vector<std::string> labels;  // a cell's operation
  std::vector<double> amounts;      // FLOP or bytes of it
  std::function<absl::Status(const std::string& path)> write;
};

class Measurer {
 public:
  explicit Measurer(const MeasureOptions& options) : options_(options) {}

  absl::StatusOr<planner::RateTables> Run();

 private:
  std::vector<double> Sizes(std::vector<double> sizes) const {
    if (options_.small && sizes.size() > 2) sizes.resize(2);
    return sizes;
  }
  Probe Products(core::Precision precision, ProductForm form) const;
  Probe Convolutions(ConvDirection direction, ConvKind kind) const;
  Probe Collectives(CollectiveKind kind, int group) const;
  absl::Status MeasureProbe(Probe probe);
  absl::Status MeasureMessages();

  const MeasureOptions& options_;
  planner::RateTables tables_;
};

Probe Measurer::Products(core::Precision precision, ProductForm form) const {
  // Rows that are a power of two apart share sets of caches. Models have other
  // sizes beside those, so both are measured.
  const std::vector<double> sizes =
      Sizes({8, 32, 128, 384, 512, 768, 1536, 2048, 3072});
  std::vector<double> rows = sizes;
  if (form == ProductForm::kPacked || form == ProductForm::kPlain)
    rows.insert(rows.begin(), 1);
  Probe probe;
  probe.name = planner::ProductName(core::ToString(precision), form);
  probe.table.sizes = {rows, sizes, sizes};
  auto program =
      std::make_shared<ProbeProgram>(DTypeOf(precision), options_.devices, 1);
  for (const double m : rows)
    for (const double n : sizes)
      for (const double k : sizes) {
        probe.labels.push_back(program->AddProduct(
            form, static_cast<int64_t>(m), static_cast<int64_t>(n),
            static_cast<int64_t>(k)));
        probe.amounts.push_back(2 * m * n * k);
      }
  probe.write = [program](const std::string& path) {
    return program->Write(path);
  };
  return probe;
}

Probe Measurer::Convolutions(ConvDirection direction, ConvKind kind) const {
  Probe probe;
  probe.name =
      planner::ConvName("f32", program::EnumNameConvDirection(direction), kind);
  const bool depthwise = kind == ConvKind::kDepthwise;
  const std::vector<double> channels = Sizes({32, 128, 512}),
                            sides = Sizes({7, 14, 28, 56, 112});
  probe.table.sizes.assign(depthwise ? 1 : 2, channels);
  std::vector<double>& places = probe.table.sizes.emplace_back();
  for (const double side : sides) places.push_back(side * side);
  auto program =
      std::make_shared<ProbeProgram>(DType::f32, options_.devices, 1);
  const double window = kind == ConvKind::kPointwise ? 1 : 9;
  for (const double in : channels)
    for (const double out : depthwise ? std::vector{in} : channels)
      for (const double side : sides) {
        probe.labels.push_back(program->AddConvolution(
            direction, kind, static_cast<int64_t>(in),
            static_cast<int64_t>(out), static_cast<int64_t>(side)));
        probe.amounts.push_back(2 * side * side * (depthwise ? 1 : in) * out *
                                window);
      }
  probe.write = [program](const std::string& path) {
    return program->Write(path);
  };
  return probe;
}

Probe Measurer::Collectives(CollectiveKind kind, int group) const {
  Probe probe;
  probe.name =
      planner::CollectiveName(program::EnumNameCollectiveKind(kind), group);
  probe.table.sizes.emplace_back();
  auto program =
      std::make_shared<ProbeProgram>(DType::f32, options_.devices, group);
  for (const double elements :
       Sizes({1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 23})) {
    int64_t count = static_cast<int64_t>(elements);
    probe.labels.push_back(program->AddCollective(kind, count));
    const double bytes = 4.0 * static_cast<double>(count);
    probe.table.sizes[0].push_back(bytes);
    probe.amounts.push_back(bytes);
  }
  probe.write = [program](const std::string& path) {
    return program->Write(path);
  };
  return probe;
}

absl::Status Measurer::MeasureProbe(Probe probe) {
  const std::string path = options_.folder + "/probe.partita";
  PARTITA_RETURN_IF_ERROR(probe.write(path));
  PARTITA_ASSIGN_OR_RETURN(const ProfileTimes times, options_.run(path));
  for (size_t i = 0; i < probe.labels.size(); ++i) {
    PARTITA_ASSIGN_OR_RETURN(const double seconds,
                             times.Seconds(probe.labels[i]));
    // A clock that has not advanced counts as a nanosecond.
    probe.table.rates.push_back(
        Rounded(probe.amounts[i] / std::max(seconds, 1e-9)));
  }
  tables_[probe.name] = std::move(probe.table);
  return absl::OkStatus();
}

absl::Status Measurer::MeasureMessages() {
  std::vector<int64_t> elements = {1 << 10, 1 << 14, 1 << 18, 1 << 22};
  if (options_.small) elements.resize(2);
  const PingPong program(elements);
  const std::string path = options_.folder + "/probe.partita";
  PARTITA_RETURN_IF_ERROR(program.Write(path));
  PARTITA_ASSIGN_OR_RETURN(const ProfileTimes times, options_.run(path));
  RateTable table;
  table.sizes.emplace_back();
  for (size_t i = 0; i < elements.size(); ++i) {
    PARTITA_ASSIGN_OR_RETURN(const double sent,
                             times.Seconds(program.sends[i]));
    PARTITA_ASSIGN_OR_RETURN(const double received,
                             times.Seconds(program.receives[i]));
    const double bytes = 4.0 * static_cast<double>(elements[i]);
    table.sizes[0].push_back(bytes);
    // The message goes to the other device and back.
    table.rates.push_back(Rounded(2 * bytes / std::max(sent + received, 1e-9)));
  }
  tables_[planner::kSendName] = std::move(table);
  return absl::OkStatus();
}

absl::StatusOr<planner::RateTables> Measurer::Run() {
  std::vector<Probe> probes;
  for (const core::Precision precision : options_.precisions)
    for (const ProductForm form :
         {ProductForm::kPlain, ProductForm::kRhsTransposed,
          ProductForm::kLhsTransposed, ProductForm::kPacked})
      probes.push_back(Products(precision, form));
  for (const ConvDirection direction :
       {ConvDirection::forward, ConvDirection::input_grad,
        ConvDirection::weight_grad})
    for (const ConvKind kind :
         {ConvKind::kPointwise, ConvKind::kWindow, ConvKind::kDepthwise})
      probes.push_back(Convolutions(direction, kind));
  for (int group = 2; group <= options_.devices; group *= 2)
    if (options_.devices % group == 0)
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather,
            CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
            CollectiveKind::exchange})
        probes.push_back(Collectives(kind, group));
  const bool sends = options_.devices > 1;
  const int count = static_cast<int>(probes.size()) + (sends ? 1 : 0);
  for (size_t i = 0; i < probes.size(); ++i) {
    options_.progress(probes[i].name, static_cast<int>(i) + 1, count);
    PARTITA_RETURN_IF_ERROR(MeasureProbe(std::move(probes[i])));
  }
  if (sends) {
    options_.progress(planner::kSendName, count, count);
    PARTITA_RETURN_IF_ERROR(MeasureMessages());
  }
  return std::move(tables_);
}

}  // namespace

double Rounded(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
  return std::round(value / unit) * unit;
}

absl::StatusOr<planner::RateTables> MeasureTables(
    const MeasureOptions& options) {
  return Measurer(options).Run();
}

}  // namespace partita::measure
