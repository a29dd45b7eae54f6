/* The runtime's interface to MPI, as C functions. MPI's own header defines its
 * names as addresses inside one implementation, so only libpartita_mpi.so
 * includes it. The runtime opens that library when it was started as several
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

/* Functions return 0, or another value if error() says why. One thread calls
 * them at a time: the thread that called start, unless several_threads is 1. */
struct PartitaMpiApi {
  int version;
  /* Starts MPI, unless it runs already. */
  int (*start)(int* rank, int* size);
  /* 1: any thread may call, one at a time; 0: only the thread that called
   * start. */
  int (*several_threads)(void);
  /* Collective: gathers every rank's `name`, PARTITA_MPI_NAME_BYTES long, into
   * `all`. */
  int (*exchange_names)(const char* name, char* all);
  /* The library's own description of itself. */
  const char* (*library)(void);
  /* Begin, and return at once; pass *request to test. Messages of different
   * streams, 0 to 2, are unordered. */
  int (*send)(const void* data, int64_t bytes, int to, int stream,
              void** request);
  int (*receive)(void* data, int64_t bytes, int from, int stream,
                 void** request);
  /* Frees the request when *done. */
  int (*test)(void* request, int* done);
  /* Signs are small numbers beside the messages, sent without waiting.
   * next_sign returns the next sign and its sender, or -1 as the sender if
   * there is none. */
  int (*send_sign)(int number, int to);
  int (*next_sign)(int* number, int* from);
  /* Collective; fails if some rank does not call it within the time. */
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
