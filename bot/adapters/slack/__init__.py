"""Slack: a workspace's channels, threads and files, over Socket Mode or HTTP."""
