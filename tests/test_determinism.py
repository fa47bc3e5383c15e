"""The digest is the same on a processor without fused multiply-add.

glibc computes exp, log and pow differently with and without FMA; ``GLIBC_TUNABLES`` switches it
off in a child process. That the switch works is checked first, through Python's own use of glibc.
"""

import json
import platform
import re
import sys
from pathlib import Path

import pytest

from command import output, succeed

ROOT = Path(__file__).parent.parent

WITHOUT = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX2_Usable,-FMA_Usable"}
SUMS = """
import hashlib, math
said = hashlib.sha256()
for i in range(1, 20001):
    x = i / 997
    for value in (math.exp(x / 7), math.log(x), math.pow(x, 0.7), math.sin(x)):
        said.update(value.hex().encode())
print(said.hexdigest())
"""


def sums(env):
    return output(sys.executable, "-c", SUMS, env=env)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this system has another C library")
def test_the_digest_does_not_depend_on_fused_multiply_add(folder, tmp_path):
    if sums({}) == sums(WITHOUT):
        pytest.skip("this processor or glibc computes alike with and without FMA")

    def run(env):
        done = succeed("run", folder / "small.toml", "--json", cwd=tmp_path, env=env)
        return json.loads(done.stdout)

    assert run({}) == run(WITHOUT)


STREAMS = """
    bbr  cell/{name}/{who}/{what}  backoff  errors  queue  contender {number}
    flow/{name}/from  flow/{name}/to  flow/{name}/start
    link/{}/loss  link/{}/jitter  link/{}/queue  link/{}/{purpose}  bit-errors  duplicate  loss
    {name}/rtp  {name}/rtx  {opener}/conversation  {}/{what}  {}/flexfec  rtcp  source  transport
"""
"""Names of random streams, and what they are put together from: another name draws other numbers."""


def test_names_of_random_streams_are_frozen():
    named = re.compile(
        r"""Rng::new\([^;"]*"([^"]*)"|\brng\((?:who,\ )?"([^"]*)"|"(contender\ [^"]*)"|"(flow/[^"]*)\"""",
        re.VERBOSE,
    )
    found = set()
    for crate in ("proto", "app", "flow", "sim", "queue"):
        for file in (ROOT / "crates" / crate / "src").rglob("*.rs"):
            if not file.stem.endswith("tests"):
                code = file.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests {")[0]
                code = re.sub("//.*", "", code)
                found |= {name for match in named.findall(code) for name in match if name}
    # A replay draws nothing.
    assert found - {"replay"} == set(re.split(r"\s{2,}", STREAMS.strip()))
