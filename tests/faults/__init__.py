"""Injects faults, such as interrupts, full disks and killed workers, into commands."""
