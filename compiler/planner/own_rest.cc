// Gradients on their way to the update: sums, buckets, collectives beside the
// last backward pass, and the update itself, a launch for each parameter.
#include <algorithm>
#include <deque>
#include <vector>

#include "compiler/planner/own_layers.h"
#include "compiler/planner/own_step.h"

namespace partita::planner {
namespace {

using core::CollectiveKind;

class Rest {
 public:
  Rest(const Architecture& a, const Division& d, const Cluster& cluster,
       int rank)
      : a_(a),
        d_(d),
        cluster_(cluster),
        rank_(rank),
        tensor_(ShapeOfStride(cluster, 1, d.tp)),
        data_(ShapeOfStride(cluster, d.tp, d.dp)),
        element_(BytesOf(d.precision)),
        gradient_(d.microbatches() > 1 ? kSumBytes : element_) {}

  OwnRest Run() {
    const bool first = d_.RankOfStage(0) == rank_;
    const bool last = d_.RankOfStage(d_.stages() - 1) == rank_;
    // The gradient of a tied table goes from the last rank to the first one.
    const bool sends = a_.tied && first != last;
    const double table = OwnEmbeddingParameters(a_, d_)[0];
    if (last) Part(OwnHeadParameters(a_, d_), 0);
    if (last && sends) Sum(table);
    if (last) CountTargets();
    // Slices of the batch, counts and losses; of pipelines those that cells
    // wait for.
    const double launches =
        d_.microbatches() > 1 ? d_.microbatches() * cluster_.device.launch : 0;
    if (last) rest_.sums += (d_.pp == 1 ? 5 : 2) * launches;
    rest_.last_sums = rest_.sums;
    const double layer =
        OwnLayer(a_, d_).backward.Time(cluster_, tensor_).total();
    const std::vector<double> parameters = OwnLayerParameters(a_, d_);
    for (int s = d_.stages(); s-- > 0;)
      if (d_.RankOfStage(s) == rank_)
        for (int64_t l = d_.LayersOfStage(a_.layers, s); l-- > 0;)
          Part(parameters, layer);
    const double behind = rest_.sums;
    if (first)
      Part(OwnEmbeddingParameters(a_, d_),
           OwnEmbedding(a_, d_).backward.Time(cluster_, tensor_).total());
    if (first) rest_.sums += launches;
    if (a_.tied && first && last) {
      // Both gradients of the table: the sum over microbatches reads them, too.
      const double bytes = element_ * table;
      const double more = Kernel(3 * bytes) - Kernel(2 * bytes);
      rest_.sums += Kernel(3 * bytes) + (d_.microbatches() - 1) * more;
    }
    rest_.first_sums = rest_.sums - behind;
    rest_.stall = now_ - computed_;
    const double last_sent =
        deferred_.empty() ? Seconds(bucket_bytes_) : Seconds(deferred_.back());
    Pack();
    for (const double bytes : deferred_) Blocking(bytes);
    while (!flights_.empty()) Await();
    rest_.exposed += now_ - computed_;
    if (first && sends) {
      const double reduced = d_.dp > 1 ? std::min(last_sent, rest_.exposed) : 0;
      rest_.table = Kernel(3 * gradient_ * table) + reduced;
      rest_.exposed -= reduced;
    }
    if (d_.sequence_parallel && d_.tp > 1 && d_.dp == 1) SumWhole();
    // The step's number to what corrects the moments.
    rest_.update += 2 * cluster_.device.launch;
    if (d_.zero >= 1 && d_.dp > 1) GatherUpdated();
    if (d_.microbatches() > 1)
      for (const double size : parameters)
        rest_.layer_sum += Kernel((element_ + 2 * kSumBytes) *
                                  (d_.zero >= 2 ? size / d_.dp : size));
    return rest_;
  }

