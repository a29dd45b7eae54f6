/* Runs commands through the shared library: partita_compiler_test LIBRARY
 * MODEL.onnx. Prints each check that fails. */
#define _POSIX_C_SOURCE 200809L
#include "compiler/api/partita_compiler.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

static void Expect(int condition, const char* what, int line) {
  if (condition) return;
  fprintf(stderr, "line %d: expected %s\n", line, what);
  ++failures;
}
#define EXPECT(condition) Expect(condition, #condition, __LINE__)

typedef const partita_answer* (*Command)(const char* const*, size_t,
                                         partita_message_function, void*);
typedef void (*Free)(const partita_answer*);
typedef void (*Cancel)(void);

static Command command;
static Free free_answer;
static Cancel cancel;

static void* Find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "expected the symbol %s, found none\n", name);
    exit(1);
  }
  return found;
}

static void HandleInterrupt(int signal) { (void)signal; }

/* Counts lines, and cancels at the first line if `data` says so. */
typedef struct Lines {
  int count, cancels;
  char first[512];
} Lines;

static void TakeLine(const char* line, void* data) {
  Lines* lines = data;
  if (lines->count++ == 0)
    snprintf(lines->first, sizeof lines->first, "%s", line);
  if (lines->cancels) cancel();
}

static void TestRefusals(const char* model) {
  Lines lines = {0};
  const char* run[] = {"run", "model.partita"};
  const partita_answer* answer = command(run, 2, TakeLine, &lines);
  EXPECT(answer->exit_code == PARTITA_USAGE_ERROR);
  EXPECT(strstr(answer->messages, "expected one of import, compile") != NULL);
  EXPECT(lines.count == 1);
  EXPECT(strchr(lines.first, '\n') == NULL);
  free_answer(answer);

  answer = command(NULL, 0, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_USAGE_ERROR);
  free_answer(answer);

  const char* holes[] = {"inspect", NULL};
  answer = command(holes, 2, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_USAGE_ERROR);
  EXPECT(strstr(answer->messages, "found NULL at 1") != NULL);
  free_answer(answer);

  const char* option[] = {"inspect", model, "--jsn"};
  answer = command(option, 3, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_USAGE_ERROR);
  EXPECT(strstr(answer->messages, "--json") != NULL);
  free_answer(answer);

  const char* absent[] = {"inspect", "absent.onnx", "--json"};
  answer = command(absent, 3, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_USER_ERROR);
  EXPECT(strncmp(answer->messages, "error: ", 7) == 0);
  EXPECT(answer->output[0] == '\0');
  free_answer(answer);
}

static void TestHelp(void) {
  const char* version[] = {"--version"};
  const partita_answer* answer = command(version, 1, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_SUCCESS);
  EXPECT(strncmp(answer->output, "partita ", 8) == 0);
  free_answer(answer);

  const char* help[] = {"compile", "--help"};
  answer = command(help, 2, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_SUCCESS);
  EXPECT(strstr(answer->output, "--mesh") != NULL);
  free_answer(answer);
}

static const char* output;

/* Compiles the model, divided, twice: a process may run several commands. */
static void TestCompile(const char* model) {
  const char* words[] = {"compile", model,  "--dim",   "batch=2,seq=12",
                         "--mesh",  "t=2",  "--shard", "M=t,N=t",
                         "-o",      output, "--json"};
  for (int i = 0; i < 2; ++i) {
    const partita_answer* answer = command(words, 11, NULL, NULL);
    EXPECT(answer->exit_code == PARTITA_SUCCESS);
    EXPECT(answer->output[0] == '{');
    EXPECT(strstr(answer->output, "\"devices\":2") != NULL);
    if (answer->exit_code != 0) fprintf(stderr, "%s", answer->messages);
    free_answer(answer);
  }
  const char* inspect[] = {"inspect", output, "--json"};
  const partita_answer* answer = command(inspect, 3, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_SUCCESS);
  EXPECT(strstr(answer->output, "\"kind\":\"artifact\"") != NULL);
  free_answer(answer);
}

/* A shard of an axis that does not exist ends in an error about the plan; the
 * first line of a warning cancels what follows. */
static void TestCancel(const char* model) {
  Lines lines = {0};
  lines.cancels = 1;
  cancel(); /* nothing runs: ignored */
  const char* words[] = {"verify", model,         "--mesh", "t=2",   "--shard",
                         "M=t",    "--precision", "bf16",   "--json"};
  const partita_answer* answer = command(words, 9, TakeLine, &lines);
  EXPECT(lines.count > 0);
  EXPECT(answer->exit_code == PARTITA_CANCELLED);
  EXPECT(strstr(answer->messages, "found a request to stop") != NULL);
  free_answer(answer);
  /* The next command is not cancelled. */
  const char* inspect[] = {"inspect", output, "--json"};
  answer = command(inspect, 3, NULL, NULL);
  EXPECT(answer->exit_code == PARTITA_SUCCESS);
  free_answer(answer);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: partita_compiler_test LIBRARY MODEL.onnx\n");
    return 2;
  }
  struct sigaction own, found;
  memset(&own, 0, sizeof own);
  own.sa_handler = HandleInterrupt;
  sigaction(SIGINT, &own, NULL);

  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void**)&command = Find(library, "partita_command");
  *(void**)&free_answer = Find(library, "partita_free_answer");
  *(void**)&cancel = Find(library, "partita_cancel");
  uint32_t (*abi)(void);
  *(void**)&abi = Find(library, "partita_compiler_abi_version");
  EXPECT(abi() == PARTITA_COMPILER_ABI_VERSION);
  const char* folder = getenv("TEST_TMPDIR");
  char path[4096];
  snprintf(path, sizeof path, "%s/model.partita", folder ? folder : "/tmp");
  output = path;

  TestRefusals(argv[2]);
  TestHelp();
  TestCompile(argv[2]);
  TestCancel(argv[2]);

  sigaction(SIGINT, NULL, &found);
  EXPECT(found.sa_handler == HandleInterrupt);
  free_answer(NULL);
  return failures == 0 ? 0 : 1;
}
