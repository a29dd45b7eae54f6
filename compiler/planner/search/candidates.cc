// Enumerates the search space with nested loops over the parts of a division.
#include "compiler/planner/search/candidates.h"

#include <algorithm>

namespace partita::planner {
namespace {

// Upper bound on sequences per microbatch. Larger ones gain nothing.
constexpr int64_t kLargestMicrobatch = 64;
// Upper bound on stages per rank. Models of few layers try all numbers up to
// it, other models only divisors of their layers.
constexpr int kMostChunks = 12;
constexpr int64_t kFewLayers = 12;

template <typename Visit>
void ForEachDivisor(int64_t whole, int64_t most, const Visit& visit) {
  for (int64_t part = 1; part <= std::min(whole, most); ++part)
    if (whole % part == 0) visit(part);
}

class Enumeration {
 public:
  Enumeration(const Request& request,
              const std::function<bool(const Division&)>& visit)
      : request_(request),
        a_(request.architecture),
        fixed_(request.fixed),
        visit_(visit) {}

  void Meshes();

 private:
  template <typename T, typename U>
  static bool Allows(const std::optional<T>& fixed, U value) {
    return !fixed || *fixed == static_cast<T>(value);
  }
  void Experts(Division d);
  void Pipelines(Division d);
  void Microbatches(Division d);
  void States(Division d);
  bool HostHolds(Division d) const;

