// Activations of f32 with AVX-512, for the results of products.
#ifndef PARTITA_RUNTIME_CPU_VECTOR_ACTIVATIONS_H_
#define PARTITA_RUNTIME_CPU_VECTOR_ACTIVATIONS_H_

#include <cstdint>

#include "runtime/device/operations.h"

namespace partita::cpu {

// Replaces `vectors` * 16 values, aligned to 64. NaN stays NaN.
using VectorActivation = void (*)(float* values, int64_t vectors);

// True if this CPU has AVX512F and AVX512DQ, which the kernels need.
bool HasVectorActivations();

// Null for kNone. Errors are below 1e-7
// of |x| + |result| for GELU, and below 2e-7 of the result for the others, or
// below 1e-36.
VectorActivation VectorActivationOf(device::Activation activation);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_VECTOR_ACTIVATIONS_H_
