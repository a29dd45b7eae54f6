// A team: threads that compute one item of a kernel's range together, such as a
// warp of a GPU.
//
// All threads of a team run the same code. A loop over lanes that is not inside
// another such loop is divided among them, vector by vector in turn, so that
// neighbouring threads access neighbouring memory. Everything else is computed
// by each thread. A reduction over a divided loop exchanges partial results, so
// that all threads get the same bits. A target must provide three functions,
// which all threads of a team call at the same places:
//   i64 partita_team_thread()             this thread's number, 0 .. team - 1
//   i32 partita_team_exchange(i32 value, i32 distance)
//                                         the value of thread number ^ distance
//   void partita_team_sync()              makes earlier writes of the others
//                                         visible
//
// A team may also be a whole block of kBlock threads. It divides loops over
// lanes, too, but has no reductions, because exchanges stay within a warp. It
// calls these in place of the first and the last:
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

// Calls a function of the target, and declares it if the module does not yet.
mlir::ValueRange callTarget(mlir::ImplicitLocOpBuilder& builder,
                            llvm::StringRef name, mlir::TypeRange results,
                            mlir::ValueRange arguments);
// This thread's number in a team of `team` threads, as an index.
mlir::Value teamThread(mlir::ImplicitLocOpBuilder& builder, int64_t team);
// The scalar of the thread whose number is this thread's ^ distance.
mlir::Value teamExchange(mlir::ImplicitLocOpBuilder& builder, mlir::Value value,
                         int distance);
void teamSync(mlir::ImplicitLocOpBuilder& builder, int64_t team);
// Combines the scalars of a warp's threads.
mlir::Value combineTeam(Emitter& emitter, nn::ReduceKind kind,
                        mlir::Value value);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TEAM_H_