  const Request& request_;
  const Architecture& a_;
  const FixedChoices& fixed_;
  const std::function<bool(const Division&)>& visit_;
  bool stopped_ = false;
};

void Enumeration::Meshes() {
  const int64_t devices = request_.cluster.devices;
  Division d;
  d.devices = static_cast<int>(devices);
  d.batch = request_.batch;
  d.precision = request_.precision;
  ForEachDivisor(devices, a_.heads, [&](int64_t tp) {
    if (stopped_ || a_.heads % tp != 0 || a_.ffn % tp != 0 ||
        !Allows(fixed_.tp, tp))
      return;
    d.tp = static_cast<int>(tp);
    ForEachDivisor(devices / tp, a_.layers, [&](int64_t pp) {
      if (stopped_ || !Allows(fixed_.pp, pp)) return;
      if (a_.kind == ModelKind::kT5 && pp > 1) return;
      d.pp = static_cast<int>(pp);
      ForEachDivisor(devices / tp / pp, a_.seq, [&](int64_t cp) {
        const int64_t dp = devices / tp / pp / cp;
        if (stopped_ || a_.seq % cp != 0 || request_.batch % dp != 0) return;
        if (!Allows(fixed_.cp, cp) || !Allows(fixed_.dp, dp)) return;
        d.cp = static_cast<int>(cp);
        d.dp = static_cast<int>(dp);
        Experts(d);
      });
    });
  });
}

// Divides the experts over a part of the batch's devices. The tensor axis
// divides the experts' widths or the experts.
void Enumeration::Experts(Division d) {
  if (a_.experts == 0) {
    if (Allows(fixed_.ep, 1)) Pipelines(d);
    return;
  }
  for (int over_data = 1; over_data <= d.dp; ++over_data) {
    if (d.dp % over_data != 0) continue;
    for (const bool widths : {true, false}) {
      if (!widths && d.tp == 1) continue;
      d.ep = over_data * (widths ? 1 : d.tp);
      d.etp = widths ? d.tp : 1;
      if (stopped_ || a_.experts % d.ep != 0 || a_.expert_ffn % d.etp != 0 ||
          !Allows(fixed_.ep, d.ep))
        continue;
      Pipelines(d);
    }
  }
}

void Enumeration::Pipelines(Division d) {
  if (d.pp == 1) {
    if (Allows(fixed_.vpp, 1)) Microbatches(d);
    return;
  }
  for (PipelineSchedule schedule : fixed_.schedules) {
    d.schedule = schedule;
    const int least = schedule == PipelineSchedule::kZbV ? 2 : 1;
    const int most = schedule == PipelineSchedule::k1F1B ? kMostChunks : least;
    for (d.vpp = least; d.vpp <= most && d.stages() <= a_.layers; ++d.vpp)
      if (Allows(fixed_.vpp, d.vpp) &&
          (d.vpp == least || a_.layers <= kFewLayers ||
           a_.layers % d.stages() == 0))
        Microbatches(d);
  }
}

void Enumeration::Microbatches(Division d) {
  ForEachDivisor(d.batch / d.dp, kLargestMicrobatch, [&](int64_t microbatch) {
    if (stopped_ || !Allows(fixed_.microbatch, microbatch)) return;
    d.microbatch = microbatch;
    States(d);
  });
}

void Enumeration::States(Division d) {
  // ZeRO divides over the axes of B. With dp 1 there are none.
  const int most_zero = d.dp == 1 ? 0 : 3;
  const int first_zero = fixed_.zero.value_or(0);
  if (first_zero > most_zero) return;
  d.zero = first_zero;
  // CheckDivision does not depend on the choices below.
  if (!CheckDivision(a_, d).ok()) return;
  // Simpler divisions come first. They win ties.
  for (d.zero = first_zero; d.zero <= fixed_.zero.value_or(most_zero);
       ++d.zero) {
    const bool host = HostHolds(d);
    for (bool sequence_parallel : {false, true}) {
      if (sequence_parallel && d.tp == 1) continue;
      if (!Allows(fixed_.sequence_parallel, sequence_parallel) && d.tp > 1)
        continue;
      d.sequence_parallel = sequence_parallel;
      for (Recomputation recompute :
           {Recomputation::kSelective, Recomputation::kNone,
            Recomputation::kFull}) {
        if (!Allows(fixed_.recompute, recompute)) continue;
        d.recompute = recompute;
        for (bool offload : {false, true}) {
          d.offload = offload;
          if (stopped_ || !Allows(fixed_.offload, offload)) continue;
          if (!offload || host) stopped_ = !visit_(d);
        }
      }
    }
  }
}

bool Enumeration::HostHolds(Division d) const {
  d.offload = true;
  const Device& device = request_.cluster.device;
  return device.host_bandwidth > 0 &&
         HostBytes(a_, d, *request_.software) <= device.host_memory;
}

}  // namespace

void ForEachDivision(const Request& request,
                     const std::function<bool(const Division&)>& visit) {
  Enumeration(request, visit).Meshes();
}

absl::Status CheckFixed(const Request& request) {
  const FixedChoices& fixed = request.fixed;
  const Architecture& a = request.architecture;
  const int64_t devices = request.cluster.devices;
  const auto refuse = [](const std::string& name, int64_t found,
                         const std::string& expected) {
    return absl::InvalidArgumentError("--fix " + name + ": expected " +
                                      expected + ", found " +
                                      std::to_string(found));
  };
  struct Part {
    const char* name;
    const std::optional<int>& fixed;
    std::vector<std::pair<int64_t, const char*>>
        wholes;  // sizes that it must divide
  };
  for (const Part& part :
       {Part{"tp", fixed.tp, {{a.heads, "heads"}, {a.ffn, "ffn"}}},
        Part{"pp", fixed.pp, {}},
        Part{"dp", fixed.dp, {{request.batch, "sequences of the batch"}}},
        Part{"cp", fixed.cp, {{a.seq, "tokens of a sequence"}}}}) {
    if (!part.fixed) continue;
    if (*part.fixed < 1 || *part.fixed > devices)
      return refuse(part.name, *part.fixed,
                    "1 to the " + std::to_string(devices) + " devices");
    for (const auto& [whole, of] : part.wholes)
      if (whole % *part.fixed != 0)
        return refuse(part.name, *part.fixed,
                      "a divisor of the " + std::to_string(whole) + " " + of);
  }
  const bool t5 = a.kind == ModelKind::kT5;
  if (fixed.pp && (*fixed.pp > a.layers || (t5 && *fixed.pp > 1)))
    return refuse("pp", *fixed.pp,
                  t5 ? "1, as a T5 is not divided into stages"
                     : "at most the " + std::to_string(a.layers) + " layers");
  if (fixed.ep && (*fixed.ep < 1 || *fixed.ep > devices ||
                   (a.experts == 0 && *fixed.ep > 1) ||
                   (a.experts > 0 && a.experts % *fixed.ep != 0)))
    return refuse("ep", *fixed.ep,
                  a.experts == 0
                      ? "1 of a model without experts"
                      : "a divisor of the " + std::to_string(a.experts) +
                            " experts, and at most the " +
                            std::to_string(devices) + " devices");
  if (fixed.vpp && (*fixed.vpp < 1 || *fixed.vpp > kMostChunks))
    return refuse("vpp", *fixed.vpp, "1 to " + std::to_string(kMostChunks));
  if (fixed.zero && (*fixed.zero < 0 || *fixed.zero > 3))
    return refuse("zero", *fixed.zero, "0 to 3");
  const int64_t of_layers = int64_t{fixed.tp.value_or(1)} *
                            fixed.pp.value_or(1) * fixed.cp.value_or(1);
  if (fixed.zero.value_or(0) > 0 &&
      (fixed.dp.value_or(2) == 1 || of_layers == devices))
    return refuse("zero", *fixed.zero,
                  "0 with dp=1, as ZeRO divides states over the devices that "
                  "divide the batch");
  if (fixed.microbatch &&
      (*fixed.microbatch < 1 || *fixed.microbatch > kLargestMicrobatch ||
       request.batch % *fixed.microbatch != 0))
    return refuse("mbs", *fixed.microbatch,
                  "a divisor of the batch's " + std::to_string(request.batch) +
                      " sequences, " + std::to_string(kLargestMicrobatch) +
                      " at most");
  return absl::OkStatus();
}

std::string Describe(const FixedChoices& fixed) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + std::string(name) + "=" + value;
  };
  const std::pair<const char*, const std::optional<int>&> sizes[] = {
      {"tp", fixed.tp},    {"pp", fixed.pp}, {"dp", fixed.dp},
      {"cp", fixed.cp},    {"ep", fixed.ep}, {"vpp", fixed.vpp},
      {"zero", fixed.zero}};
  for (const auto& [name, value] : sizes)
    if (value) add(name, std::to_string(*value));
  if (fixed.microbatch) add("mbs", std::to_string(*fixed.microbatch));
  const std::pair<const char*, const std::optional<bool>&> flags[] = {
      {"sp", fixed.sequence_parallel}, {"offload", fixed.offload}};
  for (const auto& [name, value] : flags)
    if (value) add(name, *value ? "y" : "n");
  if (fixed.recompute) add("recompute", ToString(*fixed.recompute));
  if (fixed.schedules.size() == 1)
    add("schedule", ToString(fixed.schedules[0]));
  return text;
}

int64_t DevicesOfFixed(const Request& request) {
  const FixedChoices& fixed = request.fixed;
  const Architecture& a = request.architecture;
  const int64_t tp = fixed.tp.value_or(1), pp = fixed.pp.value_or(1),
                dp = fixed.dp.value_or(1), cp = fixed.cp.value_or(1),
                vpp = fixed.vpp.value_or(1),
                microbatch = fixed.microbatch.value_or(1);
  for (int64_t each : {tp, pp, dp, cp, vpp, microbatch})
    if (each < 1) return 0;
  const bool together = a.heads % tp == 0 && a.ffn % tp == 0 &&
                        pp <= a.layers && vpp <= a.layers / pp &&
                        a.seq % cp == 0 && request.batch % dp == 0 &&
                        request.batch / dp % microbatch == 0;
  return together ? tp * pp * dp * cp : 0;
}

int64_t CellsOf(const Division& d) {
  if (d.pp == 1) return 1;
  const int64_t shown = std::min<int64_t>(d.microbatches(), 8 * d.pp);
  return 2 * shown * d.stages();
}

}  // namespace partita::planner
