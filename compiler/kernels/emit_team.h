// Threads that compute one item of a kernel's range together: a team, as a warp
// of a GPU.
//
// All threads of a team run the same code. A loop over lanes that stands
// outside of other such loops is divided among them, vector by vector in turn,
// so that neighbouring threads access neighbouring memory; everything else they
// compute alike, each for itself. A reduction over a divided loop is combined
// by exchanging partial results, so that all threads have the result, the same
// bits. What a target must provide is three functions, called by all threads of
// a team at the same places:
//   i64 partita_team_thread()             this thread's number, 0 .. team - 1
//   i32 partita_team_exchange(i32 value, i32 distance)
//                                         the value of thread number ^ distance
//   void partita_team_sync()              what others wrote before is visible
//
// A team may also be a whole block of kBlock threads. Its threads share loops
// over lanes, too, but there are no reductions for them: exchanges are within
// warps. It calls these in place of the first and the last:
//   i64 partita_block_thread()            0 .. kBlock - 1
//   void partita_block_sync()
#ifndef PARTITA_COMPILER_KERNELS_EMIT_TEAM_H_
#define PARTITA_COMPILER_KERNELS_EMIT_TEAM_H_

#include "compiler/kernels/emit_elements.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

inline constexpr char kTeamThread[] = "partita_team_thread";
inline constexpr char kTeamExchange[] = "partita_team_exchange";
inline constexpr char kTeamSync[] = "partita_team_sync";
inline constexpr char kBlockThread[] = "partita_block_thread";
inline constexpr char kBlockSync[] = "partita_block_sync";

// Calls a function that the target provides, declared where this is new.
mlir::ValueRange callTarget(mlir::ImplicitLocOpBuilder& builder,
                            llvm::StringRef name, mlir::TypeRange results,
                            mlir::ValueRange arguments);
// This thread's number in a team of so many, as an index.
mlir::Value teamThread(mlir::ImplicitLocOpBuilder& builder, int64_t team);
// The scalar that the thread has whose number differs in these bits.
mlir::Value teamExchange(mlir::ImplicitLocOpBuilder& builder, mlir::Value value,
                         int distance);
void teamSync(mlir::ImplicitLocOpBuilder& builder, int64_t team);
// Combines the scalars that the threads of a warp have.
mlir::Value combineTeam(Emitter& emitter, nn::ReduceKind kind,
                        mlir::Value value);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TEAM_H_
