/* Partita's compiler as a C library: runs the commands of the program `partita`
 * in this process.
 *
 *   const char* words[] = {"compile", "model.onnx", "-o", "model.partita",
 *                          "--json"};
 *   const partita_answer* answer = partita_command(words, 5, NULL, NULL);
 *   if (answer->exit_code != 0) fprintf(stderr, "%s", answer->messages);
 *   partita_free_answer(answer);
 *
 * Link with -lpartita_compiler. C99 and C++. partita.h runs compiled models.
 *
 * Threads: any thread may call any function. Commands run one at a time: a
 * second call waits for the first to end. Relative paths are relative to the
 * working directory of the process, which must not change during a command.
 *
 * Errors: no function throws or ends the process. A command that cannot get
 * memory may end it, as LLVM does not report that.
 *
 * Signals: the first command lets LLVM register its handlers and restores the
 * handlers of the process; no other thread may change handlers meanwhile.
 */
#ifndef PARTITA_COMPILER_API_PARTITA_COMPILER_H_
#define PARTITA_COMPILER_API_PARTITA_COMPILER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: programs built for one version run with every
 * library of that version. */
#define PARTITA_COMPILER_ABI_VERSION 1

uint32_t partita_compiler_abi_version(void);
/* "0.1.0", the version of the library. */
const char* partita_compiler_version(void);

/* Exit codes, as of the program `partita`. */
typedef enum partita_exit_code {
  PARTITA_SUCCESS = 0,
  /* A model, a plan or a file is wrong, or what was compared differs. */
  PARTITA_USER_ERROR = 1,
  PARTITA_USAGE_ERROR = 2,     /* unknown command or option, unreadable value */
  PARTITA_COMPILER_ERROR = 70, /* a bug in Partita */
  PARTITA_CANCELLED = 130      /* partita_cancel stopped the command */
} partita_exit_code;

/* The result of a command. All of it belongs to the library until
 * partita_free_answer. */
typedef struct partita_answer {
  int32_t exit_code;
  /* What the program prints to standard output: one JSON object with --json.
   * Never NULL. */
  const char* output;
  /* Errors, warnings, notes and progress, one per line. Never NULL. */
  const char* messages;
} partita_answer;

/* Receives one line of `messages`, without its end, as soon as it is complete.
 * Called by the thread that runs the command; must not call partita_command. */
typedef void (*partita_message_function)(const char* line, void* data);

/* Runs `import`, `compile`, `plan`, `explain`, `verify`, `annotate`,
 * `simulate`, `inspect` or `generate -o FOLDER` (which compiles) with the
 * arguments of the command line: arguments[0] is the command. Other commands
 * are refused, as they start the program partita-run. `on_message` may be NULL;
 * `data` is passed to it. Returns NULL only if there is no memory. */
const partita_answer* partita_command(const char* const* arguments,
                                      size_t count,
                                      partita_message_function on_message,
                                      void* data);
/* NULL is ignored. */
void partita_free_answer(const partita_answer* answer);

/* Asks the running command to stop. It stops before its next phase, within
 * seconds for most models; without a running command nothing happens. */
void partita_cancel(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PARTITA_COMPILER_API_PARTITA_COMPILER_H_ */