 private:
  // How many targets count, of all devices, whenever a loss is computed.
  void CountTargets() {
    const bool sequence = d_.sequence_parallel && d_.tp > 1;
    if (d_.dp == 1 && !sequence) return;
    const bool again = d_.recompute == Recomputation::kFull;
    const int times = d_.microbatches() == 1 && again ? 2 : 1;
    const GroupShape group = ShapeOfStride(cluster_, sequence ? 1 : d_.tp,
                                           d_.dp * (sequence ? d_.tp : 1));
    rest_.exposed +=
        times * CollectiveTime(cluster_, CollectiveKind::kAllReduce, 8, group);
    rest_.sums += times * cluster_.device.launch;
  }

  // Where tokens are divided, each device has a part of the gradients of norms
  // and of biases behind reductions: one bucket, beside the last functions.
  void SumWhole() {
    double vectors =
        (a_.gated() ? 1 : 2) * (d_.RankOfStage(d_.stages() - 1) == rank_);
    for (int s = 0; s < d_.stages(); ++s)
      if (d_.RankOfStage(s) == rank_)
        vectors += (a_.gated() ? 2 : 6) * d_.LayersOfStage(a_.layers, s);
    const double bytes = gradient_ * static_cast<double>(a_.hidden);
    rest_.packing += Kernel(2 * bytes * vectors) + vectors * Kernel(2 * bytes);
  }

  struct Flight {
    double end = 0, bytes = 0, unpack = 0;
  };

  double Kernel(double bytes) const {
    return std::max(MemoryBoundTime(cluster_.device, bytes),
                    cluster_.device.launch);
  }
  void Compute(double seconds) {
    now_ += seconds;
    computed_ += seconds;
  }

  // Over microbatches, of so many elements.
  void Sum(double size) {
    const double m = d_.microbatches();
    if (m > 1)
      rest_.sums += Kernel((2 * element_ + kSumBytes) * size) +
                    (m - 2) * Kernel((element_ + 2 * kSumBytes) * size);
  }
  // Of these, the last.
  double LastSum(double size) const {
    return d_.microbatches() == 2 ? Kernel((2 * element_ + kSumBytes) * size)
                                  : Kernel((element_ + 2 * kSumBytes) * size);
  }

  void Part(const std::vector<double>& sizes, double backward) {
    fresh_ = fresh_sums_ = 0;
    Compute(backward);
    const double share = d_.zero >= 1 ? d_.dp : 1;
    const double master = element_ < 4 ? element_ : 0;
    for (const double size : sizes) {
      Sum(d_.zero >= 2 ? size / d_.dp : size);
      // Gradient, moments and the f32 value, which three are written.
      rest_.update += std::max(
          UpdateTime(cluster_.device, (gradient_ + 24 + master) * size / share),
          cluster_.device.launch);
      all_.push_back(size);
      if (d_.dp > 1 && d_.zero < 2) Reduce(size);
    }
    if (d_.dp > 1 && d_.zero >= 2) Scatter(sizes);
  }

  // ZeRO-2: a part's gradients together, for each microbatch; small ones are
  // packed, and what sums them cuts them up.
  void Scatter(const std::vector<double>& sizes) {
    double all = 0, packed = 0, unpack = 0;
    int small = 0;
    for (const double size : sizes) {
      const double bytes = element_ * size;
      all += bytes;
      if (bytes >= kBucketBytes) continue;
      ++small;
      packed += bytes;
      unpack += Kernel(2 * bytes / d_.dp);
    }
    const double m = d_.microbatches();
    const double pack = small > 1 ? Kernel(2 * packed) : 0;
    rest_.packing += m * pack + (m == 1 && small > 1 ? unpack : 0);
    Compute(pack);
    if (all + all / d_.dp > kMostInFlight) {
      rest_.exposed += (m - 1) * Seconds(all);
      Blocking(all);
    } else {
      Start(all, 0);
    }
  }

  void Reduce(double size) {
    const double bytes = gradient_ * size;
    if (bytes >= kBucketBytes) {
      if (bytes + bytes / Share() > kMostInFlight)
        deferred_.push_back(bytes);
      else
        Start(bytes, 0);
      return;
    }
    bucket_.push_back(bytes);
    bucket_bytes_ += bytes;
    fresh_ += size;
    fresh_sums_ += LastSum(size);
    if (bucket_bytes_ >= kBucketBytes) Pack();
  }
  double Share() const { return d_.zero >= 1 ? d_.dp : 1; }

