# Settings of mpirun for tests: run as root in a container, more processes than
# processors, a short temporary path for its sockets, and shared memory without
# system calls that sandboxes forbid.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=/tmp
mpi=(mpirun --oversubscribe --mca btl_vader_single_copy_mechanism none --mca btl self,vader)
