// What GPUs provide to generated code.
#ifndef PARTITA_COMPILER_KERNELS_PTX_TARGET_H_
#define PARTITA_COMPILER_KERNELS_PTX_TARGET_H_

namespace llvm {
class Module;
}  // namespace llvm

namespace partita::kernels {

// Gives those functions of emit_team.h, emit_fragments.h, emit_warpgroup.h and
// emit_tile_ring.h that the module declares their bodies: for chips from sm_80
// on, the last two headers' for sm_90a.
void defineTargetFunctions(llvm::Module& module);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PTX_TARGET_H_
