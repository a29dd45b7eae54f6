// Where a convolution of integers of 8 bits has its operands.
#ifndef PARTITA_RUNTIME_CPU_BYTE_CONV_OPERANDS_H_
#define PARTITA_RUNTIME_CPU_BYTE_CONV_OPERANDS_H_

#include <vector>

#include "runtime/device/operations.h"

namespace partita::cpu {

// Numbers of the operation's operands; -1: absent. The input is 0, the weight
// 1.
struct ByteConvOperands {
  explicit ByteConvOperands(const device::ConvDesc& desc) {
    int next = 2;
    scale = next++;
    if (desc.has_zero) zero = next++;
    if (desc.has_bias) bias = next++;
    if (desc.has_residual) residual = next++;
    if (desc.rounds()) result_scale = next++;
    if (desc.rounds()) result_zero = next++;
    out = next;
  }

  // True if the primitive can contain all that it reads besides the tensors.
  bool AreConstant(const std::vector<const void*>& constants) const {
    for (const int place : {scale, zero, bias, result_scale, result_zero})
      if (place >= 0 && constants[static_cast<size_t>(place)] == nullptr)
        return false;
    return true;
  }

  int scale = -1, zero = -1, bias = -1, residual = -1, result_scale = -1,
      result_zero = -1, out = -1;
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_BYTE_CONV_OPERANDS_H_
