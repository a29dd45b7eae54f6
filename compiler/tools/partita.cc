// The command `partita`.
#include "compiler/driver/commands/cli.h"

int main(int argc, char** argv) {
  return partita::driver::runPartita(argc, argv);
}
