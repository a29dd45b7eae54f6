// The order in which samples are drawn.
#ifndef PARTITA_RUNTIME_DATA_ORDER_H_
#define PARTITA_RUNTIME_DATA_ORDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace partita::data {

// A permutation of [0, count) that is computed, not stored: a Feistel network
// of six rounds over the smallest even number of bits that holds count - 1,
// whose round function is base::RandomWord, walked along its cycle until the
// value lies below count (fewer than four steps on average; Black and Rogaway,
// "Ciphers with Arbitrary Finite Domains", 2002).
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
  bool shuffle = true;  // Else first to last, in every epoch.
  uint64_t seed = 0;    // Of the shuffling.
  int64_t epochs = 0;   // 0: without end.
};

// A position in a sequence of epochs, each of which has every sample once. What
// remains at the end of an epoch and does not fill a batch is left out.
class Order {
 public:
  // `kind` and `data` say in states what is drawn from, so that a state of
  // other data is refused. count >= 1.
  Order(std::string kind, std::string data, int64_t count,
        const OrderOptions& options);

  // Makes sure that a whole batch of samples follows, in the next epoch if need
  // be. OutOfRange after the last epoch.
  absl::Status Begin(int64_t batch);
  // Since Begin: the sample in a row of the batch, and the epoch.
  int64_t Sample(int64_t row) const;
  int64_t epoch() const { return epoch_; }
  // After a batch was read.
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
  int64_t position_ = 0;  // Samples drawn in this epoch.
  Permutation permutation_;
};

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_ORDER_H_