  void Pack() {
    if (bucket_.empty()) return;
    double unpack = 0;
    for (const double bytes : bucket_) unpack += Kernel(2 * bytes / Share());
    if (bucket_.size() > 1) {
      // The last sums of the function before it are computed as it is packed.
      double read = 0;
      if (d_.pp == 1 && d_.microbatches() > 1) {
        rest_.sums -= fresh_sums_;
        if (d_.microbatches() > 2) read = element_ * fresh_;
      }
      const double pack = Kernel(2 * bucket_bytes_ + read);
      rest_.packing += pack + unpack;
      Compute(pack);
    } else {
      unpack = 0;
    }
    if (bucket_bytes_ + bucket_bytes_ / Share() > kMostInFlight)
      deferred_.push_back(bucket_bytes_);
    else
      Start(bucket_bytes_, unpack);
    bucket_.clear();
    bucket_bytes_ = fresh_ = fresh_sums_ = 0;
  }

  double Seconds(double bytes) const {
    return CollectiveTime(cluster_,
                          d_.zero >= 1 ? CollectiveKind::kReduceScatter
                                       : CollectiveKind::kAllReduce,
                          bytes, data_);
  }

  void Start(double bytes, double unpack) {
    if (!cluster_.device.overlaps) {
      Blocking(bytes);
      Compute(unpack);
      return;
    }
    const double held = bytes + bytes / Share();
    double in_flight = held;
    for (const Flight& flight : flights_) in_flight += flight.bytes;
    while (!flights_.empty() && in_flight > kMostInFlight) {
      in_flight -= flights_.front().bytes;
      Await();
    }
    link_ = std::max(link_, now_) + Seconds(bytes);
    flights_.push_back({link_, held, unpack});
  }
  void Await() {
    now_ = std::max(now_, flights_.front().end);
    Compute(flights_.front().unpack);
    flights_.pop_front();
  }
  void Blocking(double bytes) {
    now_ = std::max(now_, link_) + Seconds(bytes);
    link_ = now_;
  }

  // ZeRO: what each device updated, to all, in buckets, which are cut up.
  void GatherUpdated() {
    double bucket = 0, cut = 0;
    int members = 0;
    const auto send = [&] {
      if (bucket == 0) return;
      rest_.exposed +=
          CollectiveTime(cluster_, CollectiveKind::kAllGather, bucket, data_);
      if (members > 1) rest_.packing += cut + Kernel(2 * bucket / d_.dp);
      bucket = cut = 0;
      members = 0;
    };
    for (const double size : all_) {
      const double bytes = element_ * size;
      if (bytes >= kBucketBytes) {
        rest_.exposed +=
            CollectiveTime(cluster_, CollectiveKind::kAllGather, bytes, data_);
        continue;
      }
      bucket += bytes;
      cut += Kernel(2 * bytes);
      ++members;
      if (bucket >= kBucketBytes) send();
    }
    send();
  }

  const Architecture& a_;
  const Division& d_;
  const Cluster& cluster_;
  const int rank_;
  const GroupShape tensor_, data_;
  const double element_, gradient_;  // bytes; of a gradient as it is reduced
  double now_ = 0, computed_ = 0, link_ = 0;
  std::deque<Flight> flights_;
  std::vector<double> bucket_, deferred_, all_;
  double bucket_bytes_ = 0;
  // In the bucket, of the function that runs: elements, and seconds of sums.
  double fresh_ = 0, fresh_sums_ = 0;
  OwnRest rest_;
};

}  // namespace

OwnRest OwnRestTime(const Architecture& a, const Division& d,
                    const Cluster& cluster, int rank) {
  return Rest(a, d, cluster, rank).Run();
}

}  // namespace partita::planner
