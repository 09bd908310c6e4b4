"""The division of a recurrence among threads, blocks and clusters; scan.cuh says what the numbers mean.

The choice is the least of an estimate in clock cycles, whose constants were fitted to measurements on an H200.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from math import ceil, log2

MULTIPROCESSORS = 132
REGISTERS = 65536  # of a multiprocessor
OTHER_REGISTERS = 48  # of a thread, beside its weights
MOST_REGISTERS = 255
MOST_THREADS = 512
CLUSTERS = (1, 2, 4, 8)
SEQUENCES = (1, 2, 4, 8)
SHARED_MEMORY = 220 << 10


@dataclass(frozen=True)
class Layout:
    """The numbers that a kernel is compiled with.

    Attributes:
        N: hidden units.
        gates: recurrent matrices.
        cluster: blocks that compute the same sequences.
        joint: units that a team of lanes computes together.
        team: lanes of a team, a power of two, at least `joint` and at most 32.
        chunk: numbers that a lane reads at once.
        sequences: sequences of a cluster.
        depth: steps by which global memory is read ahead.
    """

    N: int
    gates: int
    cluster: int
    joint: int
    team: int
    chunk: int = 4
    sequences: int = 1
    depth: int = 2

    @property
    def teams(self) -> int:
        """Teams of a block."""
        return ceil(ceil(self.N / self.cluster) / self.joint)

    @property
    def units(self) -> int:
        """Units of a block; the last block of a cluster may have fewer."""
        return self.teams * self.joint

    @property
    def threads(self) -> int:
        """Threads of a block, whole warps."""
        return ceil(self.teams * self.team / 32) * 32

    @property
    def chunks(self) -> int:
        """Chunks of a vector that each lane reads."""
        return ceil(self.N / (self.chunk * self.team))

    @property
    def weights(self) -> int:
        """Numbers of the matrices in a thread's registers."""
        return self.gates * self.joint * self.chunks * self.chunk

    @property
    def registers(self) -> int:
        """Registers of a thread, by estimate."""
        return self.weights + OTHER_REGISTERS + self.gates * self.joint

    def shared_memory(self, vectors: int) -> int:
        """Bytes of shared memory for a number of vectors in two buffers."""
        return 16 + 2 * vectors * self.sequences * self.chunks * self.chunk * self.team * 4

    def fits(self) -> bool:
        """Return True if the registers suffice."""
        room = min(MOST_REGISTERS, REGISTERS // self.threads // 8 * 8)
        return self.registers <= room and self.shared_memory(self.gates) <= SHARED_MEMORY

    def cycles(self, sequences: int) -> float:
        """Estimated clock cycles of one step, one way, for so many sequences on a whole GPU."""
        warps = self.threads / 32
        products = self.weights * warps / 4
        reads = 0.7 * warps * self.chunks * self.chunk
        sums = 2.3 * warps * self.gates * (self.joint - 1 + log2(self.team / self.joint))
        latency = 350 + 15 * log2(self.team) + 130 * (self.gates > 1) + 220 * (self.cluster > 1)
        told = 1.2 * self.N * self.sequences * (self.cluster > 1)  # numbers that come from the other blocks
        crowded = max(self.weights - 128, 0) * (4 + self.sequences)  # few registers are left for reading ahead
        blocks = ceil(sequences / self.sequences) * self.cluster
        waves = ceil(blocks / MULTIPROCESSORS)
        return waves * (self.sequences * (products + reads + sums) + latency + told + crowded)

    def macros(self) -> dict[str, int]:
        """The layout as constants of scan.cuh."""
        names = {"gates": "GATES", "cluster": "CLUSTER", "joint": "JOINT", "team": "TEAM", "chunk": "CHUNK"}
        names |= {"N": "N", "sequences": "SEQUENCES", "depth": "DEPTH"}
        own = {names[key]: value for key, value in asdict(self).items()}
        return {**own, "TEAMS": self.teams, "THREADS": self.threads}


def layouts(N: int, gates: int) -> Iterator[Layout]:
    """All layouts whose registers suffice and whose blocks all own units: nobody waits for a block that owns none."""
    for cluster in CLUSTERS:
        for team in (1, 2, 4, 8, 16, 32):
            for joint in (1, 2, 4, 8, 16):
                for chunk in (4, 2):
                    for sequences in SEQUENCES:
                        found = Layout(N, gates, cluster, joint, team, chunk, sequences)
                        owned = (cluster - 1) * found.units < N
                        if joint <= team and owned and found.threads <= MOST_THREADS and found.fits():
                            yield found


@cache
def best(N: int, gates: int, sequences: int, clusters: bool = True) -> Layout | None:
    """The layout with the least estimate; None where no layout fits.

    Args:
        N: hidden units.
        gates: recurrent matrices.
        sequences: members times the batch size.
        clusters: the device knows clusters of blocks (compute capability 9.0).
    """
    known = (layout for layout in layouts(N, gates) if clusters or layout.cluster == 1)
    return min(known, key=lambda layout: layout.cycles(sequences), default=None)
