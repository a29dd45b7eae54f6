// The phases of compilation behind dividing, as a pipeline of partita-opt: what
// --dump-dir wrote goes on from any of them.
#ifndef PARTITA_COMPILER_DRIVER_PHASE_PIPELINES_H_
#define PARTITA_COMPILER_DRIVER_PHASE_PIPELINES_H_

namespace partita::driver {

// --partita-from="phase=memory": that phase and all behind it, in the order of
// pipeline.cc, of a module as the phase before left it. `training` and `gpu`
// say what it is compiled for, `prefetch` how many layers ahead parameters are
// gathered. Machine code is not generated.
void registerPhasePipelines();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PHASE_PIPELINES_H_
