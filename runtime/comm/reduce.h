// Combines equal parts of several tensors.
#ifndef PARTITA_RUNTIME_COMM_REDUCE_H_
#define PARTITA_RUNTIME_COMM_REDUCE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/comm/operation.h"

namespace partita::comm {

// Writes inputs[0] op inputs[1] op ... to every output, element by element. The
// order is fixed, so every rank computes the same bits. Sums and products of
// 16-bit floats are computed in f32 and rounded once. Integers wrap around. In
// kMax and kMin, NaN wins over every number. An output may equal an input but
// not overlap one otherwise.
void Reduce(Reduction reduction, base::DType dtype,
            const std::vector<const char*>& inputs,
            const std::vector<char*>& outputs, int64_t count);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_REDUCE_H_
