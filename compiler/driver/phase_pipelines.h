// The compiler's phases after dividing, as a pipeline of partita-opt. It
// resumes compilation from any file that --dump-dir wrote after them.
#ifndef PARTITA_COMPILER_DRIVER_PHASE_PIPELINES_H_
#define PARTITA_COMPILER_DRIVER_PHASE_PIPELINES_H_

namespace partita::driver {

// Registers --partita-from="phase=memory". It runs that phase and all later
// ones, in the order of pipeline.cc, on a module as the previous phase left it.
// `training`, `gpu` and `float8` say what the module is compiled for;
// `prefetch` is the number of layers that parameters are gathered ahead.
// Generates no machine code.
void registerPhasePipelines();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PHASE_PIPELINES_H_
