// A minimal PTX parser that finds kernels and the sizes of their parameters.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_PTX_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_PTX_H_

#include <map>
#include <string>
#include <vector>

namespace partita::cuda::recording {

struct Ptx {
  int target = 0;  // 80: sm_80
  // Bytes of each parameter, by kernel.
  std::map<std::string, std::vector<size_t>> kernels;
};

// False, with a message like the driver's compiler's, if the text is not PTX.
bool ParsePtx(const std::string& text, Ptx& ptx, std::string& error);

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_PTX_H_
