// Rotary positions (Su et al., 2021) and their variants for long contexts.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_ROTARY_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_ROTARY_H_

#include <cstdint>
#include <vector>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/config.h"

namespace partita::huggingface {

struct Rotary {
  int64_t size = 2;                // rotated elements of a head
  std::vector<float> frequencies;  // one per pair of them
  double amplitude = 1;            // of the cosines and sines
  // Factor of the scores in models that follow YaRN in it (DeepSeek).
  double score_scale = 1;
};

// Reads the frequencies from a config. `key` names the size in complaints.
// `theta` and `positions` are the model's values for a config without a
// rope_theta or an original number of positions.
Rotary readRotary(Config& config, const char* key, int64_t size, double theta,
                  int64_t positions);

// The cosine or sine of position times frequency, [length, size / 2].
Value angles(ModelBuilder& m, int64_t length, const Rotary& rotary,
             float (*function)(float));

// Rotates pairs of elements of [B, N, L, size] by their position's angles
// [L, size / 2] or [B, L, size / 2]. The
// first elements of all pairs come before the second ones: in the result and,
// unless pairs are `interleaved`, in x.
Value rotate(Builder& b, Value x, Value cosine, Value sine,
             bool interleaved = false);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_ROTARY_H_
