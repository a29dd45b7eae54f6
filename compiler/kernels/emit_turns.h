// Blocks of threads that add to the same device memory, one after the other in
// a fixed order, so that sums have the same bits in every run.
//
// A block takes a ticket, which is the number of its item. It awaits its turn
// at a place of the memory, adds, and passes the turn to the next block. Items
// may only wait for items with lower numbers: those have begun, so no wait
// depends on the order in which the GPU starts blocks.
//
// A target must provide these functions, called by one thread of a block.
// Addresses are those of 4 bytes of device memory.
//   i32 partita_take_ticket(i64 address)
//                         the number there, which it increments
//   void partita_await_turn(i64 address, i32 turn)
//                         waits until the number there is `turn`. Whatever the
//                         block that stored it wrote before is visible to this
//                         thread, and to others once they have met it
//   void partita_pass_turn(i64 address, i32 turn)
//                         stores the number. This thread's earlier writes, and
//                         those of threads it has met, become visible with it
#ifndef PARTITA_COMPILER_KERNELS_EMIT_TURNS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_TURNS_H_

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

inline constexpr char kTakeTicket[] = "partita_take_ticket";
inline constexpr char kAwaitTurn[] = "partita_await_turn";
inline constexpr char kPassTurn[] = "partita_pass_turn";

class Turns {
 public:
  // For a kernel with teams of kBlock. `memory` holds floats, of which those
  // from number `first` on are the ticket and then a turn for each place. A
  // kernel that runs before sets all of them.
  Turns(Emitter& emitter, mlir::Value memory, int64_t first);

  // Floats of memory for this number of places.
  static int64_t floats(int64_t places) { return 1 + places; }

  // --- Called by all threads, in the kernel that runs before ---
  // Sets the ticket to 0, or a place's turn. Only one thread stores.
  mlir::LogicalResult start();
  mlir::LogicalResult start(mlir::Value place, mlir::Value turn);

  // --- Called by all threads ---
  // Takes a ticket: an index. All threads meet.
  mlir::FailureOr<mlir::Value> takeTicket();
  // Waits for the turn. Afterwards threads must meet before they read.
  mlir::LogicalResult await(mlir::Value place, mlir::Value turn);
  // Passes the turn on, if `does` holds. All threads must have met after their
  // writes.
  mlir::LogicalResult pass(mlir::Value place, mlir::Value turn,
                           mlir::Value does);
  // The turn that a place has, once no block waits for it any more.
  mlir::Value turnOf(mlir::Value place);

 private:
  mlir::Value indexOf(mlir::Value place);
  mlir::Value addressOf(mlir::Value index);
  mlir::Value isFirstThread();
  mlir::Value toI32(mlir::Value index);
  mlir::LogicalResult store(mlir::Value index, mlir::Value number);

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Value memory_;
  int64_t first_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TURNS_H_
