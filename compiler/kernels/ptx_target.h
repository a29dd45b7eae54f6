// The functions that GPUs provide to generated code.
#ifndef PARTITA_COMPILER_KERNELS_PTX_TARGET_H_
#define PARTITA_COMPILER_KERNELS_PTX_TARGET_H_

namespace llvm {
class Module;
}  // namespace llvm

namespace partita::kernels {

// Defines the functions of emit_team.h, emit_fragments.h, emit_turns.h,
// emit_warpgroup.h and emit_tile_ring.h that the module declares. Functions of
// emit_warpgroup.h and emit_tile_ring.h run on sm_90a only, the others on sm_80
// and later.
void defineTargetFunctions(llvm::Module& module);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PTX_TARGET_H_
