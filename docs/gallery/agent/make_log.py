"""Stands for the traces of an agent: it plans, searches, writes code and tests it, with prompt A or B."""

import json
import random
import sys

random.seed(3)
PASS = {"A": 0.30, "B": 0.42}  # chance that a test is passed
with open("traces.jsonl", "w", encoding="utf-8") as file:
    for run in range(1, int(sys.argv[1]) + 1):
        prompt, stage, step, fails = random.choice("AB"), "plan", 0, 0
        while True:
            row = {"run": run, "step": step, "stage": stage, "fails": fails, "prompt": prompt, "chance": 0.5}
            file.write(json.dumps(row) + "\n")
            if stage in ("solved", "given up"):
                break
            if stage == "plan":
                stage = "search" if random.random() < 0.5 else "code"
            elif stage == "search":
                stage = "code"
            elif stage == "code":
                stage = "test"
            elif random.random() < PASS[prompt]:
                stage = "solved"
            else:
                fails += 1
                stage = "given up" if fails == 3 else "code"
            step += 1
