// Runs NVIDIA's assembler in tests and reads its report. assemble_ptx.h says
// where the assembler is looked for; --test_env=PARTITA_PTXAS=... names one.
#ifndef PARTITA_COMPILER_KERNELS_PTXAS_H_
#define PARTITA_COMPILER_KERNELS_PTXAS_H_

#include <map>
#include <string>

namespace partita::kernels {

bool hasPtxas();

// The reason that tests give when they skip a check because ptxas is missing:
//   if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
// `bazelw test` lists skipped cases by reason.
inline constexpr char kWithoutPtxas[] =
    "no ptxas: GPU code is not assembled, its registers and shared memory are "
    "not checked";

struct Assembled {
  bool ok = false;
  std::string report;  // the whole output
  struct Kernel {
    int registers = 0;      // per thread
    int spilled_bytes = 0;  // spill stores and spill loads
    int shared_bytes = 0;   // per block
  };
  std::map<std::string, Kernel> kernels;
};

// Assembles for a chip such as sm_90. Requires hasPtxas().
Assembled assemble(const std::string& ptx, const std::string& chip);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PTXAS_H_
