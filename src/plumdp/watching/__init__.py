"""Watches a process part by part: alarms when rows or a certified value change, and certificates about now."""
