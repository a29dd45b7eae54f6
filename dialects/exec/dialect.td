// The exec dialect: the program of one device.
#ifndef PARTITA_DIALECTS_EXEC_DIALECT_TD
#define PARTITA_DIALECTS_EXEC_DIALECT_TD

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::partita::exec";
  let summary =
      "One device's program: kernel launches, library calls and the memory "
      "offsets of their results";
  let description =
      [{
    Operations are in value form: each result is a buffer that the operation
    writes. Once memory is planned, every operation with results carries
    `exec.offsets`, one entry per result: a byte offset in the function's frame,
    or -1 - i for the memory that the caller provides for the function's i-th
    result. The results of `exec.view`, of `exec.await` and of a launch with `into`
    share memory with their operands and have no offsets.
    A `func.call` also carries `exec.frame_offset`, the byte offset of the callee's
    frame in the caller's frame. With `exec.repeats`, a call is made again and again, as `nn.loop` says; the
    results of an iteration lie behind the callee's frame (`repeatedFrameBytes`). A planned function carries `exec.frame_bytes`.
    The operations map one to one onto runtime/program/program.fbs.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif  // PARTITA_DIALECTS_EXEC_DIALECT_TD
