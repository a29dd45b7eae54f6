// The order in which samples are drawn.
#ifndef PARTITA_RUNTIME_DATA_ORDER_H_
#define PARTITA_RUNTIME_DATA_ORDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace partita::data {

// A permutation of [0, count) that is computed, not stored: a Feistel network
// of six rounds over the smallest even number of bits that holds count - 1. Its
// round function is base::RandomWord. It is applied repeatedly until the value
// is below count (fewer than four times on average; Black and Rogaway, "Ciphers
// with Arbitrary Finite Domains", 2002).
class Permutation {
 public:
  // count >= 1.
  Permutation(int64_t count, uint64_t key);
  int64_t operator()(int64_t index) const;

 private:
  uint64_t Encrypt(uint64_t value) const;

  uint64_t count_;
  uint64_t key_;
  int half_bits_ = 1;
};

struct OrderOptions {
  bool shuffle = true;  // else first to last, in every epoch
  uint64_t seed = 0;    // of the shuffling
  int64_t epochs = 0;   // 0: unbounded
};

// A position in a sequence of epochs, each of which has every sample once.
// Samples at the end of an epoch that do not fill a batch are left out.
class Order {
 public:
  // States include `kind` and `data`, which describe the samples, so that a
  // state of different data is refused. count >= 1.
  Order(std::string kind, std::string data, int64_t count,
        const OrderOptions& options);

  // Ensures that a whole batch of samples follows, in the next epoch if
  // necessary. OutOfRange after the last epoch.
  absl::Status Begin(int64_t batch);
  // Since Begin: the sample in a row of the batch, and the epoch.
  int64_t Sample(int64_t row) const;
  int64_t epoch() const { return epoch_; }
  // Call after a batch was read.
  void Finish(int64_t batch) { position_ += batch; }

  std::string State() const;
  absl::Status Restore(const std::string& state);

 private:
  void MoveTo(int64_t epoch, int64_t position);

  const std::string kind_;
  const std::string data_;
  const int64_t count_;
  const OrderOptions options_;
  int64_t epoch_ = 0;
  int64_t position_ = 0;  // samples drawn in this epoch
  Permutation permutation_;
};

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_ORDER_H_
