from __future__ import annotations

import subprocess
import sys
import threading

import psutil

from pipeline.runners.memory import PeakMemory

MIB = 1 << 20


def test_what_was_held_for_a_moment_is_seen():
    with PeakMemory() as first:  # with what earlier tests have left running
        pass
    before = first.bytes
    with PeakMemory(0.01) as memory:
        held = bytearray(b"x" * 200 * MIB)
        threading.Event().wait(0.1)
        del held
    assert before + 150 * MIB < memory.bytes < before + 450 * MIB


def test_children_count():
    code = "held = bytearray(b'x' * (150 << 20)); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        before = psutil.Process().memory_info().rss
        with PeakMemory() as memory:
            pass
        child.communicate(b"\n")
    assert memory.bytes > before + 140 * MIB


def test_it_reads_the_table_of_processes_at_most_once_a_second(monkeypatch):
    looks, children = [], psutil.Process.children

    def counted(process, recursive=False):
        looks.append(process)
        return children(process, recursive)

    monkeypatch.setattr(psutil.Process, "children", counted)
    with PeakMemory():
        threading.Event().wait(0.6)
    assert len(looks) == 2  # at the beginning and at the end


def test_the_thread_ends_with_the_block():
    before = threading.active_count()
    with PeakMemory():
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
