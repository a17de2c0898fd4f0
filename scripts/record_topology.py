#!/usr/bin/env python3
"""Records what restride reads of a machine's /sys and /proc as one small text file.

    scripts/record_topology.py [ROOT] > tests/data/topology/NAME.txt

Each line is `path=value`. Lines that are equal on several CPUs are folded: `cpu{0-3,8}` in a path
stands for each of those CPUs. The tests unpack such a file into a directory and read that.
"""
import glob
import os
import re
import sys

PATTERNS = [
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu[0-9]*/online",
    "sys/devices/system/cpu/cpu[0-9]*/cpu_capacity",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu[0-9]*/topology/core_id",
    "sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id",
    "sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings",
    *[
        f"sys/devices/system/cpu/cpu[0-9]*/cache/index*/{name}"
        for name in (
            "level",
            "type",
            "size",
            "ways_of_associativity",
            "number_of_sets",
            "coherency_line_size",
            "shared_cpu_list",
            "shared_cpu_map",
        )
    ],
    "sys/devices/cpu_core/cpus",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/system/node/node[0-9]*/cpulist",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
    "sys/kernel/mm/hugepages/hugepages-*/free_hugepages",
]


def ranges(numbers):
    """[0, 1, 2, 8] -> "0-2,8"."""
    out, numbers = [], sorted(numbers)
    while numbers:
        last = 0
        while last + 1 < len(numbers) and numbers[last + 1] == numbers[last] + 1:
            last += 1
        out.append(str(numbers[0]) if last == 0 else f"{numbers[0]}-{numbers[last]}")
        numbers = numbers[last + 1 :]
    return ",".join(out)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "/"
    folded, order = {}, []

    def add(path, value):
        cpu = re.search(r"/cpu(\d+)/", path)
        key = (path.replace(cpu.group(0), "/cpu{}/", 1) if cpu else path, value)
        if key not in folded:
            folded[key] = []
            order.append(key)
        if cpu:
            folded[key].append(int(cpu.group(1)))

    def natural(path):
        return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", path)]

    for pattern in PATTERNS:
        for path in sorted(glob.glob(os.path.join(root, pattern)), key=natural):
            if not os.path.isfile(path):
                continue
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    value = file.read().strip()
            except OSError:
                continue
            add(os.path.relpath(path, root), value)
    for path, wanted in (
        ("proc/cpuinfo", r"(vendor_id|model name|cpu family|model|stepping|flags)\s*:"),
        ("proc/meminfo", r"MemTotal:"),
        ("proc/self/status", r"Cpus_allowed_list:"),
    ):
        try:
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                seen = set()
                for line in file:
                    found = re.match(wanted, line)
                    if found and found.group(0) not in seen:
                        seen.add(found.group(0))
                        if line.startswith("flags"):
                            line = "flags\t: " + ("hypervisor" if " hypervisor" in line else "fpu")
                        print(f"{path}={' '.join(line.split())}")
        except OSError:
            pass
    for path, value in order:
        cpus = folded[(path, value)]
        print(f"{path.replace('{}', '{' + ranges(cpus) + '}') if cpus else path}={value}")


if __name__ == "__main__":
    main()
