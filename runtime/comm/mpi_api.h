/* What the runtime needs of MPI, as C functions: MPI's own header defines its
 * names as addresses inside one implementation, so only libpartita_mpi.so
 * includes it, and the runtime opens that when it was started as several
 * processes. */
#ifndef PARTITA_RUNTIME_COMM_MPI_API_H_
#define PARTITA_RUNTIME_COMM_MPI_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PARTITA_MPI_API_VERSION 4
#define PARTITA_MPI_API_SYMBOL "partita_mpi_api"
#define PARTITA_MPI_NAME_BYTES 256

/* Functions return 0, or not 0 and then error() says why. One thread calls them
 * at a time; it is the one that called start, unless several_threads. */
struct PartitaMpiApi {
  int version;
  /* Starts MPI, unless it runs already. */
  int (*start)(int* rank, int* size);
  /* 1: any thread may call, one at a time; 0: only that which called start. */
  int (*several_threads)(void);
  /* Collective: `name`, PARTITA_MPI_NAME_BYTES long, of every rank in `all`. */
  int (*exchange_names)(const char* name, char* all);
  /* The library's own description of itself. */
  const char* (*library)(void);
  /* Begin, and return at once; *request is what test takes. Messages of
   * different streams, 0 to 2, stand in no order. */
  int (*send)(const void* data, int64_t bytes, int to, int stream,
              void** request);
  int (*receive)(void* data, int64_t bytes, int from, int stream,
                 void** request);
  /* Frees the request when *done. */
  int (*test)(void* request, int* done);
  /* Small numbers beside the messages, sent without waiting. next_sign gives
   * one that has come, and its sender; -1 as the sender if none has. */
  int (*send_sign)(int number, int to);
  int (*next_sign)(int* number, int* from);
  /* Collective; fails where some rank does not come within the time. */
  int (*finish)(int64_t timeout_ms);
  /* Ends all ranks; does not return. */
  void (*abort)(int exit_code);
  const char* (*error)(void);
};

/* The one symbol of libpartita_mpi.so. */
typedef const struct PartitaMpiApi* (*PartitaMpiApiFunction)(void);

#ifdef __cplusplus
}
#endif

#endif /* PARTITA_RUNTIME_COMM_MPI_API_H_ */
