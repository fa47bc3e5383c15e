"""Studies on several machines: the runs of a plan on the workers of dask.distributed.

`workers` connects to them, `client` distributes the runs, `work` is what a worker executes, and
`proof` compares a worker with the client before it gets runs. A worker has talkspurt installed and
receives scenarios and files, never code. It returns the folders of its runs, written by the code
that writes them on one machine; so tables have the same bytes.
"""

from talkspurt._cluster.client import collect
from talkspurt._cluster.workers import Address, Workers, connected

__all__ = ["Address", "Workers", "collect", "connected"]
