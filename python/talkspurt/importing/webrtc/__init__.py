"""Readers of what WebRTC programs record: RTC event logs, and dumps of their statistics."""
